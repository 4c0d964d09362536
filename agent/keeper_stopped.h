/*
 * The threads of a stopped target as the decoder is told of them.
 */
#ifndef AGENT_KEEPER_STOPPED_H
#define AGENT_KEEPER_STOPPED_H

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct threads;

/*
 * Registers of all threads, vector registers included, read while they are stopped. The caller
 * frees *ret with keeper_stopped_free.
 */
must_check struct error *keeper_stopped_read(const struct threads *threads,
					     Goheapd__TargetStopped **ret);
void keeper_stopped_free(Goheapd__TargetStopped *stopped);

#endif
