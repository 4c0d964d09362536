/*
 * The log: one line an event on stderr, for the journal. Under systemd lines begin with the
 * journal's priority mark (sd-daemon(3)), elsewhere with the level's name. Strings that come from
 * a target are passed through log_escape; memory contents, label values and tokens stay out.
 */
#ifndef PROTO_BASE_LOG_H
#define PROTO_BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above this level are dropped; LOG_LEVEL_INFO at first. */
void log_set_level(enum log_level level);

/* area is the part that speaks ("http", "scan"); the message is a sentence, then key=value. */
void log_line(enum log_level level, const char *area, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(area, ...)   log_line(LOG_LEVEL_ERROR, area, __VA_ARGS__)
#define log_warning(area, ...) log_line(LOG_LEVEL_WARNING, area, __VA_ARGS__)
#define log_info(area, ...)    log_line(LOG_LEVEL_INFO, area, __VA_ARGS__)
#define log_debug(area, ...)   log_line(LOG_LEVEL_DEBUG, area, __VA_ARGS__)

/*
 * Writes text to buffer with control characters, quotes, backslashes and bytes above 0x7e as
 * \xNN, cut where the buffer ends, and returns buffer.
 */
const char *log_escape(const char *text, char *buffer, size_t size);

#endif
