/*
 * The agent's part of the configuration file: the floor below which it does not go, whoever asks,
 * and what the operator vouches for. The rest of the file is the daemon's.
 */
#ifndef AGENT_AGENT_CONFIG_H
#define AGENT_AGENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/error.h"

/* Where distributions keep DWARF that is not in executables. */
#define AGENT_CONFIG_DEBUG_DIR "/usr/lib/debug"

/* Patterns as fnmatch takes them. */
struct config_patterns {
	char **items;
	size_t count;
};

struct agent_config {
	uint64_t min_stop_interval_ms; /* between two stops of one target */
	unsigned max_scans;            /* at once */
	uint64_t max_scan_memory;      /* bytes of one decoder; 0: no limit */
	unsigned max_kept_scans;       /* 0: none is kept */
	bool has_max_kept_memory;      /* else a part of the machine's */
	uint64_t max_kept_memory;      /* bytes of all decoders of kept scans */
	double huge_page_weight;       /* of max_pause, that a stop may take to spare them */
	char *user;                    /* the daemon's; NULL: not set */
	char *debug_dir;               /* NULL: AGENT_CONFIG_DEBUG_DIR */
	/* Whose seccomp filters let clone and wait4 pass. */
	struct config_patterns clone_allowed_cgroups, clone_allowed_units;
};

/* The defaults. Give it back with agent_config_fini. */
void agent_config_init(struct agent_config *config);
void agent_config_fini(struct agent_config *config);

/* Overwrites what the file sets. ERROR_FORMAT with file and line for what does not parse. */
must_check struct error *agent_config_read(struct agent_config *config, const char *path);

#endif
