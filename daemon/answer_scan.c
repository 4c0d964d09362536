#include "daemon/answer_scan.h"

/* What any path may ask of a kept scan without its graph. */
enum { PARTS_TO_KEEP = SCAN_MEMORY | SCAN_LABELS | SCAN_GOROUTINES | SCAN_MAPPINGS };

static struct error *ask_kept(struct exchange *exchange, unsigned parts,
			      const Goheapd__Analysis *analysis, struct scan **ret)
{
	const struct params *params = &exchange->params;
	struct kept_scans *kept = exchange->server->kept;
	struct error *err = NULL;

	if (params->keep_us)
		err = kept_scan_extend(kept, exchange->kept, params->keep_us, !params->has_keep,
				       &exchange->patience);
	return err ? err
		   : kept_scan_answer(kept, exchange->kept, parts, &params->labels, analysis,
				      &exchange->patience, ret);
}

struct error *answer_get_scan(struct exchange *exchange, unsigned parts,
			      const Goheapd__Analysis *analysis, struct scan **ret,
			      bool *ret_cached)
{
	const struct scan_request request = {
		.process = exchange->process,
		.params = &exchange->params,
		.parts = exchange->params.has_keep ? parts | PARTS_TO_KEEP : parts,
		.analysis = analysis,
		.caller = exchange->peer.uid,
		.path = exchange->target,
	};

	*ret_cached = exchange->kept != NULL;
	if (exchange->kept)
		return ask_kept(exchange, parts, analysis, ret);
	return scan_cache_get(exchange->server->scans, &request, &exchange->patience, ret,
			      ret_cached, &exchange->retry_after_ms);
}

struct error *answer_scan(struct exchange *exchange, unsigned parts,
			  const Goheapd__Analysis *analysis,
			  scan_renderer *const renderers[FORMAT_END])
{
	struct scan *scan scoped(scan_releasep) = NULL;
	struct scan_view view = { .dead = exchange->params.dead,
				  .labels = &exchange->params.labels,
				  .metrics = exchange->server->metrics,
				  .analysis = analysis,
				  .top = exchange->params.top,
				  .goes_on = exchange->kept != NULL };
	struct error *err = answer_get_scan(exchange, parts, analysis, &scan, &view.cached);

	if (err)
		return err;
	view.result = scan->answer->scan;
	view.id = scan->id;
	view.goes_on |= view.result->has_kept_until_ns;
	renderers[exchange->format](&exchange->body, &view);
	return NULL;
}
