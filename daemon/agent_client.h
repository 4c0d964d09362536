/*
 * The connection to the agent. Requests of any number of threads travel over it at once, told
 * apart by their ids; one thread of the client's own receives. When the agent is lost, every open
 * request fails with ERROR_AGENT_UNAVAILABLE and the source is asked for another one, at growing
 * intervals.
 */
#ifndef DAEMON_AGENT_CLIENT_H
#define DAEMON_AGENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/agent_source.h"
#include "daemon/patience.h"
#include "proto/goheapd.pb-c.h"

struct agent_client;

/* Starts to connect. Takes the source over, on failure too. */
must_check struct error *agent_client_new(struct agent_source *source, struct agent_client **ret);

/* Ends the connection and, by it, an agent of our own. No call may be open any more. */
void agent_client_free(struct agent_client *client);
DEFINE_FREEP(agent_client, agent_client_free)

/* Makes open and later calls fail, so that those who wait in them come back. */
void agent_client_shut_down(struct agent_client *client);

/* Whether an agent is connected and has greeted. */
bool agent_client_is_ready(struct agent_client *client);

/* Waits for that. ERROR_AGENT_UNAVAILABLE, saying why, if it is not so within the patience. */
must_check struct error *agent_client_wait_ready(struct agent_client *client, uint64_t timeout_us);

/*
 * Asks and waits for the answer, of which the caller owns *ret (goheapd__answer__free_unpacked).
 * The request's id is filled in here. A failure of the agent's comes back as its error;
 * ret_retry_after_ms, unless NULL, is then set to when to ask again, 0 if it did not say. When the
 * patience ends, the agent is told to cancel and given grace_us to confirm that it has.
 */
must_check struct error *agent_client_call(struct agent_client *client, Goheapd__Request *request,
					   const struct patience *patience, uint64_t grace_us,
					   Goheapd__Answer **ret, uint64_t *ret_retry_after_ms);

#endif
