/*
 * The decoder: the only process of ours that reads what a target holds. It gets descriptors and
 * nothing else, has one task in its life, and may be taken over by what it reads: nobody believes
 * what it says without checking, and nothing is lost with it.
 */
#ifndef AGENT_DECODER_H
#define AGENT_DECODER_H

#include <stdint.h>

/*
 * Runs the role on CHILD_AGENT_SOCKET and CHILD_PEER_SOCKET; returns the exit status. memory_limit
 * in bytes, 0: none.
 */
int decoder_main(uint64_t memory_limit);

#endif
