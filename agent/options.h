/*
 * The command line of goheap-agent.
 */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct options {
	/* All borrow from argv; NULL: not given. */
	const char *role; /* "keeper" or "decoder": how the agent starts itself */
	const char *config;
	const char *cache_dir;
	const char *run_dir;
	const char *listen;
	const char *user;
	int socket_fd;            /* -1: not given */
	bool has_max_scan_memory; /* given, so that it goes before the configuration's */
	uint64_t max_scan_memory; /* bytes, 0: no limit */
	bool help, version;
};

/* ERROR_BAD_REQUEST saying what is wrong with the command line. */
must_check struct error *options_parse(struct options *options, int argc, char **argv);

void options_print_help(void);

#endif
