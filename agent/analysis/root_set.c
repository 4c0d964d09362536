#include "agent/analysis/root_set.h"

#include <stdlib.h>

#include "agent/goruntime/span.h"

/* Kept in segments, so that nothing is ever copied for growth. */
enum { SEGMENT_ROOTS = 64 << 10, SEGMENTS_MAX = 1 << 16 };

struct root_set {
	struct root_sink sink;
	const struct span_table *spans;
	struct heap_root **segments;
	uint32_t segment_count;
	uint64_t count;
	uint64_t free_slot_hits;
};

static struct error *add_segment(struct root_set *set)
{
	struct heap_root **grown, *segment;

	if (set->segment_count == SEGMENTS_MAX)
		return error_new(ERROR_LIMIT, "more than 2^32 roots");
	grown = reallocarray(set->segments, set->segment_count + 1, sizeof(*grown));
	if (!grown)
		return &error_nomem;
	set->segments = grown;
	segment = malloc(SEGMENT_ROOTS * sizeof(*segment));
	if (!segment)
		return &error_nomem;
	set->segments[set->segment_count++] = segment;
	return NULL;
}

static struct error *append(struct root_set *set, const struct root *root, uint32_t object)
{
	if (set->count == (uint64_t)set->segment_count * SEGMENT_ROOTS) {
		struct error *err = add_segment(set);

		if (err)
			return err;
	}
	set->segments[set->count / SEGMENT_ROOTS][set->count % SEGMENT_ROOTS] = (struct heap_root){
		.object = object,
		.goroutine = root->goroutine,
		.slot = root->slot,
		.kind = root->kind,
	};
	set->count++;
	return NULL;
}

static struct error *add_root(struct root_sink *sink, const struct root *root)
{
	struct root_set *set = (struct root_set *)sink;
	uint32_t object = span_table_object(set->spans, root->value);
	const struct span *span;
	uint32_t slot;

	if (object == OBJECT_NONE)
		return NULL;
	span = span_table_span_of(set->spans, object);
	slot = object - span->first_object;
	if (root_kind_is_conservative(root->kind))
		return span_slot_conservative(set->spans, span, slot) ? append(set, root, object)
								      : NULL;
	if (span_slot_present(set->spans, span, slot))
		return append(set, root, object);
	set->free_slot_hits++;
	return NULL;
}

struct error *root_set_new(const struct span_table *spans, struct root_set **ret)
{
	struct root_set *set = calloc(1, sizeof(*set));

	if (!set)
		return &error_nomem;
	set->sink.add = add_root;
	set->spans = spans;
	*ret = set;
	return NULL;
}

void root_set_free(struct root_set *set)
{
	if (!set)
		return;
	for (uint32_t i = 0; i < set->segment_count; i++)
		free(set->segments[i]);
	free(set->segments);
	free(set);
}

struct root_sink *root_set_sink(struct root_set *set)
{
	return &set->sink;
}

uint64_t root_set_count(const struct root_set *set)
{
	return set->count;
}

const struct heap_root *root_set_at(const struct root_set *set, uint64_t index)
{
	return &set->segments[index / SEGMENT_ROOTS][index % SEGMENT_ROOTS];
}

uint64_t root_set_free_slot_hits(const struct root_set *set)
{
	return set->free_slot_hits;
}
