#include "daemon/scan_check.h"

#include <inttypes.h>

#include "daemon/analysis_check.h"
#include "proto/base/checked.h"

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

/* ---- reference chains ---- */

struct sums {
	uint64_t objects, bytes;
};

/* Figures are added up, and later have a sign. */
static struct error *add_node(const Goheapd__ReferenceNode *node, struct sums *sums)
{
	if (!checked_add(sums->objects, node->objects, &sums->objects) ||
	    !checked_add(sums->bytes, node->bytes, &sums->bytes) || sums->objects > INT64_MAX ||
	    sums->bytes > INT64_MAX)
		return error_new(ERROR_FORMAT, "the sums of the reference chains overflow");
	if (node->has_used_bytes && node->used_bytes > node->bytes)
		return error_new(ERROR_FORMAT,
				 "a reference chain uses %" PRIu64 " bytes of %" PRIu64,
				 node->used_bytes, node->bytes);
	return NULL;
}

static struct error *check_node(const Goheapd__ReferenceProfile *profile, size_t place)
{
	const Goheapd__ReferenceNode *node = profile->nodes[place];

	if (node->has_parent && node->parent >= place)
		return error_new(ERROR_FORMAT, "reference chain %zu hangs on %" PRIu32, place,
				 node->parent);
	if (node->frame >= profile->n_frames)
		return error_new(ERROR_FORMAT, "a reference chain has a frame %" PRIu32 " of %zu",
				 node->frame, profile->n_frames);
	if (node->has_label_set && node->label_set >= profile->n_label_sets)
		return error_new(ERROR_FORMAT, "a reference chain has labels %" PRIu32 " of %zu",
				 node->label_set, profile->n_label_sets);
	return NULL;
}

static struct error *check_profile(const Goheapd__ReferenceProfile *profile)
{
	struct sums sums = { 0 };
	struct error *err = NULL;

	for (size_t i = 0; !err && i < profile->n_nodes; i++) {
		err = check_node(profile, i);
		if (!err)
			err = add_node(profile->nodes[i], &sums);
	}
	if (!err && (sums.objects != profile->objects || sums.bytes != profile->bytes))
		err = error_new(ERROR_FORMAT,
				"reference chains hold %" PRIu64 " objects with %" PRIu64
				" bytes and not %" PRIu64 " with %" PRIu64,
				sums.objects, sums.bytes, profile->objects, profile->bytes);
	return err;
}

/* A profile is all of what is live; of retained sizes only the chains are others. */
static struct error *check_live(const Goheapd__ScanResult *result)
{
	const Goheapd__ReferenceProfile *profile = result->profile;
	const Goheapd__HeapTotals *heap = result->heap;

	if (!profile)
		return error_new(ERROR_SYSTEM, "it has no reference profile");
	if (!heap || !heap->has_live_bytes || !heap->has_live_objects)
		return error_new(ERROR_SYSTEM, "it does not say what is live");
	if (profile->bytes != heap->live_bytes || profile->objects != heap->live_objects)
		return error_new(ERROR_SYSTEM,
				 "the reference chains hold %" PRIu64 " bytes in %" PRIu64
				 " objects, but %" PRIu64 " in %" PRIu64 " are live",
				 profile->bytes, profile->objects, heap->live_bytes,
				 heap->live_objects);
	return NULL;
}

struct error *scan_check_analysis(const Goheapd__ScanResult *result,
				  const Goheapd__Analysis *analysis)
{
	struct error *err = NULL;

	if (analysis && analysis->profile)
		err = check_live(result);
	if (!err && analysis)
		err = analysis_check(result, analysis);
	return err ? error_context(err, "the agent's answer") : NULL;
}

struct error *scan_check(const Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < result->n_traces; i++)
		err = check_trace(result, result->traces[i]);
	for (size_t i = 0; !err && i < result->n_goroutines; i++)
		err = check_goroutine(result, result->goroutines[i]);
	if (!err && result->profile)
		err = check_profile(result->profile);
	return err ? error_context(err, "the agent's answer") : NULL;
}
