#include "tests/support/heap_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "proto/base/bytes.h"
#include "tests/support/live_scan.h"
#include "tests/support/live_target.h"

enum { WORD = 8, RUN_WORDS = 1 << 16 };

/* The words of a span, and which of them are pointers. */
struct span_words {
	uint64_t *words, *mask;
};

struct tracer {
	struct root_sink sink; /* first: what callbacks get */
	const struct live_target *target;
	const struct live_scan *scan;
	struct heap_trace *trace;
	struct heap_bits *bits;
	struct span_words *words; /* by span; read when first needed */
	uint32_t *todo;
	uint32_t todo_count;
	bool conservative; /* which roots count in this run */
};

static bool bit(const uint8_t *bits, uint32_t slot)
{
	return bits && bits[slot / 8] >> slot % 8 & 1;
}

bool raw_span_allocated(const struct raw_span *span, uint32_t slot)
{
	return slot < span->free_index || bit(span->alloc_bits, slot);
}

bool raw_span_marked(const struct raw_span *span, uint32_t slot)
{
	return bit(span->marks, slot);
}

bool raw_span_survived(const struct raw_span *span, uint32_t slot)
{
	return bit(span->alloc_bits, slot);
}

/* ---- the spans, as their structures have them ---- */

static enum raw_sweep sweep_of(uint64_t sweepgen, uint32_t heap_sweepgen)
{
	switch ((int32_t)((uint32_t)sweepgen - heap_sweepgen)) {
	case 3:
		return RAW_CACHED;
	case -2:
		return RAW_UNSWEPT;
	case 1:
		return RAW_UNSWEPT_CACHED;
	case -1:
		return RAW_SWEEPING;
	default:
		return RAW_SWEPT;
	}
}

static struct error *read_bits(const struct live_target *t, taddr addr, uint32_t count,
			       uint8_t **ret)
{
	uint8_t *bits scoped(freep) = calloc(1, count / 8 + 1);
	struct error *err;

	if (!bits)
		return &error_nomem;
	err = memory_read(t->memory, addr, bits, (count + 7) / 8);
	if (!err)
		*ret = take(bits);
	return err;
}

/* runtime/mgcmark_greenteagc.go, spanInlineMarkBits: at the span's end. */
static struct error *add_inline_marks(const struct live_target *t, const struct span *span,
				      struct raw_span *raw)
{
	const struct layout *l = t->layout;
	uint8_t *marks scoped(freep) = NULL;
	struct error *err =
	    read_bits(t,
		      span->base + span->page_count * GO_PAGE_SIZE - l->span_inline_marks.size +
			  l->span_inline_marks_marks.offset,
		      span->elem_count, &marks);

	for (uint32_t i = 0; !err && i < (span->elem_count + 7) / 8; i++)
		raw->marks[i] |= marks[i];
	return err;
}

static struct error *read_span(const struct live_target *t, taddr mspan, uint32_t heap_sweepgen,
			       const struct span *span, struct raw_span *raw)
{
	const struct layout *l = t->layout;
	uint64_t sweepgen, alloc_bits, marks;
	struct error *err = layout_read_field(t->memory, mspan, l->mspan_sweepgen, &sweepgen);

	if (!err)
		err = layout_read_field(t->memory, mspan, l->mspan_free_index, &raw->free_index);
	if (!err)
		err = layout_read_field(t->memory, mspan, l->mspan_alloc_bits, &alloc_bits);
	if (!err)
		err = layout_read_field(t->memory, mspan, l->mspan_mark_bits, &marks);
	if (!err)
		err = read_bits(t, alloc_bits, span->elem_count, &raw->alloc_bits);
	if (!err)
		err = read_bits(t, marks, span->elem_count, &raw->marks);
	if (!err && span->inline_marks)
		err = add_inline_marks(t, span, raw);
	raw->sweep = sweep_of(sweepgen, heap_sweepgen);
	raw->found = !err;
	return err;
}

/* The span of the table that this structure stands for; NULL if it stands for none in use. */
static struct error *match(const struct live_target *t, const struct live_scan *scan, taddr mspan,
			   const struct span **ret)
{
	uint64_t state, base;
	const struct span *span;
	struct error *err = layout_read_field(t->memory, mspan, t->layout->mspan_state, &state);

	if (!err)
		err = layout_read_field(t->memory, mspan, t->layout->mspan_start_addr, &base);
	if (err)
		return err;
	span = state == SPAN_IN_USE ? span_table_find(scan->spans, base) : NULL;
	*ret = span && span->base == base && span->state == SPAN_IN_USE ? span : NULL;
	return NULL;
}

static struct error *read_spans(const struct live_target *t, const struct live_scan *scan,
				struct heap_trace *trace)
{
	taddr heap = t->layout->global_mheap.addr, list = heap + t->layout->mheap_allspans.offset;
	uint64_t data, count;
	uint32_t heap_sweepgen;
	struct error *err =
	    memory_u32(t->memory, heap + t->layout->mheap_sweepgen.offset, &heap_sweepgen);

	if (!err)
		err = memory_u64(t->memory, list, &data);
	if (!err)
		err = memory_u64(t->memory, list + WORD, &count);
	for (uint64_t i = 0; !err && i < count; i++) {
		const struct span *span = NULL;
		uint64_t mspan;

		err = memory_u64(t->memory, data + i * WORD, &mspan);
		if (!err && mspan)
			err = match(t, scan, mspan, &span);
		if (!err && span)
			err = read_span(t, mspan, heap_sweepgen, span,
					&trace->spans[span - span_table_at(scan->spans, 0)]);
	}
	return err;
}

/* ---- following pointers ---- */

static const struct raw_span *raw_of(const struct tracer *tracer, const struct span *span)
{
	return &tracer->trace->spans[span - span_table_at(tracer->scan->spans, 0)];
}

static void reach(struct tracer *tracer, taddr addr, bool exact)
{
	uint32_t object = span_table_object(tracer->scan->spans, addr);
	const struct span *span = object ? span_table_span_of(tracer->scan->spans, object) : NULL;
	const struct raw_span *raw = span ? raw_of(tracer, span) : NULL;

	if (!object || tracer->trace->reach[object])
		return;
	if (raw->sweep != RAW_SWEEPING && !raw_span_allocated(raw, object - span->first_object)) {
		tracer->trace->strays += exact;
		return;
	}
	tracer->trace->reach[object] = tracer->conservative ? REACH_CONSERVATIVE : REACH_EXACT;
	tracer->todo[tracer->todo_count++] = object;
}

/* As heap_bits_read wants to be asked. */
static struct error *read_mask(struct tracer *tracer, const struct span *span,
			       struct span_words *words)
{
	uint64_t total = span->page_count * GO_PAGE_SIZE / WORD;
	bool small = span->span_class >> 1 != 0;
	struct error *err = NULL;

	for (uint64_t at = 0; at < total && !err;) {
		uint64_t count = small || total - at < RUN_WORDS ? total - at : RUN_WORDS;

		err = heap_bits_read(tracer->bits, span, at * WORD, words->words + at,
				     (uint32_t)count, words->mask + at / BITMAP_WORD_BITS);
		at += count;
	}
	return err;
}

static struct error *words_of(struct tracer *tracer, const struct span *span,
			      struct span_words **ret)
{
	struct span_words *words = &tracer->words[span - span_table_at(tracer->scan->spans, 0)];
	uint64_t total = span->page_count * GO_PAGE_SIZE / WORD;
	struct error *err;

	*ret = words;
	if (words->mask)
		return NULL;
	words->words = malloc(total * WORD);
	words->mask = calloc(total / BITMAP_WORD_BITS + 1, sizeof(*words->mask));
	if (!words->words || !words->mask)
		return &error_nomem;
	err = memory_read_bulk(tracer->target->memory, span->base, words->words, total * WORD);
	return err ? err : read_mask(tracer, span, words);
}

static struct error *follow_object(struct tracer *tracer, uint32_t object)
{
	const struct span *span = span_table_span_of(tracer->scan->spans, object);
	uint64_t first = (span_object_addr(span, object) - span->base) / WORD;
	struct span_words *words;
	struct error *err;

	if (span->noscan)
		return NULL;
	err = words_of(tracer, span, &words);
	for (uint64_t i = first; !err && i < first + span->elem_size / WORD; i++) {
		if (bitmap_get(words->mask, i))
			reach(tracer, load_u64le(&words->words[i]), !tracer->conservative);
	}
	return err;
}

static struct error *follow_all(struct tracer *tracer)
{
	struct error *err = NULL;

	while (!err && tracer->todo_count)
		err = follow_object(tracer, tracer->todo[--tracer->todo_count]);
	return err;
}

static struct error *add_root(struct root_sink *sink, const struct root *root)
{
	struct tracer *tracer = (struct tracer *)sink;
	bool conservative = root_kind_is_conservative(root->kind);

	if (conservative == tracer->conservative)
		reach(tracer, root->value, !conservative);
	return NULL;
}

/* The fields of objects with finalizers are roots, the objects are not. */
static struct error *follow_finalizers(struct tracer *tracer)
{
	const struct special_table *specials = tracer->scan->specials;
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < special_table_count(specials); i++) {
		const struct special *special = special_table_at(specials, i);

		if (special->kind == SPECIAL_FINALIZER)
			err = follow_object(tracer, special->object);
	}
	return err;
}

static struct error *trace_all(struct tracer *tracer)
{
	struct error *err = live_scan_roots(tracer->target, tracer->scan, &tracer->sink);

	if (!err)
		err = follow_finalizers(tracer);
	if (!err)
		err = follow_all(tracer);
	tracer->conservative = true;
	if (!err)
		err = live_scan_roots(tracer->target, tracer->scan, &tracer->sink);
	return err ? err : follow_all(tracer);
}

static void tracer_fini(struct tracer *tracer)
{
	for (uint32_t i = 0; tracer->words && i < tracer->trace->span_count; i++) {
		free(tracer->words[i].words);
		free(tracer->words[i].mask);
	}
	heap_bits_free(tracer->bits);
	free(tracer->words);
	free(tracer->todo);
}

static struct error *find_reach(const struct live_target *target, const struct live_scan *scan,
				struct heap_trace *trace)
{
	struct tracer tracer = {
		.sink.add = add_root, .target = target, .scan = scan, .trace = trace
	};
	struct error *err =
	    heap_bits_new(target->memory, target->layout, scan->spans, &tracer.bits);

	tracer.todo = calloc(span_table_object_end(scan->spans) + 1, sizeof(*tracer.todo));
	tracer.words = calloc(trace->span_count + 1, sizeof(*tracer.words));
	if (!err && (!tracer.todo || !tracer.words))
		err = &error_nomem;
	if (!err)
		err = trace_all(&tracer);
	tracer_fini(&tracer);
	return err;
}

struct error *heap_trace_init(const struct live_target *target, const struct live_scan *scan,
			      struct heap_trace *ret)
{
	struct heap_trace trace = { .span_count = span_table_count(scan->spans) };
	struct error *err = NULL;

	trace.spans = calloc(trace.span_count + 1, sizeof(*trace.spans));
	trace.reach = calloc(span_table_object_end(scan->spans) + 1, 1);
	if (!trace.spans || !trace.reach)
		err = &error_nomem;
	if (!err)
		err = read_spans(target, scan, &trace);
	if (!err)
		err = find_reach(target, scan, &trace);
	memory_fini(target->memory); /* forget what was cached: the process may go on */
	if (err) {
		heap_trace_fini(&trace);
		return err;
	}
	*ret = trace;
	return NULL;
}

void heap_trace_fini(struct heap_trace *trace)
{
	for (uint32_t i = 0; trace->spans && i < trace->span_count; i++) {
		free(trace->spans[i].alloc_bits);
		free(trace->spans[i].marks);
	}
	free(trace->spans);
	free(trace->reach);
	*trace = (struct heap_trace){ 0 };
}
