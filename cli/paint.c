#include "cli/paint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOLD     "\033[1m"
#define RED      "\033[1;31m"
#define YELLOW   "\033[33m"
#define CYAN     "\033[36m"
#define DIM      "\033[2m"
#define NO_STYLE "\033[0m"

/* By the line's first word: its style, and whether the whole line takes it. */
static const struct {
	const char *word, *style;
	bool whole_line;
} styles[] = {
	{ "!!", RED, true },          { "WARN", YELLOW, true },    { "NEXT", DIM, true },
	{ "LIMIT", BOLD, false },     { "RSS", BOLD, false },      { "TRUST", BOLD, false },
	{ "EXE", BOLD, false },       { "RUNS", BOLD, false },     { "MEMORY", BOLD, false },
	{ "GC", BOLD, false },        { "CGROUP", BOLD, false },   { "KNOWN", BOLD, false },
	{ "COST", BOLD, false },      { "goroutine", CYAN, true }, { "PID", BOLD, true },
	{ "ADDRESSES", BOLD, true },  { "WHO", BOLD, true },       { "SELECTED", BOLD, true },
	{ "BY", BOLD, true },         { "ROOTS", BOLD, true },     { "TYPES", BOLD, true },
	{ "CHAINS", BOLD, true },     { "CHANGE", BOLD, true },    { "LABELS", BOLD, true },
	{ "GOROUTINES", BOLD, true },
};

bool paint_is_wanted(FILE *stream)
{
	const char *terminal = getenv("TERM"), *refused = getenv("NO_COLOR");

	return isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0 &&
	       !(refused && *refused);
}

static void paint_line(FILE *stream, const char *line, size_t size, bool is_first)
{
	size_t indent = strspn(line, " "), word = strcspn(line + indent, " \n");
	const char *style = is_first ? BOLD : NULL;
	size_t painted = size;

	for (size_t i = 0; i < sizeof(styles) / sizeof(*styles); i++) {
		if (strlen(styles[i].word) == word &&
		    memcmp(line + indent, styles[i].word, word) == 0) {
			style = styles[i].style;
			painted = styles[i].whole_line ? size : indent + word;
		}
	}
	if (style)
		fprintf(stream, "%s%.*s" NO_STYLE, style, (int)painted, line);
	else
		painted = 0;
	fwrite(line + painted, 1, size - painted, stream);
	fputc('\n', stream);
}

bool paint_text(FILE *stream, const char *text, size_t size)
{
	const char *end = text + size;
	bool is_first = true;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);

		paint_line(stream, text, length, is_first);
		is_first = false;
		text = newline ? newline + 1 : end;
	}
	return fflush(stream) == 0 && !ferror(stream);
}
