/*
 * Times as the HTTP contract writes them: RFC 3339, UTC, with as many decimals as the time has.
 */
#ifndef DAEMON_RFC3339_H
#define DAEMON_RFC3339_H

#include <stdbool.h>
#include <stdint.h>

enum { RFC3339_SIZE = 40 };

/* Writes nanoseconds since the epoch, like "2026-02-03T02:58:11.25Z", and returns buffer. */
const char *rfc3339_format(uint64_t time_ns, char buffer[RFC3339_SIZE]);

/* Whether text has that form. */
bool rfc3339_is_valid(const char *text);

/* The instant that such a text names; false if it is none, or before 1970 or after 2554. */
bool rfc3339_parse(const char *text, uint64_t *ret_ns);

#endif
