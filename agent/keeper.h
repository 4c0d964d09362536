/*
 * The keeper: the only process of ours that traces another. It has one order in its life, carries
 * it out, leaves the target as it was, says that it has, and ends. It needs little memory, so that
 * no lack of memory takes it before it has let go.
 */
#ifndef AGENT_KEEPER_H
#define AGENT_KEEPER_H

/* Runs the role on CHILD_AGENT_SOCKET and CHILD_PEER_SOCKET; returns the exit status. */
int keeper_main(void);

#endif
