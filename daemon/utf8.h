/*
 * UTF-8 from a target, which need not be any: decoding that always advances, and copies in which
 * every invalid sequence has become U+FFFD.
 */
#ifndef DAEMON_UTF8_H
#define DAEMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_REPLACEMENT = 0xfffd };

/*
 * Decodes the character at *pos, which lies before end, and steps over it; over one byte, giving
 * UTF8_REPLACEMENT, where there is no valid one.
 */
uint32_t utf8_next(const uint8_t **pos, const uint8_t *end);

/* Characters that would do something to a terminal, or turn the direction of what follows. */
bool utf8_is_control(uint32_t code);

/* A NUL-terminated copy with replacements, its size in *ret_size; NULL without memory. */
char *utf8_clean(const void *bytes, size_t size, size_t *ret_size);

#endif
