/*
 * What the daemon says to the agent about scans that are kept.
 */
#ifndef DAEMON_KEPT_ASK_H
#define DAEMON_KEPT_ASK_H

#include "daemon/agent_client.h"

/* The answer's scan is set. The caller frees *ret. */
must_check struct error *kept_ask(struct agent_client *agent, const char *id,
				  const Goheapd__Analysis *analysis,
				  const struct patience *patience, Goheapd__Answer **ret);

must_check struct error *kept_ask_drop(struct agent_client *agent, const char *id,
				       const struct patience *patience);
must_check struct error *kept_ask_extend(struct agent_client *agent, const char *id,
					 uint64_t keep_us, bool implied,
					 const struct patience *patience);

/* What the agent still keeps for us: the answer's kept_scans is set. The caller frees *ret. */
must_check struct error *kept_ask_list(struct agent_client *agent, const struct patience *patience,
				       Goheapd__Answer **ret);

#endif
