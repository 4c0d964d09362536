/*
 * The launcher: a child of goheapd that stays root and makes connections to agents, starting them
 * if need be, when it is told to, so that goheapd can give up root and still replace an agent that
 * has died. It reads one byte at a time from goheapd and nothing from anybody else, and ends with
 * it.
 */
#ifndef DAEMON_LAUNCHER_H
#define DAEMON_LAUNCHER_H

#include "daemon/agent_source.h"

/*
 * Forks the launcher, which asks origin for connections; call it before there are threads. Takes
 * origin over, on failure too. socket_path, unless NULL, is a file that the launcher removes at the
 * end, in case goheapd may not. The source takes over the child.
 */
must_check struct error *agent_source_launcher(struct agent_source *origin, const char *socket_path,
					       struct agent_source **ret);

#endif
