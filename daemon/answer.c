#include "daemon/answer.h"

#include <string.h>
#include <time.h>

#include "daemon/auth.h"
#include "daemon/exchange.h"
#include "daemon/process.h"
#include "daemon/render.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct error *answer_healthz(struct exchange *exchange)
{
	text_string(&exchange->body, "ok\n");
	return NULL;
}

struct error *answer_readyz(struct exchange *exchange)
{
	struct error *err = agent_client_wait_ready(exchange->server->agent, 0);

	if (!err)
		text_string(&exchange->body, "ok\n");
	return err;
}

/* Moves those that the caller may see to the front, and returns how many. */
static size_t keep_visible(const struct peer *peer, Goheapd__ProcessList *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->n_processes; i++) {
		Goheapd__Process *process = list->processes[i];

		if (!auth_may_see(peer, process))
			continue;
		list->processes[i] = list->processes[count];
		list->processes[count++] = process;
	}
	return count;
}

struct error *answer_pids(struct exchange *exchange)
{
	Goheapd__Answer *answer;
	Goheapd__ProcessList *list;
	struct error *err = process_list(exchange->server->agent, &exchange->patience, &answer);
	size_t count;

	if (err)
		return err;
	list = answer->process_list;
	count = keep_visible(&exchange->peer, list);
	process_sort(list->processes, count);
	if (exchange->format == FORMAT_TEXT)
		render_text_pids(&exchange->body, list->processes, count, now_ns());
	else
		render_json_pids(&exchange->body, list->processes, count);
	goheapd__answer__free_unpacked(answer, NULL);
	return NULL;
}

struct error *answer_overview(struct exchange *exchange)
{
	Goheapd__Answer *answer;
	struct error *err = process_overview(exchange->server->agent, exchange->process,
					     &exchange->patience, &answer);

	if (err)
		return err;
	if (exchange->format == FORMAT_TEXT)
		render_text_overview(&exchange->body, answer->overview, now_ns());
	else
		render_json_overview(&exchange->body, answer->overview);
	goheapd__answer__free_unpacked(answer, NULL);
	return NULL;
}

typedef void scan_renderer(struct text *text, const struct scan_view *view);

/* A scan that carries parts, rendered in the form that was asked for. */
static struct error *answer_scan(struct exchange *exchange, unsigned parts, scan_renderer *json,
				 scan_renderer *text)
{
	const struct scan_request request = {
		.process = exchange->process,
		.params = &exchange->params,
		.parts = parts,
		.caller = exchange->peer.uid,
		.path = exchange->target,
	};
	struct scan *scan scoped(scan_releasep) = NULL;
	struct scan_view view = { .dead = exchange->params.dead };
	struct error *err = scan_cache_get(exchange->server->scans, &request, &exchange->patience,
					   &scan, &view.cached, &exchange->retry_after_ms);

	if (err)
		return err;
	view.result = scan->answer->scan;
	view.id = scan->id;
	(exchange->format == FORMAT_TEXT ? text : json)(&exchange->body, &view);
	return NULL;
}

struct error *answer_memusage(struct exchange *exchange)
{
	return answer_scan(exchange, SCAN_MEMORY, render_json_memusage, render_text_memusage);
}

struct error *answer_goroutines(struct exchange *exchange)
{
	unsigned dead = exchange->params.dead ? SCAN_DEAD_GOROUTINES : 0;

	return answer_scan(exchange, SCAN_GOROUTINES | dead, render_json_goroutines,
			   render_text_goroutines);
}

struct error *answer_mappings(struct exchange *exchange)
{
	return answer_scan(exchange, SCAN_MAPPINGS, render_json_mappings, render_text_mappings);
}
