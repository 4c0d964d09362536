#include "daemon/serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/auth.h"
#include "daemon/clock.h"
#include "daemon/exchange.h"
#include "daemon/origin.h"
#include "daemon/process.h"
#include "daemon/rfc3339.h"
#include "daemon/route.h"

static bool method_is(const struct exchange *exchange, const char *method)
{
	return strcmp(exchange->method, method) == 0;
}

/* Whether the route knows the method; if not, the answer says which it does. */
static bool check_method(struct exchange *exchange)
{
	unsigned method = method_is(exchange, "GET")    ? METHOD_GET
			  : method_is(exchange, "HEAD") ? METHOD_HEAD
							: 0;

	exchange->is_head = method == METHOD_HEAD;
	if (exchange->route->methods & method)
		return true;
	exchange->allow = "GET, HEAD";
	exchange_refuse(exchange, 405, "method_not_allowed", "this path answers GET and HEAD");
	return false;
}

static struct error *read_request(struct exchange *exchange)
{
	struct error *err = params_read(&exchange->uri, exchange->route->params, &exchange->params);

	if (err)
		return err;
	exchange->patience = (struct patience){
		.deadline_us =
		    clock_now_us() + exchange->params.timeout_us + exchange->params.over_us,
		.client = exchange->client,
		.has_left = peer_has_left,
		.stop = exchange->server->stop,
	};
	err = negotiate(exchange->route->formats, exchange->params.format, exchange->accept,
			&exchange->format);
	if (!err && exchange->params.debug && !exchange->params.format)
		exchange->format = FORMAT_TEXT; /* whoever takes debug= has it */
	return err;
}

/* ---- the process that the path names ---- */

static struct error *find_by_pid(struct exchange *exchange, const char *text)
{
	uint32_t pid;
	struct error *err = process_parse_pid(text, &pid);

	if (err)
		return err;
	exchange->pid = pid;
	err = process_look(exchange->server->agent, pid, &exchange->patience,
			   &exchange->process_answer);
	if (!err)
		exchange->process = exchange->process_answer->process;
	return err;
}

static struct error *ambiguous(const struct exchange *exchange, const char *name, size_t count)
{
	char list[CANDIDATES_MAX * 12] = "";

	for (size_t i = 0; i < exchange->candidate_count; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%" PRIu32, i ? ", " : "",
			 exchange->candidates[i]);
	}
	return error_new(ERROR_AMBIGUOUS,
			 "%zu processes are named \"%s\": ask for /pid/N of one: %s%s", count, name,
			 list, count > exchange->candidate_count ? ", ..." : "");
}

/* Among the processes that the caller may see, so that the answer tells of no others. */
static struct error *find_by_name(struct exchange *exchange, const char *name)
{
	struct error *err =
	    process_list(exchange->server->agent, &exchange->patience, &exchange->process_answer);
	Goheapd__ProcessList *list;
	size_t count = 0;

	if (err)
		return err;
	list = exchange->process_answer->process_list;
	process_sort(list->processes, list->n_processes);
	for (size_t i = 0; i < list->n_processes; i++) {
		if (!process_has_name(list->processes[i], name) ||
		    !auth_may_see(&exchange->peer, list->processes[i]))
			continue;
		exchange->process = list->processes[i];
		if (count++ < CANDIDATES_MAX)
			exchange->candidates[exchange->candidate_count++] = exchange->process->pid;
	}
	if (count > 1)
		return ambiguous(exchange, name, count);
	exchange->candidate_count = 0;
	if (count == 0)
		return error_new(ERROR_NO_PROCESS,
				 "no Go process that you may ask about is named \"%s\"", name);
	exchange->pid = exchange->process->pid;
	return NULL;
}

/* start=TIME names one process for good, whatever becomes of its pid. */
static struct error *check_start(const struct exchange *exchange)
{
	const char *wanted = exchange->params.start;
	char have[RFC3339_SIZE];

	rfc3339_format(exchange->process->start_time_ns, have);
	if (!wanted || strcmp(wanted, have) == 0)
		return NULL;
	return error_new(ERROR_PROCESS_CHANGED,
			 "process %" PRIu32 " is another one now: it started at %s, not at %s",
			 exchange->process->pid, have, wanted);
}

static bool is_by_name(const struct exchange *exchange)
{
	return strcmp(exchange->uri.segments[0], "comm") == 0;
}

static struct error *find_running(struct exchange *exchange)
{
	const char *name = exchange->uri.segments[1];

	return is_by_name(exchange) ? find_by_name(exchange, name) : find_by_pid(exchange, name);
}

/* ---- the process of a kept scan, which may be gone ---- */

static void take_kept_process(struct exchange *exchange, const struct kept_scan *kept)
{
	exchange->process = kept->process;
	exchange->pid = kept->process->pid;
}

/* Whether the path means the process that the scan is of. */
static struct error *path_names(const struct exchange *exchange, const struct kept_scan *kept,
				bool *ret)
{
	const char *name = exchange->uri.segments[1];
	uint32_t pid = 0;
	struct error *err = is_by_name(exchange) ? NULL : process_parse_pid(name, &pid);

	*ret = is_by_name(exchange) ? process_has_name(kept->process, name)
				    : kept->process->pid == pid;
	return err;
}

static struct error *find_by_scan(struct exchange *exchange)
{
	const char *id = params_scan(&exchange->params);
	struct error *err = kept_scans_find(exchange->server->kept, id, &exchange->kept);
	bool fits = false;

	if (!err)
		err = path_names(exchange, exchange->kept, &fits);
	if (err)
		return err;
	if (!fits)
		return error_new(ERROR_NOT_FOUND, "scan %s is of another process", id);
	take_kept_process(exchange, exchange->kept);
	return NULL;
}

/* The newest scan kept of a process that is gone. Consumes err, which says that it is. */
static struct error *find_gone(struct exchange *exchange, struct error *err)
{
	const struct kept_filter filter = { .peer = &exchange->peer };
	struct kept_list list;
	bool fits = false;
	struct error *list_err = kept_scans_list(exchange->server->kept, &filter, &list);

	if (list_err) {
		error_free(list_err);
		return err;
	}
	for (size_t i = 0; !fits && i < list.count; i++) {
		error_free(path_names(exchange, list.scans[i], &fits));
		if (fits)
			exchange->kept = kept_scan_acquire(list.scans[i]);
	}
	kept_list_fini(&list);
	if (!fits)
		return err;
	error_free(err);
	take_kept_process(exchange, exchange->kept);
	return NULL;
}

static struct error *find_process(struct exchange *exchange)
{
	struct error *err =
	    params_scan(&exchange->params) ? find_by_scan(exchange) : find_running(exchange);

	if (err && exchange->route->role == ROLE_KEPT && error_code(err) == ERROR_NO_PROCESS)
		err = find_gone(exchange, err);
	if (!err)
		err = auth_check(&exchange->peer, exchange->process);
	if (!err)
		err = check_start(exchange);
	return err;
}

/* ---- the whole way ---- */

static struct error *check_caller(struct exchange *exchange)
{
	struct error *err = NULL;

	if (exchange->route->role != ROLE_ANYBODY)
		err = peer_of_socket(exchange->client, &exchange->peer);
	if (!err && (exchange->route->role == ROLE_TARGET || exchange->route->role == ROLE_KEPT))
		err = find_process(exchange);
	return err;
}

/* "checkout-1234-heap.pb.gz", in which nothing needs an escape. */
static void name_file(struct exchange *exchange)
{
	const ProtobufCBinaryData comm = exchange->process->comm;
	const struct uri *uri = &exchange->uri;
	char name[17] = "";

	for (size_t i = 0; i < comm.len && i + 1 < sizeof(name); i++) {
		uint8_t c = comm.data[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '_' || (c == '.' && i);

		name[i] = is_plain ? (char)c : '_';
	}
	snprintf(exchange->file_name, sizeof(exchange->file_name), "%s-%" PRIu32 "-%s.pb.gz", name,
		 exchange->process->pid, uri->segments[uri->segment_count - 1]);
}

static struct error *answer(struct exchange *exchange)
{
	struct error *err;

	exchange->status = 200;
	exchange->content_type = format_content_type(exchange->format);
	if (exchange->format == FORMAT_PPROF)
		name_file(exchange);
	exchange->has_body = !(exchange->is_head && exchange->route->stops);
	if (!exchange->has_body)
		return NULL;
	err = exchange->route->answer(exchange);
	return err ? err : text_finish(&exchange->body);
}

static struct error *serve_route(struct exchange *exchange)
{
	struct error *err = read_request(exchange);

	if (!err)
		err = check_caller(exchange);
	return err ? err : answer(exchange);
}

void serve(struct exchange *exchange)
{
	struct error *err =
	    origin_check(exchange->client, exchange->host, exchange->origin, exchange->fetch_site);

	if (!err)
		err = uri_parse(exchange->target, &exchange->uri);
	exchange->for_pprof = route_is_for_pprof(&exchange->uri);
	if (err) {
		exchange_fail(exchange, err);
		return;
	}
	exchange->route = route_find(&exchange->uri);
	if (!exchange->route) {
		exchange_refuse(exchange, 404, "not_found", route_absence(&exchange->uri));
		return;
	}
	if (!check_method(exchange))
		return;
	err = serve_route(exchange);
	if (err)
		exchange_fail(exchange, err);
}
