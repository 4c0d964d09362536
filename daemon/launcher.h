/*
 * The launcher: a child of goheapd that stays what goheapd was started as, and starts agents when
 * it is told to, so that goheapd can give up root and still replace an agent that has died. It
 * reads one byte at a time from goheapd and nothing from anybody else, and ends with it.
 */
#ifndef DAEMON_LAUNCHER_H
#define DAEMON_LAUNCHER_H

#include "daemon/agent_process.h"

/*
 * Forks the launcher; call it before there are threads. socket_path, unless NULL, is a file that
 * the launcher removes at the end, in case goheapd may not. The source takes over the child.
 */
must_check struct error *agent_source_launcher(const struct agent_spec *spec,
					       const char *socket_path, struct agent_source **ret);

#endif
