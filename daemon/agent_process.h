/*
 * An agent that we start ourselves: the goheap-agent program, joined to us by a socketpair. It
 * ends when its connection does.
 */
#ifndef DAEMON_AGENT_PROCESS_H
#define DAEMON_AGENT_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/agent_source.h"

/* How to start it. Strings are borrowed; NULL and 0 leave an option out. */
struct agent_spec {
	const char *program;
	const char *config, *run_dir, *cache_dir;
	uint64_t max_scan_memory;
};

/* The agent's program: beside our own, else where it is installed. The caller frees *ret. */
must_check struct error *agent_program_find(char **ret);

/* Starts it. The socket and the process are the caller's: close the one, then end the other. */
must_check struct error *agent_process_start(const struct agent_spec *spec, pid_t *ret_pid,
					     int *ret_socket);

/* Waits some seconds for one whose connection was closed, then kills it; reaps it. */
void agent_process_end(pid_t pid);

/* A source that starts an agent whenever it is asked; spec must outlive it. */
must_check struct error *agent_source_process(const struct agent_spec *spec,
					      struct agent_source **ret);

#endif
