#include "daemon/answer_scan.h"

struct error *answer_get_scan(struct exchange *exchange, unsigned parts,
			      const Goheapd__Analysis *analysis, struct scan **ret,
			      bool *ret_cached)
{
	const struct scan_request request = {
		.process = exchange->process,
		.params = &exchange->params,
		.parts = parts,
		.analysis = analysis,
		.caller = exchange->peer.uid,
		.path = exchange->target,
	};

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
				  .profile = analysis ? analysis->profile : NULL };
	struct error *err = answer_get_scan(exchange, parts, analysis, &scan, &view.cached);

	if (err)
		return err;
	view.result = scan->answer->scan;
	view.id = scan->id;
	renderers[exchange->format](&exchange->body, &view);
	return NULL;
}
