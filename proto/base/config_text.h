/*
 * Configuration files as libconfuse should see them. It counts the lines behind a comment wrongly
 * (three for one, as of 3.3), so that its messages name the wrong line: comments are blanked before
 * it reads, and their newlines kept.
 */
#ifndef PROTO_BASE_CONFIG_TEXT_H
#define PROTO_BASE_CONFIG_TEXT_H

#include <stddef.h>

#include "proto/base/error.h"

/*
 * Reads a whole file, of a sensible size, and blanks its comments. The caller frees *ret, which
 * ends in a NUL that *ret_size does not count. ERROR_SYSTEM if it cannot be read.
 */
must_check struct error *config_text_read(const char *path, char **ret, size_t *ret_size);

/* Overwrites comments (#, //, and C's) outside of quotes with spaces. */
void config_text_blank(char *text, size_t size);

#endif
