/*
 * What the agent says of processes without stopping any. Used by the daemon and by goheap.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include <stdbool.h>

#include "daemon/agent_client.h"
#include "daemon/patience.h"

/* Every Go process. The caller frees *ret, whose process_list is set. */
must_check struct error *process_list(struct agent_client *agent, const struct patience *patience,
				      Goheapd__Answer **ret);

/* One process, Go or not. The caller frees *ret, whose process is set. */
must_check struct error *process_look(struct agent_client *agent, uint32_t pid,
				      const struct patience *patience, Goheapd__Answer **ret);

/* Its overview. The caller frees *ret, whose overview is set. */
must_check struct error *process_overview(struct agent_client *agent,
					  const Goheapd__Process *process,
					  const struct patience *patience, Goheapd__Answer **ret);

/* The caller frees *ret with free_unpacked. */
must_check struct error *process_copy(const Goheapd__Process *process, Goheapd__Process **ret);

/* By pid. */
void process_sort(Goheapd__Process **processes, size_t count);

/*
 * Whether a process has that command name. The kernel cuts names at 15 bytes; a longer one also
 * has to be its executable's.
 */
bool process_has_name(const Goheapd__Process *process, const char *name);

/* A pid as people write it; ERROR_BAD_REQUEST for what is no number, ERROR_NO_PROCESS for one that
 * no process can have. */
must_check struct error *process_parse_pid(const char *text, uint32_t *ret);

#endif
