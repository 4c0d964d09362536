#include "proto/base/config_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

enum { SIZE_MAX_BYTES = 1 << 20 };

/* What a character belongs to. */
enum part { PLAIN, QUOTED, LINE_COMMENT, BLOCK_COMMENT };

/* The part that begins at text, where none has begun. */
static enum part part_begins(const char *text, const char *end)
{
	bool has_next = text + 1 < end;

	if (*text == '#' || (*text == '/' && has_next && text[1] == '/'))
		return LINE_COMMENT;
	if (*text == '/' && has_next && text[1] == '*')
		return BLOCK_COMMENT;
	return *text == '"' || *text == '\'' ? QUOTED : PLAIN;
}

/* Where it ends: the character behind it. */
static char *part_end(enum part part, char *text, const char *end)
{
	char quote = *text;

	for (char *p = text + (part == BLOCK_COMMENT ? 2 : 1); p < end; p++) {
		switch (part) {
		case LINE_COMMENT:
			if (*p == '\n')
				return p;
			break;
		case BLOCK_COMMENT:
			if (*p == '*' && p + 1 < end && p[1] == '/')
				return p + 2;
			break;
		case QUOTED:
			if (*p == '\\')
				p++;
			else if (*p == quote)
				return p + 1;
			break;
		case PLAIN:
			return p;
		}
	}
	return (char *)(uintptr_t)end;
}

void config_text_blank(char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		enum part part = part_begins(text, end);
		char *next = part == PLAIN ? text + 1 : part_end(part, text, end);

		for (; text < next; text++) {
			if ((part == LINE_COMMENT || part == BLOCK_COMMENT) && *text != '\n')
				*text = ' ';
		}
	}
}

struct error *config_text_read(const char *path, char **ret, size_t *ret_size)
{
	int fd scoped(closep) = open(path, O_RDONLY | O_CLOEXEC);
	char *text scoped(freep) = malloc(SIZE_MAX_BYTES);
	size_t size = 0;
	ssize_t part;

	if (fd < 0)
		return error_recode(error_system(errno, "cannot read %s", path), ERROR_SYSTEM);
	if (!text)
		return &error_nomem;
	while ((part = read(fd, text + size, SIZE_MAX_BYTES - 1 - size)) > 0)
		size += (size_t)part;
	if (part < 0)
		return error_recode(error_system(errno, "cannot read %s", path), ERROR_SYSTEM);
	if (size == SIZE_MAX_BYTES - 1)
		return error_new(ERROR_LIMIT, "%s is larger than a configuration may be", path);
	text[size] = '\0';
	config_text_blank(text, size);
	*ret = take(text);
	*ret_size = size;
	return NULL;
}
