/*
 * The configuration file, which goheapd and its agent both read. Every key is known here, with its
 * range, whoever uses it: one that is not, or a value out of its range, is an error with the file's
 * line. What the file does not set has a cfg_size of 0.
 */
#ifndef PROTO_BASE_CONFIG_FILE_H
#define PROTO_BASE_CONFIG_FILE_H

#include "proto/base/error.h"

struct cfg_t;

enum {
	/* Of a list of patterns: how many, and how long each may be. */
	CONFIG_PATTERNS_MAX = 64,
	CONFIG_PATTERN_MAX_BYTES = 255,
	/* Of the name of a folder. */
	CONFIG_FOLDER_MAX_BYTES = 1023,
};

/*
 * The caller frees *ret. ERROR_SYSTEM if the file cannot be read, ERROR_FORMAT if it does not
 * parse. Not for use by two threads at once.
 */
must_check struct error *config_file_read(const char *path, struct cfg_t **ret);
void config_file_free(struct cfg_t *cfg);

#endif
