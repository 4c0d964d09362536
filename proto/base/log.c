#include "proto/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

static enum log_level max_level = LOG_LEVEL_INFO;

/* Priorities of syslog(3), in sd-daemon(3)'s prefix form. */
static const struct {
	const char *journal, *plain;
} prefixes[] = {
	[LOG_LEVEL_ERROR] = { "<3>", "error " },
	[LOG_LEVEL_WARNING] = { "<4>", "warning " },
	[LOG_LEVEL_INFO] = { "<6>", "info " },
	[LOG_LEVEL_DEBUG] = { "<7>", "debug " },
};

void log_set_level(enum log_level level)
{
	max_level = level;
}

void log_line(enum log_level level, const char *area, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	const char *prefix;
	va_list args;
	int used, text;

	if (level > max_level)
		return;
	prefix = getenv("JOURNAL_STREAM") ? prefixes[level].journal : prefixes[level].plain;
	used = snprintf(line, sizeof(line), "%s%s: ", prefix, area);
	if (used < 0 || (size_t)used >= sizeof(line) - 1)
		return;
	va_start(args, format);
	text = vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, args);
	va_end(args);
	if (text < 0)
		return;
	used = used + text < (int)sizeof(line) - 2 ? used + text : (int)sizeof(line) - 2;
	line[used++] = '\n';
	/* one write, so that lines of several processes do not mix; a full pipe loses a line */
	if (write(STDERR_FILENO, line, (size_t)used) < 0)
		return;
}

const char *log_escape(const char *text, char *buffer, size_t size)
{
	size_t used = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e || *p == '"' || *p == '\\') {
			if (size - used < 5)
				break;
			used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", *p);
		} else {
			if (size - used < 2)
				break;
			buffer[used++] = (char)*p;
		}
	}
	buffer[used] = '\0';
	return buffer;
}
