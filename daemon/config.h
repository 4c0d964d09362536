/*
 * The configuration file, by default below the system's configuration folder. Every key is known;
 * one that is not, or whose value is out of its range, is an error with the file's line.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdint.h>

#include "daemon/render.h"
#include "proto/base/error.h"

struct config {
	uint64_t min_stop_interval_us;  /* between two stops of one target */
	uint32_t max_scans;             /* running at once */
	uint64_t max_scan_memory;       /* bytes that one scan may take; 0: no limit */
	char *user;                     /* whom the daemon runs as when root starts it, or NULL */
	struct metric_settings metrics; /* its labels are the configuration's own */
};

/* The defaults. Give it back with config_fini. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* Reads a file over what config holds. On failure config is as it was. */
must_check struct error *config_read(struct config *config, const char *path);

#endif
