#include "daemon/answer_profile.h"

#include <inttypes.h>

#include "daemon/answer_diff.h"
#include "daemon/answer_scan.h"
#include "daemon/object_query.h"

/* ---- reference chains ---- */

static struct error *answer_chains(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_PPROF] = render_pprof_profile,
		[FORMAT_TEXT] = render_text_profile,
	};
	struct object_query query;
	struct error *err = object_query_profile(&query, &exchange->params);

	return err ? err : answer_scan(exchange, 0, &query.analysis, renderers);
}

struct error *answer_profile(struct exchange *exchange)
{
	return answer_chains(exchange);
}

/* As net/http/pprof has it: a change over some seconds is for pprof alone. */
static struct error *check_go_form(const struct exchange *exchange)
{
	if (exchange->params.over_us && exchange->format == FORMAT_TEXT)
		return error_new(
		    ERROR_BAD_REQUEST,
		    "seconds: with debug= or format=text there is no change over them; "
		    "/pid/%" PRIu32 "/diff?over=SECONDS has one",
		    exchange->pid);
	return NULL;
}

struct error *answer_pprof_heap(struct exchange *exchange)
{
	struct error *err = check_go_form(exchange);

	if (err)
		return err;
	return exchange->params.over_us ? answer_diff(exchange) : answer_chains(exchange);
}

/* ---- goroutines ---- */

struct error *answer_pprof_goroutine(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_goroutines,
		[FORMAT_TEXT] = render_text_goroutines,
	};
	const struct params *params = &exchange->params;
	unsigned dead = params->dead ? SCAN_DEAD_GOROUTINES : 0;
	struct error *err = check_go_form(exchange);

	if (err)
		return err;
	if (exchange->format != FORMAT_PPROF && params->debug != 1 && !params->over_us)
		return answer_scan(exchange, SCAN_GOROUTINES | dead, NULL, renderers);
	exchange_refuse(exchange, 404, "not_found",
			"goroutines have no pprof form in this version: ask for debug=2, which is "
			"Go's traceback, or for format=json");
	return NULL;
}

/* ---- the index ---- */

static const struct {
	const char *name, *query, *what;
} profiles[] = {
	{ "heap", "", "who keeps the memory alive, for go tool pprof" },
	{ "heap", "?debug=1", "the same as text" },
	{ "goroutine", "?debug=2", "all goroutines with their stacks, as Go's traceback" },
};

static void write_html(struct text *page, uint32_t pid)
{
	text_printf(page,
		    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>/debug/pprof/ of %" PRIu32
		    "</title></head>\n<body><h1>Profiles of process %" PRIu32 "</h1>\n<ul>\n",
		    pid, pid);
	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		text_printf(page,
			    "<li><a href=\"/pid/%" PRIu32 "/debug/pprof/%s%s\">%s%s</a>: %s</li>\n",
			    pid, profiles[i].name, profiles[i].query, profiles[i].name,
			    profiles[i].query, profiles[i].what);
	text_printf(page,
		    "</ul>\n<p><a href=\"/pid/%" PRIu32
		    "/memusage?format=text\">What its memory is used for</a></p>\n</body></html>\n",
		    pid);
}

static void write_lines(struct text *page, uint32_t pid)
{
	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		text_printf(page, "/pid/%" PRIu32 "/debug/pprof/%s%s\t%s\n", pid, profiles[i].name,
			    profiles[i].query, profiles[i].what);
}

struct error *answer_pprof_index(struct exchange *exchange)
{
	if (exchange->format == FORMAT_HTML)
		write_html(&exchange->body, exchange->process->pid);
	else
		write_lines(&exchange->body, exchange->process->pid);
	return NULL;
}
