/*
 * The key of a file's content, as it travels: the same key, the same bytes, as far as a file
 * system tells. It is taken from the open descriptor, so that it is the key of what is read.
 */
#ifndef AGENT_FILE_KEY_H
#define AGENT_FILE_KEY_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct index_file_key;

/* ERROR_NOT_GO if it is no regular file: nothing else can be an executable. */
must_check struct error *file_key_read(int fd, Goheapd__FileKey *ret);

/* The same as the index of a binary has it. */
void file_key_to_index(const Goheapd__FileKey *key, struct index_file_key *ret);

bool file_key_equal(const Goheapd__FileKey *a, const Goheapd__FileKey *b);

#endif
