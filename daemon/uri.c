#include "daemon/uri.h"

#include <string.h>
#include <strings.h>

/* The value of a hexadecimal digit, or -1. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char label[] = "label";

/*
 * Decodes size bytes of text into a string of its own, which may hold zero bytes. '+' is a space in
 * queries only.
 */
static struct error *decode(const char *text, size_t size, bool plus_is_space, char **ret,
			    size_t *ret_size)
{
	char *out scoped(freep) = malloc(size + 1);
	size_t used = 0;

	if (!out)
		return &error_nomem;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '%') {
			int high = size - i > 2 ? hex_digit(text[i + 1]) : -1;
			int low = size - i > 2 ? hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return error_new(
				    ERROR_BAD_REQUEST,
				    "a %% in the URL is not followed by two hexadecimal digits");
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		out[used++] = c;
	}
	out[used] = '\0';
	*ret = take(out);
	*ret_size = used;
	return NULL;
}

/* The same where a zero byte would make it another string. */
static struct error *decode_name(const char *text, size_t size, bool plus_is_space, char **ret)
{
	char *name scoped(freep) = NULL;
	size_t name_size;
	struct error *err = decode(text, size, plus_is_space, &name, &name_size);

	if (err)
		return err;
	if (strlen(name) != name_size)
		return error_new(ERROR_BAD_REQUEST, "the URL holds a zero byte");
	*ret = take(name);
	return NULL;
}

/* Only labels may come more than once: each is one more condition. */
static struct error *check_room(const struct uri *uri, const char *name)
{
	bool is_label = strcmp(name, label) == 0;

	if (!is_label && uri_param(uri, name))
		return error_new(ERROR_BAD_REQUEST, "parameter \"%s\" is given twice", name);
	if (uri->param_count < URI_PARAMS_MAX)
		return NULL;
	return error_new(is_label ? ERROR_TOO_MANY_LABELS : ERROR_BAD_REQUEST,
			 "more than %d parameters", URI_PARAMS_MAX);
}

/* Adds "name=value" of size bytes; without '=' the value is empty. */
static struct error *add_param(struct uri *uri, const char *text, size_t size, bool plus_is_space)
{
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals ? (size_t)(equals - text) : size;
	char *name scoped(freep) = NULL;
	char *value scoped(freep) = NULL;
	size_t value_size;
	struct error *err = decode_name(text, name_size, plus_is_space, &name);

	if (err)
		return err;
	err = equals ? decode(equals + 1, size - name_size - 1, plus_is_space, &value, &value_size)
		     : decode("", 0, false, &value, &value_size);
	if (!err)
		err = check_room(uri, name);
	if (err)
		return err;
	uri->params[uri->param_count++] = (struct uri_param){ .name = take(name),
							      .value = take(value),
							      .value_size = value_size };
	return NULL;
}

/* How many leading segments name something and may hold any character. */
static size_t name_segments(const struct uri *uri)
{
	bool names_process = uri->segment_count > 0 && (strcmp(uri->segments[0], "pid") == 0 ||
							strcmp(uri->segments[0], "comm") == 0);

	return names_process ? 2 : 1;
}

static struct error *add_segment(struct uri *uri, const char *text, size_t size)
{
	struct error *err;

	if (uri->segment_count >= name_segments(uri) && memchr(text, '=', size))
		return add_param(uri, text, size, false);
	if (uri->segment_count == URI_SEGMENTS_MAX)
		return error_new(ERROR_BAD_REQUEST, "the path has more than %d segments",
				 URI_SEGMENTS_MAX);
	err = decode_name(text, size, false, &uri->segments[uri->segment_count]);
	if (!err)
		uri->segment_count++;
	return err;
}

static struct error *parse_path(struct uri *uri, const char *path, size_t size)
{
	const char *end = path + size;
	struct error *err = NULL;

	while (!err && path < end) {
		const char *start = path + 1; /* after the slash */
		const char *slash = memchr(start, '/', (size_t)(end - start));

		path = slash ? slash : end;
		if (start < end) /* a slash at the end is no empty segment */
			err = add_segment(uri, start, (size_t)(path - start));
	}
	return err;
}

static struct error *parse_query(struct uri *uri, const char *query)
{
	struct error *err = NULL;

	while (!err && *query) {
		size_t size = strcspn(query, "&");

		if (size)
			err = add_param(uri, query, size, true);
		query += size + (query[size] == '&');
	}
	return err;
}

/* Clients that think we are a proxy send the whole URL; what stands before the path goes. */
static const char *skip_authority(const char *target)
{
	static const char scheme[] = "http://";

	if (strncasecmp(target, scheme, sizeof(scheme) - 1) != 0)
		return target;
	target += sizeof(scheme) - 1;
	target += strcspn(target, "/?");
	return *target == '/' ? target : "/";
}

struct error *uri_parse(const char *target, struct uri *ret)
{
	size_t path_size;
	struct error *err;

	*ret = (struct uri){ 0 };
	target = skip_authority(target);
	if (*target != '/')
		return error_new(ERROR_BAD_REQUEST, "the request's target is no path");
	path_size = strcspn(target, "?#");
	err = parse_path(ret, target, path_size);
	if (!err && target[path_size] == '?')
		err = parse_query(ret, target + path_size + 1);
	return err;
}

void uri_fini(struct uri *uri)
{
	for (size_t i = 0; i < uri->segment_count; i++)
		free(uri->segments[i]);
	for (size_t i = 0; i < uri->param_count; i++) {
		free(uri->params[i].name);
		free(uri->params[i].value);
	}
	*uri = (struct uri){ 0 };
}

/* Whether a parameter called label begins at text, however it is spelt. */
static bool is_label_param(const char *text, size_t size)
{
	const char *equals = memchr(text, '=', size);
	char *name scoped(freep) = NULL;
	struct error *err scoped(error_freep) = NULL;

	if (!equals || equals - text > (ptrdiff_t)(3 * (sizeof(label) - 1)))
		return false;
	err = decode_name(text, (size_t)(equals - text), true, &name);
	return err || strcmp(name, label) == 0; /* what cannot be told is left out, too */
}

struct error *uri_without_labels(const char *target, char **ret)
{
	char *copy = malloc(strlen(target) + 1), *to = copy;

	if (!copy)
		return &error_nomem;
	while (*target) {
		size_t size = strcspn(target, "/?&");
		size_t kept = is_label_param(target, size)
				  ? (size_t)((char *)memchr(target, '=', size) - target) + 1
				  : size;

		memcpy(to, target, kept);
		to += kept;
		target += size;
		if (*target)
			*to++ = *target++;
	}
	*to = '\0';
	*ret = copy;
	return NULL;
}

const char *uri_param(const struct uri *uri, const char *name)
{
	for (size_t i = 0; i < uri->param_count; i++) {
		if (strcmp(uri->params[i].name, name) == 0)
			return uri->params[i].value;
	}
	return NULL;
}
