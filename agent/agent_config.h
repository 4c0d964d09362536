/*
 * The agent's part of the configuration file: the floor below which it does not go, whoever asks.
 * Other keys in the file are the daemon's, which checks them all.
 */
#ifndef AGENT_AGENT_CONFIG_H
#define AGENT_AGENT_CONFIG_H

#include <stdint.h>

#include "proto/base/error.h"

struct agent_config {
	uint64_t min_stop_interval_ms; /* between two stops of one target */
	unsigned max_scans;            /* at once */
	uint64_t max_scan_memory;      /* bytes of one decoder; 0: no limit */
};

void agent_config_init(struct agent_config *config);

/* Overwrites what the file sets. ERROR_BAD_REQUEST with file and line for what does not parse. */
must_check struct error *agent_config_read(struct agent_config *config, const char *path);

#endif
