#include "daemon/answer_diff.h"

#include "daemon/answer_scan.h"
#include "daemon/auth.h"
#include "daemon/clock.h"
#include "daemon/object_query.h"
#include "daemon/profile_query.h"
#include "daemon/render_diff.h"
#include "daemon/rfc3339.h"

static struct error *check_which(const struct params *params)
{
	if (params->since && params->over_us)
		return error_new(ERROR_BAD_REQUEST,
				 "since and over: one of them is wanted, not both");
	if (params->scan && params->over_us)
		return error_new(ERROR_BAD_REQUEST,
				 "scan and over: what has been since a kept scan is since= of it");
	if (!params->since && !params->over_us)
		return error_new(
		    ERROR_BAD_REQUEST,
		    "over=SECONDS is wanted, or since= with the id of a kept scan or a "
		    "time");
	return NULL;
}

/* The time between two scans, unless the client leaves. */
static struct error *let_time_pass(const struct exchange *exchange)
{
	struct patience pause = exchange->patience;
	uint64_t until_us = clock_now_us() + exchange->params.over_us;
	struct error *err;

	if (until_us < pause.deadline_us)
		pause.deadline_us = until_us;
	err = patience_wait(&pause, -1);
	if (error_code(err) == ERROR_TIMEOUT && clock_now_us() >= until_us) {
		error_free(err);
		return NULL;
	}
	return err;
}

/* One of the two scans: the first result, and one that has what is asked of objects. */
struct side {
	struct kept_scan *kept; /* NULL: it is not kept */
	struct scan *scan, *objects;
};

static void side_fini(struct side *side)
{
	kept_scan_release(side->kept);
	scan_release(side->scan);
	scan_release(side->objects);
}

/* A profile says nothing of label sets as such. */
static unsigned parts_of(const struct exchange *exchange)
{
	return exchange->format == FORMAT_PPROF ? 0 : SCAN_LABELS;
}

/* A new scan, or an earlier one that will do. */
static struct error *scan_now(struct exchange *exchange, const struct object_query *question,
			      struct side *ret)
{
	bool cached;
	struct error *err =
	    answer_get_scan(exchange, parts_of(exchange), &question->analysis, &ret->scan, &cached);

	if (!err)
		ret->objects = scan_acquire(ret->scan);
	return err;
}

/* A kept one, which has the graph to ask where its first result does not do. */
static struct error *ask_kept(struct exchange *exchange, const struct object_query *question,
			      struct kept_scan *kept, struct side *ret)
{
	ret->kept = kept_scan_acquire(kept);
	ret->scan = scan_acquire(kept->scan);
	return kept_scan_answer(exchange->server->kept, kept, 0, NULL, &question->analysis,
				&exchange->patience, &ret->objects);
}

/* What is compared with the earlier one. */
static struct error *find_later(struct exchange *exchange, const struct object_query *question,
				struct side *ret)
{
	if (exchange->kept)
		return ask_kept(exchange, question, exchange->kept, ret);
	return scan_now(exchange, question, ret);
}

/* ---- since ---- */

/* The newest scan kept of the process that is not younger than a time. */
static struct error *find_by_time(struct exchange *exchange, uint64_t time_ns,
				  struct kept_scan **ret)
{
	const struct kept_filter filter = { .pid = exchange->process->pid,
					    .start_ticks = exchange->process->start_ticks,
					    .peer = &exchange->peer };
	char oldest[RFC3339_SIZE] = "";
	struct kept_list list;
	struct error *err = kept_scans_list(exchange->server->kept, &filter, &list);

	if (err)
		return err;
	for (size_t i = 0; !*ret && i < list.count; i++) {
		uint64_t at_ns = list.scans[i]->scan->answer->scan->scan->started_at_ns;

		rfc3339_format(at_ns, oldest);
		if (at_ns <= time_ns)
			*ret = kept_scan_acquire(list.scans[i]);
	}
	if (!*ret)
		err = error_new(
		    ERROR_NOT_FOUND,
		    "since=%s: no scan of this process is kept from before that%s%s; keep= "
		    "keeps them",
		    exchange->params.since, *oldest ? ", the oldest is of " : "", oldest);
	kept_list_fini(&list);
	return err;
}

/* By its id, also one of another process, if the caller may see that. */
static struct error *find_by_id(struct exchange *exchange, struct kept_scan **ret)
{
	struct kept_scan *kept scoped(kept_scan_releasep) = NULL;
	struct error *err = kept_scans_find(exchange->server->kept, exchange->params.since, &kept);

	if (!err)
		err = auth_check(&exchange->peer, kept->process);
	if (!err)
		*ret = take(kept);
	return err;
}

static struct error *find_since(struct exchange *exchange, const struct object_query *question,
				struct side *ret)
{
	struct kept_scan *kept scoped(kept_scan_releasep) = NULL;
	uint64_t time_ns;
	struct error *err = rfc3339_parse(exchange->params.since, &time_ns)
				? find_by_time(exchange, time_ns, &kept)
				: find_by_id(exchange, &kept);

	return err ? err : ask_kept(exchange, question, kept, ret);
}

/* ---- both ---- */

static struct error *find_both(struct exchange *exchange, const struct object_query *question,
			       struct side *ret_from, struct side *ret_to)
{
	struct error *err = exchange->params.since ? find_since(exchange, question, ret_from)
						   : scan_now(exchange, question, ret_from);

	if (!err && exchange->params.over_us) {
		err = let_time_pass(exchange);
		exchange->params.max_age_us = 0; /* of which the first one only may be */
	}
	return err ? err : find_later(exchange, question, ret_to);
}

/* ---- the answer ---- */

static struct diff_scan view_of(const struct side *side)
{
	return (struct diff_scan){
		.view = { .result = side->scan->answer->scan,
			  .id = side->scan->id,
			  .cached = side->kept != NULL },
		.objects = side->objects->answer->scan,
	};
}

typedef void diff_renderer(struct text *text, const struct diff_question *question);

static struct error *compare(struct exchange *exchange, const struct side *from,
			     const struct side *to)
{
	static diff_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_diff,
		[FORMAT_TEXT] = render_text_diff,
		[FORMAT_PPROF] = render_pprof_diff,
	};
	Goheapd__ProfileQuery shown;
	const struct diff_question question = { view_of(from), view_of(to), &shown };
	struct error *err = profile_query(&exchange->params, &shown);

	if (!err)
		renderers[exchange->format](&exchange->body, &question);
	return err;
}

struct error *answer_diff(struct exchange *exchange)
{
	struct side from scoped(side_fini) = { 0 };
	struct side to scoped(side_fini) = { 0 };
	struct object_query question;
	struct error *err = check_which(&exchange->params);

	if (!err)
		err = object_query_diff(&question, &exchange->params);
	if (!err)
		err = find_both(exchange, &question, &from, &to);
	return err ? err : compare(exchange, &from, &to);
}
