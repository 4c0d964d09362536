/*
 * The command line of goheapd.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

enum { OPTIONS_LISTEN_MAX = 16 };

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* Strings belong to argv; what was not given is NULL or 0. */
struct options {
	enum options_action action;
	const char *listen[OPTIONS_LISTEN_MAX];
	size_t listen_count;
	const char *socket, *config, *run_dir, *cache_dir, *state_dir;
	const char *agent, *agent_socket;
	uint64_t max_scan_memory;
};

/* ERROR_BAD_REQUEST with a sentence for the user if the line is wrong. */
must_check struct error *options_parse(int argc, char **argv, struct options *ret);

/* What --help prints. */
extern const char options_help[];

#endif
