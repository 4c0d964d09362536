#include "daemon/answer_diff.h"

#include "daemon/answer_scan.h"
#include "daemon/clock.h"
#include "daemon/pprof_size.h"
#include "daemon/profile_query.h"
#include "daemon/render_diff.h"

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

/* Two scans, with time between them. An earlier one may do for the first only. */
static struct error *scan_twice(struct exchange *exchange, const struct question *question,
				struct scan **ret_from, struct scan **ret_to)
{
	bool cached;
	struct error *err =
	    answer_get_scan(exchange, question->parts, &question->analysis, ret_from, &cached);

	if (!err)
		err = let_time_pass(exchange);
	exchange->params.max_age_us = 0;
	if (!err)
		err = answer_get_scan(exchange, question->parts, &question->analysis, ret_to,
				      &cached);
	return err;
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

static struct scan_view view_of(const struct scan *scan, const Goheapd__ProfileQuery *query)
{
	return (struct scan_view){ .result = scan->answer->scan, .id = scan->id, .profile = query };
}

static struct error *compare(struct exchange *exchange, const struct scan *from,
			     const struct scan *to, const struct question *question)
{
	Goheapd__ProfileQuery shown = question->profile;
	struct scan_view from_view = view_of(from, &shown), to_view = view_of(to, &shown);
	struct diff diff;
	struct diff_view view = { .diff = &diff, .from = &from_view, .to = &to_view };
	struct error *err;

	shown.max_samples = exchange->params.max_samples;
	err = diff_init(&diff, from_view.result, to_view.result, shown.max_depth);
	if (!err)
		err = render(exchange, &view);
	diff_fini(&diff);
	return err;
}

struct error *answer_diff(struct exchange *exchange)
{
	struct scan *from scoped(scan_releasep) = NULL;
	struct scan *to scoped(scan_releasep) = NULL;
	struct question question;
	struct error *err = check_which(&exchange->params);

	if (!err)
		err = ask(exchange, &question);
	if (!err && exchange->params.since)
		err = error_new(
		    ERROR_NOT_FOUND,
		    "since: no scans are kept in this version; over=SECONDS compares two");
	if (!err)
		err = scan_twice(exchange, &question, &from, &to);
	return err ? err : compare(exchange, from, to, &question);
}
