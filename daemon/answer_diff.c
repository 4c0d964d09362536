#include "daemon/answer_diff.h"

#include "daemon/answer_scan.h"
#include "daemon/auth.h"
#include "daemon/clock.h"
#include "daemon/pprof_size.h"
#include "daemon/profile_query.h"
#include "daemon/render_diff.h"
#include "daemon/rfc3339.h"

/* What is asked of both scans. */
struct question {
	Goheapd__Analysis analysis;
	Goheapd__ProfileQuery profile;
	Goheapd__HistogramQuery histogram;
	unsigned parts;
};

/*
 * As many chains as may be: one that is folded in one scan and not in the other would look like a
 * change. They are folded when they have been compared.
 */
static struct error *ask(const struct exchange *exchange, struct question *ret)
{
	struct error *err = profile_query(&exchange->params, &ret->profile);

	if (err)
		return err;
	ret->profile.max_samples = PARAMS_SAMPLES_MAX;
	ret->profile.min_bytes = 0;
	goheapd__histogram_query__init(&ret->histogram);
	goheapd__analysis__init(&ret->analysis);
	ret->analysis.profile = &ret->profile;
	ret->analysis.histogram = &ret->histogram;
	ret->parts = exchange->format == FORMAT_PPROF ? 0 : SCAN_LABELS;
	return NULL;
}

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

/* A new scan, or an earlier one that will do. */
static struct error *scan_now(struct exchange *exchange, const struct question *question,
			      struct side *ret)
{
	bool cached;
	struct error *err =
	    answer_get_scan(exchange, question->parts, &question->analysis, &ret->scan, &cached);

	if (!err)
		ret->objects = scan_acquire(ret->scan);
	return err;
}

/* A kept one, which has the graph to ask where its first result does not do. */
static struct error *ask_kept(struct exchange *exchange, const struct question *question,
			      struct kept_scan *kept, struct side *ret)
{
	ret->kept = kept_scan_acquire(kept);
	ret->scan = scan_acquire(kept->scan);
	return kept_scan_answer(exchange->server->kept, kept, 0, NULL, &question->analysis,
				&exchange->patience, &ret->objects);
}

/* What is compared with the earlier one. */
static struct error *find_later(struct exchange *exchange, const struct question *question,
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

static struct error *find_since(struct exchange *exchange, const struct question *question,
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

static struct error *find_both(struct exchange *exchange, const struct question *question,
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

static struct error *fold(const struct chain_tree *tree, const struct params *params,
			  struct chain_tree *ret)
{
	const struct pprof_limits limits = { .samples = params->max_samples, .bytes = SIZE_MAX };
	uint64_t *weights scoped(freep) = NULL;
	struct chain_tree large;
	struct error *err = chain_tree_weights(tree, &weights);

	if (!err)
		err = chain_tree_fold(tree, weights, params->min_bytes, &large);
	if (err)
		return err;
	err = pprof_fit(&large, &limits, ret);
	chain_tree_fini(&large);
	return err;
}

typedef void diff_renderer(struct text *text, const struct diff_view *view);

static struct error *render(struct exchange *exchange, const struct diff_view *given)
{
	static diff_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_diff,
		[FORMAT_TEXT] = render_text_diff,
		[FORMAT_PPROF] = render_pprof_diff,
	};
	struct diff_view view = *given;
	struct chain_tree folded;
	struct error *err = fold(&view.diff->chains, &exchange->params, &folded);

	if (err)
		return err;
	view.chains = &folded;
	renderers[exchange->format](&exchange->body, &view);
	chain_tree_fini(&folded);
	return NULL;
}

static struct scan_view view_of(const struct side *side, const Goheapd__ProfileQuery *query)
{
	return (struct scan_view){ .result = side->scan->answer->scan,
				   .id = side->scan->id,
				   .cached = side->kept != NULL,
				   .profile = query };
}

static struct diff_side results_of(const struct side *side)
{
	return (struct diff_side){ .scan = side->scan->answer->scan,
				   .objects = side->objects->answer->scan };
}

static struct error *compare(struct exchange *exchange, const struct side *from,
			     const struct side *to, const struct question *question)
{
	Goheapd__ProfileQuery shown = question->profile;
	struct scan_view from_view = view_of(from, &shown), to_view = view_of(to, &shown);
	struct diff_side from_results = results_of(from), to_results = results_of(to);
	struct diff diff;
	struct diff_view view = { .diff = &diff, .from = &from_view, .to = &to_view };
	struct error *err;

	shown.max_samples = exchange->params.max_samples;
	err = diff_init(&diff, &from_results, &to_results, shown.max_depth);
	if (!err)
		err = render(exchange, &view);
	diff_fini(&diff);
	return err;
}

struct error *answer_diff(struct exchange *exchange)
{
	struct side from scoped(side_fini) = { 0 };
	struct side to scoped(side_fini) = { 0 };
	struct question question;
	struct error *err = check_which(&exchange->params);

	if (!err)
		err = ask(exchange, &question);
	if (!err)
		err = find_both(exchange, &question, &from, &to);
	return err ? err : compare(exchange, &from, &to, &question);
}
