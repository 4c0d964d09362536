/*
 * What a client can write: the request's target in the first line, its Host, Accept and a
 * configuration file in the next ones. Everything is read as the daemon would read it.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/negotiate.h"
#include "daemon/origin.h"
#include "daemon/params.h"
#include "daemon/process.h"
#include "daemon/route.h"
#include "daemon/text.h"
#include "daemon/utf8.h"
#include "proto/base/config_text.h"
#include "tests/fuzz/fuzz.h"

static void try_target(const char *target)
{
	struct params params;
	struct uri uri;
	uint32_t pid;
	struct error *err = uri_parse(target, &uri);
	const struct route *route = route_find(&uri);

	(void)route_absence(&uri);
	(void)route_is_for_pprof(&uri);
	if (!err)
		err = params_read(&uri, route ? route->params : ~0u, &params);
	if (!err && uri.segment_count > 1)
		err = process_parse_pid(uri.segments[1], &pid);
	error_free(err);
	uri_fini(&uri);
}

static void try_header(const char *value)
{
	static const enum format offered[] = { FORMAT_JSON, FORMAT_TEXT, FORMAT_PPROF,
					       FORMAT_NONE };
	enum format format;

	(void)origin_is_loopback(value);
	error_free(negotiate(offered, NULL, value, &format));
	error_free(negotiate(offered, value, NULL, &format));
}

/* A line without a NUL in it, as its own allocation, so that reading past its end is noticed. */
static char *copy_line(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);

	if (!line)
		abort();
	memcpy(line, data, size);
	line[size] = '\0';
	return line;
}

static void try_bytes(const uint8_t *data, size_t size)
{
	char *copy = copy_line(data, size);
	size_t clean_size;
	struct text text;

	config_text_blank(copy, size);
	free(copy);
	free(utf8_clean(data, size, &clean_size));
	text_init(&text);
	(void)text_escaped(&text, (ProtobufCBinaryData){ size, (uint8_t *)(uintptr_t)data }, 40);
	text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;

	if (size == 0)
		return 0;
	try_bytes(data, size);
	for (int number = 0; number < 3 && data < end; number++) {
		const uint8_t *newline = memchr(data, '\n', (size_t)(end - data));
		const uint8_t *stop = newline ? newline : end;
		char *line = copy_line(data, (size_t)(stop - data));

		if (number == 0)
			try_target(line);
		else
			try_header(line);
		free(line);
		data = newline ? newline + 1 : end;
	}
	return 0;
}
