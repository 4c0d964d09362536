#include "daemon/negotiate.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where a header names a version, that one is meant; a format without any is not. */
static const struct {
	const char *name, *media_type, *version, *content_type;
} formats[FORMAT_END] = {
	[FORMAT_JSON] = { "json", "application/json", NULL, "application/json" },
	[FORMAT_TEXT] = { "text", "text/plain", NULL, "text/plain; charset=utf-8" },
	[FORMAT_HTML] = { "html", "text/html", NULL, "text/html; charset=utf-8" },
	[FORMAT_PPROF] = { "pprof", "application/octet-stream", NULL, "application/octet-stream" },
	[FORMAT_PROMETHEUS] = { "prometheus", "text/plain", "0.0.4",
				"text/plain; version=0.0.4; charset=utf-8" },
	[FORMAT_OPENMETRICS] = { "openmetrics", "application/openmetrics-text", "1.0.0",
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

/* One element of an Accept header: "type/subtype;version=0.0.4;q=0.5;other=x". */
struct range {
	const char *type;
	size_t type_size;
	const char *version; /* NULL: none is named */
	size_t version_size;
	double quality;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Takes what is wanted of a parameter that begins at text. */
static void read_parameter(struct range *range, const char *text)
{
	static const char version[] = "version=";

	if (strncasecmp(text, "q=", 2) == 0) {
		range->quality = strtod(text + 2, NULL);
	} else if (strncasecmp(text, version, sizeof(version) - 1) == 0) {
		range->version = text + sizeof(version) - 1;
		range->version_size = strcspn(range->version, ";, \t");
	}
}

/* Reads the element at *pos and steps over its comma. */
static struct range next_range(const char **pos)
{
	const char *p = *pos, *end = p + strcspn(p, ",");
	struct range range = { .quality = 1 };
	const char *parameter;

	while (p < end && is_space(*p))
		p++;
	range.type = p;
	range.type_size = strcspn(p, ";,");
	while (range.type_size && is_space(p[range.type_size - 1]))
		range.type_size--;
	for (parameter = memchr(p, ';', (size_t)(end - p)); parameter;
	     parameter = memchr(parameter, ';', (size_t)(end - parameter))) {
		parameter++;
		while (parameter < end && is_space(*parameter))
			parameter++;
		read_parameter(&range, parameter);
	}
	*pos = *end ? end + 1 : end;
	return range;
}

static bool version_fits(const struct range *range, const char *version)
{
	return version && strlen(version) == range->version_size &&
	       memcmp(version, range->version, range->version_size) == 0;
}

/* How well a range fits a format: 0 not, 1 anything, 2 its kind, 3 exactly, 4 to the version. */
static int range_fit(const struct range *range, enum format format)
{
	const char *media_type = formats[format].media_type;
	size_t kind = strcspn(media_type, "/") + 1;

	if (range->type_size == strlen(media_type) &&
	    strncasecmp(range->type, media_type, range->type_size) == 0) {
		if (range->version)
			return version_fits(range, formats[format].version) ? 4 : 0;
		return 3;
	}
	if (range->type_size == kind + 1 && strncasecmp(range->type, media_type, kind) == 0 &&
	    range->type[kind] == '*')
		return 2;
	return range->type_size == 3 && strncmp(range->type, "*/*", 3) == 0;
}

/* The quality that the header's best fitting range gives a format; 0: not accepted. */
static double accepted_quality(const char *accept, enum format format)
{
	double quality = 0;
	int best = 0;

	while (*accept) {
		struct range range = next_range(&accept);
		int fit = range_fit(&range, format);

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
		double quality = accepted_quality(accept, *f);

		if (quality > best) {
			best = quality;
			*ret = *f;
		}
	}
	return NULL;
}
