#include "daemon/analysis_check.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/checked.h"

/* ---- histogram ---- */

struct sums {
	uint64_t objects, bytes;
};

static struct error *add(struct sums *sums, uint64_t objects, uint64_t bytes)
{
	if (!checked_add(sums->objects, objects, &sums->objects) ||
	    !checked_add(sums->bytes, bytes, &sums->bytes) || sums->bytes > INT64_MAX)
		return error_new(ERROR_FORMAT, "the sums of a histogram overflow");
	return NULL;
}

static struct error *add_rows(Goheapd__TypeRow *const *rows, size_t count, struct sums *sums)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < count; i++) {
		if (i && rows[i]->bytes > rows[i - 1]->bytes)
			return error_new(ERROR_FORMAT,
					 "row %zu of a histogram is larger than the "
					 "one before it",
					 i);
		err = add(sums, rows[i]->objects, rows[i]->bytes);
	}
	return err;
}

static struct error *compare(const char *what, const struct sums *sums, uint64_t objects,
			     uint64_t bytes)
{
	if (sums->objects == objects && sums->bytes == bytes)
		return NULL;
	return error_new(ERROR_FORMAT,
			 "the histogram's rows hold %" PRIu64 " objects with %" PRIu64
			 " bytes, but %" PRIu64 " with %" PRIu64 " are %s",
			 sums->objects, sums->bytes, objects, bytes, what);
}

static struct error *check_live(const Goheapd__Histogram *histogram,
				const Goheapd__HeapTotals *heap)
{
	struct sums sums = { 0 };
	struct error *err = add_rows(histogram->types, histogram->n_types, &sums);

	if (!err && sums.bytes != histogram->typed_bytes)
		err = error_new(ERROR_FORMAT,
				"rows hold %" PRIu64 " bytes, and typed_bytes is %" PRIu64,
				sums.bytes, histogram->typed_bytes);
	if (!err)
		err = add(&sums, histogram->unknown_objects, histogram->unknown_bytes);
	return err ? err : compare("live", &sums, heap->live_objects, heap->live_bytes);
}

static struct error *check_others(const Goheapd__Histogram *histogram,
				  const Goheapd__HeapTotals *heap)
{
	struct sums garbage = { 0 }, finalizable = { 0 };
	struct error *err = add_rows(histogram->garbage, histogram->n_garbage, &garbage);

	if (!err)
		err = add_rows(histogram->finalizable, histogram->n_finalizable, &finalizable);
	if (!err)
		err = add(&garbage, histogram->garbage_unknown_objects,
			  histogram->garbage_unknown_bytes);
	if (!err)
		err = add(&finalizable, histogram->finalizable_unknown_objects,
			  histogram->finalizable_unknown_bytes);
	if (!err)
		err = compare("garbage", &garbage, heap->garbage_objects, heap->garbage_bytes);
	if (!err)
		err = compare("finalizable", &finalizable, heap->finalizable_objects,
			      heap->finalizable_bytes);
	return err;
}

static struct error *check_globals(Goheapd__GlobalRow *const *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (rows[i]->retained_bytes > rows[i - 1]->retained_bytes)
			return error_new(ERROR_FORMAT,
					 "global %zu retains more than the one "
					 "before it",
					 i);
	return NULL;
}

static struct error *check_histogram(const Goheapd__ScanResult *result,
				     const Goheapd__HistogramQuery *query)
{
	const Goheapd__Histogram *histogram = result->histogram;
	const Goheapd__HeapTotals *heap = result->heap;
	struct error *err;

	if (!histogram)
		return error_new(ERROR_SYSTEM, "it has no histogram");
	if (!heap || !heap->has_live_bytes || !heap->has_live_objects)
		return error_new(ERROR_SYSTEM, "it does not say what is live");
	err = check_live(histogram, heap);
	if (!err && query->garbage)
		err = check_others(histogram, heap);
	return err ? err : check_globals(histogram->globals, histogram->n_globals);
}

/* ---- pages ---- */

static struct error *check_objects(const Goheapd__ObjectPage *page,
				   const Goheapd__ObjectsQuery *query)
{
	uint64_t last = query->after;

	if (!page)
		return error_new(ERROR_SYSTEM, "it has no objects");
	if (page->n_objects > query->limit)
		return error_new(ERROR_FORMAT, "a page of %zu objects, %" PRIu32 " were wanted",
				 page->n_objects, query->limit);
	for (size_t i = 0; i < page->n_objects; i++) {
		const Goheapd__ObjectRow *row = page->objects[i];

		if ((i || query->has_after) && row->address <= last)
			return error_new(ERROR_FORMAT, "objects are not in order at 0x%" PRIx64,
					 row->address);
		if (row->bytes < query->min_bytes)
			return error_new(ERROR_FORMAT,
					 "an object of %" PRIu64 " bytes is too small", row->bytes);
		last = row->address;
	}
	if (page->has_next_after && (!page->n_objects || page->next_after != last))
		return error_new(ERROR_FORMAT, "a page does not go on behind its last row");
	return NULL;
}

static struct error *check_dominators(const Goheapd__DominatorPage *page,
				      const Goheapd__DominatorsQuery *query)
{
	uint64_t last = query->has_after_retained ? query->after_retained : UINT64_MAX;

	if (!page)
		return error_new(ERROR_SYSTEM, "it has no dominators");
	if (page->n_nodes > query->limit)
		return error_new(ERROR_FORMAT, "a page of %zu nodes, %" PRIu32 " were wanted",
				 page->n_nodes, query->limit);
	for (size_t i = 0; i < page->n_nodes; i++) {
		const Goheapd__DominatorNode *node = page->nodes[i];

		if (node->retained_bytes > last || node->bytes > node->retained_bytes)
			return error_new(ERROR_FORMAT,
					 "dominator %zu has %" PRIu64 " bytes and retains %" PRIu64
					 ", the one before it %" PRIu64,
					 i, node->bytes, node->retained_bytes, last);
		last = node->retained_bytes;
	}
	if (page->has_next_node && !page->n_nodes)
		return error_new(ERROR_FORMAT, "a page without rows has a next one");
	return NULL;
}

/* ---- one object ---- */

static bool is_state(const char *state)
{
	return strcmp(state, "live") == 0 || strcmp(state, "finalizable") == 0 ||
	       strcmp(state, "garbage") == 0;
}

static struct error *check_field(const Goheapd__Object *object, const Goheapd__ObjectField *field,
				 bool contents)
{
	if (field->offset > object->bytes && !field->missing)
		return error_new(ERROR_FORMAT,
				 "a field lies at %" PRIu64 " of an object of %" PRIu64 " bytes",
				 field->offset, object->bytes);
	if (field->has_text && !contents)
		return error_new(ERROR_FORMAT, "a field has contents that were not asked for");
	return NULL;
}

static struct error *check_object(const Goheapd__Object *object, const Goheapd__ObjectQuery *query)
{
	struct error *err = NULL;

	if (!object)
		return error_new(ERROR_SYSTEM, "it has no object");
	/* the address may lie in the header that belongs to the slot */
	if (query->address - (object->address - 8) >= object->bytes + 8)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 " does not lie in the object",
				 query->address);
	if (!is_state(object->state))
		return error_new(ERROR_FORMAT, "an object of no state that there is");
	for (size_t i = 0; !err && i < object->n_fields; i++)
		err = check_field(object, object->fields[i], query->contents);
	return err;
}

/* ---- goroutines ---- */

static bool is_alive(const Goheapd__Goroutine *g)
{
	return strcmp(g->status, "idle") != 0 && strcmp(g->status, "dead") != 0 &&
	       strcmp(g->status, "deadextra") != 0;
}

static struct error *check_goroutines(const Goheapd__ScanResult *result)
{
	for (size_t i = 0; i < result->n_goroutines; i++) {
		const Goheapd__Goroutine *g = result->goroutines[i];

		if (!g->has_retained_bytes && is_alive(g))
			return error_new(ERROR_SYSTEM,
					 "it does not say what goroutine %" PRIu64 " retains",
					 g->id);
	}
	return NULL;
}

static struct error *check_largest(const Goheapd__ScanResult *result, uint32_t limit)
{
	if (result->n_globals > limit)
		return error_new(ERROR_FORMAT, "%zu globals, %" PRIu32 " were wanted",
				 result->n_globals, limit);
	return check_globals(result->globals, result->n_globals);
}

struct error *analysis_check(const Goheapd__ScanResult *result, const Goheapd__Analysis *analysis)
{
	struct error *err = NULL;

	if (analysis->histogram)
		err = check_histogram(result, analysis->histogram);
	if (!err && analysis->objects)
		err = check_objects(result->objects, analysis->objects);
	if (!err && analysis->object)
		err = check_object(result->object, analysis->object);
	if (!err && analysis->dominators)
		err = check_dominators(result->dominators, analysis->dominators);
	if (!err && analysis->goroutine_retained)
		err = check_goroutines(result);
	if (!err && analysis->has_globals)
		err = check_largest(result, analysis->globals);
	return err;
}
