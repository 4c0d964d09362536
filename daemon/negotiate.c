#include "daemon/negotiate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name, *media_type, *content_type;
} formats[FORMAT_END] = {
	[FORMAT_JSON] = { "json", "application/json", "application/json" },
	[FORMAT_TEXT] = { "text", "text/plain", "text/plain; charset=utf-8" },
	[FORMAT_PPROF] = { "pprof", "application/octet-stream", "application/octet-stream" },
	[FORMAT_PROMETHEUS] = { "prometheus", "text/plain",
				"text/plain; version=0.0.4; charset=utf-8" },
	[FORMAT_OPENMETRICS] = { "openmetrics", "application/openmetrics-text",
				 "application/openmetrics-text; version=1.0.0; charset=utf-8" },
};

const char *format_name(enum format format)
{
	return formats[format].name;
}

const char *format_content_type(enum format format)
{
	return formats[format].content_type;
}

/* The parameter's format must be one that is offered. */
static struct error *by_name(const enum format *offered, const char *name, enum format *ret)
{
	char list[64] = "";

	for (const enum format *f = offered; *f != FORMAT_NONE; f++) {
		size_t used = strlen(list);

		if (strcmp(formats[*f].name, name) == 0) {
			*ret = *f;
			return NULL;
		}
		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
			 formats[*f].name);
	}
	return error_new(ERROR_BAD_REQUEST, "format \"%s\" is not offered here; there is: %s", name,
			 list);
}

/* One element of an Accept header: "type/subtype;q=0.5;other=x". */
struct range {
	const char *type;
	size_t type_size;
	double quality;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Reads the element at *pos and steps over its comma. */
static struct range next_range(const char **pos)
{
	const char *p = *pos, *end = p + strcspn(p, ",");
	struct range range = { .quality = 1 };
	const char *quality;

	while (p < end && is_space(*p))
		p++;
	range.type = p;
	range.type_size = strcspn(p, ";,");
	while (range.type_size && is_space(p[range.type_size - 1]))
		range.type_size--;
	for (quality = memchr(p, ';', (size_t)(end - p)); quality;
	     quality = memchr(quality, ';', (size_t)(end - quality))) {
		quality++;
		while (quality < end && is_space(*quality))
			quality++;
		if (end - quality > 2 && (*quality == 'q' || *quality == 'Q') && quality[1] == '=')
			range.quality = strtod(quality + 2, NULL);
	}
	*pos = *end ? end + 1 : end;
	return range;
}

/* How well a range fits a media type: 0 not, 1 anything, 2 its kind, 3 exactly. */
static int range_fit(const struct range *range, const char *media_type)
{
	size_t kind = strcspn(media_type, "/") + 1;

	if (range->type_size == strlen(media_type) &&
	    strncasecmp(range->type, media_type, range->type_size) == 0)
		return 3;
	if (range->type_size == kind + 1 && strncasecmp(range->type, media_type, kind) == 0 &&
	    range->type[kind] == '*')
		return 2;
	return range->type_size == 3 && strncmp(range->type, "*/*", 3) == 0;
}

/* The quality that the header's best fitting range gives a media type; 0: not accepted. */
static double accepted_quality(const char *accept, const char *media_type)
{
	double quality = 0;
	int best = 0;

	while (*accept) {
		struct range range = next_range(&accept);
		int fit = range_fit(&range, media_type);

		if (fit > best) {
			best = fit;
			quality = range.quality;
		}
	}
	return quality;
}

struct error *negotiate(const enum format *offered, const char *parameter, const char *accept,
			enum format *ret)
{
	double best = 0;

	if (parameter)
		return by_name(offered, parameter, ret);
	*ret = offered[0];
	for (const enum format *f = offered; accept && *f != FORMAT_NONE; f++) {
		double quality = accepted_quality(accept, formats[*f].media_type);

		if (quality > best) {
			best = quality;
			*ret = *f;
		}
	}
	return NULL;
}
