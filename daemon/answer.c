#include "daemon/answer.h"

#include <string.h>
#include <time.h>

#include "daemon/answer_scan.h"
#include "daemon/auth.h"
#include "daemon/exchange.h"
#include "daemon/object_query.h"
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

/* A value of a key that anybody may choose would be a series: the configuration says which may. */
static struct error *check_metrics(const struct exchange *exchange)
{
	bool is_metrics =
	    exchange->format == FORMAT_PROMETHEUS || exchange->format == FORMAT_OPENMETRICS;

	if (!is_metrics || !exchange->params.labels.has_by)
		return NULL;
	return error_new(ERROR_BAD_REQUEST,
			 "by= has no %s form; metric_labels in goheapd.conf "
			 "says which labels become series",
			 format_name(exchange->format));
}

/* A kept census has no objects to ask about. */
static bool has_objects(const struct exchange *exchange)
{
	return !exchange->kept || exchange->kept->scan->key.depth == GOHEAPD__DEPTH__DEPTH_FULL;
}

struct error *answer_memusage(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_memusage,
		[FORMAT_TEXT] = render_text_memusage,
		[FORMAT_PROMETHEUS] = render_prometheus_memusage,
		[FORMAT_OPENMETRICS] = render_openmetrics_memusage,
	};
	object_query_maker *make =
	    exchange->format == FORMAT_TEXT ? object_query_memusage_text : object_query_memusage;
	struct object_query query;
	struct error *err = check_metrics(exchange);

	if (!err)
		err = make(&query, &exchange->params);
	if (err)
		return err;
	return answer_scan(
	    exchange, SCAN_MEMORY | SCAN_LABELS,
	    object_query_is_empty(&query) || !has_objects(exchange) ? NULL : &query.analysis,
	    renderers);
}

struct error *answer_goroutines(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_goroutines,
		[FORMAT_TEXT] = render_text_goroutines,
	};
	unsigned dead = exchange->params.dead ? SCAN_DEAD_GOROUTINES : 0;
	struct object_query query;
	struct error *err = object_query_goroutines(&query, &exchange->params);

	if (err)
		return err;
	return answer_scan(exchange, SCAN_GOROUTINES | dead,
			   object_query_is_empty(&query) ? NULL : &query.analysis, renderers);
}

struct error *answer_mappings(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_mappings,
		[FORMAT_TEXT] = render_text_mappings,
	};

	return answer_scan(exchange, SCAN_MAPPINGS, NULL, renderers);
}

static struct kept_view view_of(const struct kept_scan *scan)
{
	return (struct kept_view){
		.result = scan->scan->answer->scan,
		.id = scan->scan->id,
		.until_ns = scan->until_ns,
		.has_graph = scan->has_graph,
	};
}

static struct error *render_scans(struct exchange *exchange, const struct kept_list *list)
{
	struct kept_view *views scoped(freep) = calloc(list->count + 1, sizeof(*views));

	if (!views)
		return &error_nomem;
	for (size_t i = 0; i < list->count; i++)
		views[i] = view_of(list->scans[i]);
	if (exchange->format == FORMAT_TEXT)
		render_text_scans(&exchange->body, views, list->count, now_ns());
	else
		render_json_scans(&exchange->body, exchange->process->pid, views, list->count);
	return NULL;
}

/* Without an agent there are results all the same. */
struct error *answer_scans(struct exchange *exchange)
{
	struct kept_scans *kept = exchange->server->kept;
	const struct kept_filter filter = { .pid = exchange->process->pid,
					    .peer = &exchange->peer };
	struct error *err = kept_scans_refresh(kept, &exchange->patience);
	struct kept_list list;

	if (err && error_code(err) != ERROR_AGENT_UNAVAILABLE)
		return err;
	error_free(err);
	err = kept_scans_list(kept, &filter, &list);
	if (err)
		return err;
	err = render_scans(exchange, &list);
	kept_list_fini(&list);
	return err;
}
