#include "daemon/scan_check.h"

#include <inttypes.h>

static struct error *check_trace(const Goheapd__ScanResult *result,
				 const Goheapd__StackTrace *trace)
{
	for (size_t i = 0; i < trace->n_frames; i++) {
		if (trace->frames[i] >= result->n_frames)
			return error_new(ERROR_FORMAT, "a stack has a frame %" PRIu32 " of %zu",
					 trace->frames[i], result->n_frames);
	}
	return NULL;
}

static struct error *check_goroutine(const Goheapd__ScanResult *result, const Goheapd__Goroutine *g)
{
	if (g->has_trace && g->trace >= result->n_traces)
		return error_new(ERROR_FORMAT, "a goroutine has a stack %" PRIu32 " of %zu",
				 g->trace, result->n_traces);
	if (g->has_created_by && g->created_by >= result->n_frames)
		return error_new(ERROR_FORMAT, "a goroutine comes from a frame %" PRIu32 " of %zu",
				 g->created_by, result->n_frames);
	return NULL;
}

struct error *scan_check(const Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < result->n_traces; i++)
		err = check_trace(result, result->traces[i]);
	for (size_t i = 0; !err && i < result->n_goroutines; i++)
		err = check_goroutine(result, result->goroutines[i]);
	return err ? error_context(err, "the agent's answer") : NULL;
}
