/*
 * A session: one connection of the daemon, or of goheap, to the agent. Requests are a table with
 * the state that admits each; anything else ends the session, and with it whatever it had asked
 * for and not got yet.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include "proto/base/error.h"

struct session;
struct supervisor;

/*
 * Takes the socket over, also on an error. ended is called when the session has ended; the session
 * is gone by then.
 */
must_check struct error *session_start(struct supervisor *supervisor, int socket,
				       void (*ended)(void *arg), void *arg);

/* Ends those that are left, when the agent does; ended is not called any more. */
void session_end_all(struct supervisor *supervisor);

#endif
