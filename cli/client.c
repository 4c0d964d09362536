#include "cli/client.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { CONNECT_TIMEOUT_MS = 5000, GRACE_MS = 10000, HTTP_OK = 200, HTTP_BAD_REQUEST = 400 };

/* Everything but what needs no escape anywhere in a URL. */
static void append_escaped(struct text *url, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (const char *c = value; *c; c++) {
		if (strchr(plain, *c))
			text_append(url, c, 1);
		else
			text_printf(url, "%%%02X", (unsigned char)*c);
	}
}

static bool is_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text);
}

/* What tables are made of is a profile, too. */
static const char *format_of(const struct options *options)
{
	enum command_form form = options->command->form;

	if (form == FORM_FILE || form == FORM_TOP || form == FORM_WHY)
		return "pprof";
	return options->json || options->command->is_census ? "json" : "text";
}

static void write_url(struct text *url, const struct options *options)
{
	const struct command *command = options->command;

	text_string(url, "http://localhost");
	if (command->endpoint) {
		text_string(url, is_number(options->process) ? "/pid/" : "/comm/");
		append_escaped(url, options->process);
		text_string(url, command->endpoint);
		if (options->address) {
			text_string(url, "/");
			append_escaped(url, options->address);
		}
	} else {
		text_string(url, "/pids");
	}
	text_printf(url, "?format=%s", format_of(options));
	if (command->is_census)
		text_string(url, "&depth=census");
	for (unsigned i = 0; i < options->given_count; i++) {
		text_printf(url, "&%s=", options->given[i].name);
		append_escaped(url, options->given[i].value);
	}
	text_append(url, "", 1);
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct text *body = arg;

	text_append(body, data, size * count);
	return body->err ? 0 : size * count;
}

/* "code: message", as where a profile was asked for; NULL: it is not like that. */
static struct error *plain_refusal(enum error_code code, const struct text *body)
{
	const char *text = (const char *)body->bytes.data;
	size_t size = body->bytes.size;
	const char *colon = size ? memmem(text, size, ": ", 2) : NULL;
	const char *end = colon ? memchr(colon, '\n', size - (size_t)(colon - text)) : NULL;

	if (!end)
		return NULL;
	return error_new(code, "%.*s (%.*s)", (int)(end - colon - 2), colon + 2,
			 (int)(colon - text), text);
}

/* "message (code)" from {"error": {...}} or such a line, or that the answer was none of ours. */
static struct error *refusal(long status, const struct text *body)
{
	enum error_code code = status == HTTP_BAD_REQUEST ? ERROR_BAD_REQUEST : ERROR_SYSTEM;
	json_t *top = json_loadb((const char *)body->bytes.data, body->bytes.size, 0, NULL);
	const char *message = NULL, *name = NULL;
	struct error *err;

	if (json_unpack(top, "{s:{s:s, s:s}}", "error", "message", &message, "code", &name) == 0)
		err = error_new(code, "%s (%s)", message, name);
	else
		err = plain_refusal(code, body);
	if (!err)
		err = error_new(code, "the daemon answered with status %ld", status);
	json_decref(top);
	return err;
}

static struct error *set_up(CURL *curl, const char *path, const struct text *url,
			    const struct options *options, struct text *body)
{
	long timeout_ms =
	    (long)((options->params.timeout_us + options->params.over_us) / 1000) + GRACE_MS;

	if (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path) ||
	    curl_easy_setopt(curl, CURLOPT_URL, (const char *)url->bytes.data) ||
	    curl_easy_setopt(curl, CURLOPT_PROXY, "") ||
	    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) ||
	    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS) ||
	    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms) ||
	    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) ||
	    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body))
		return error_new(ERROR_SYSTEM, "cannot set up a request for %s", path);
	return NULL;
}

static struct error *perform(CURL *curl, const char *path, struct text *body, bool *ret_no_daemon)
{
	long status = 0;
	CURLcode code = curl_easy_perform(curl);
	struct error *err = text_finish(body);

	if (err)
		return err;
	if (code == CURLE_COULDNT_CONNECT) {
		*ret_no_daemon = true;
		return NULL;
	}
	if (code != CURLE_OK)
		return error_new(ERROR_SYSTEM, "the daemon at %s: %s", path,
				 curl_easy_strerror(code));
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status == HTTP_OK ? NULL : refusal(status, body);
}

struct error *client_ask(const char *path, const struct options *options, struct text *text,
			 bool *ret_no_daemon)
{
	CURL *curl = curl_easy_init();
	struct text url;
	struct error *err;

	*ret_no_daemon = false;
	if (!curl)
		return &error_nomem;
	text_init(&url);
	write_url(&url, options);
	err = text_finish(&url);
	if (!err)
		err = set_up(curl, path, &url, options, text);
	if (!err)
		err = perform(curl, path, text, ret_no_daemon);
	text_fini(&url);
	curl_easy_cleanup(curl);
	return err;
}
