/*
 * From span memory to edges. The spans with pointers, in address order, are handed to threads from
 * one counter. A thread reads neighbouring spans in one go into a small buffer that it uses over
 * and over (so the bytes stay in its cache), asks for the pointer bits of each span, and turns
 * pointer words into object numbers. Looking up a pointer is three dependent loads from large
 * tables; words go through them in batches, a step at a time, each step prefetching for the next:
 *
 *	span words --bits--> pointer words --> page entries --> objects --> edges
 *
 * Nothing of the target's memory is kept, and memory without pointers is never read.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/analysis/edge_writer.h"
#include "agent/analysis/graph_private.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/heap_bits.h"

enum {
	READ_SIZE = 512 << 10,
	SPANS_AT_ONCE = 256,
	BATCH_SIZE = 1024,
	RUN_SIZE = 512, /* heap_bits_read takes multiples of it */
};

struct extraction {
	struct graph *graph;
	struct memory *memory;
	const struct layout *layout;
	_Atomic uint32_t next_span;
	atomic_bool failed;
	struct extractor *extractors;
};

/* One thread's. */
struct extractor {
	struct extraction *job;
	const struct graph *graph;
	struct heap_bits *bits;
	struct edge_writer writer, note_writer;
	struct graph_totals totals;
	uint64_t *words; /* READ_SIZE bytes of span memory */
	uint64_t *mask;  /* a bit for each */

	/* The span in work: the slot that edges are being added to, and its successor's word. */
	const struct span *span;
	uint32_t *ends;
	uint32_t edge_count, slot;
	uint64_t slot_words, next_slot_word;
	bool slot_trusted; /* a pointer of its to a free slot is a fault, not a leftover */
	const uint64_t *noted_words; /* of the whole span; NULL: nothing is noted of its edges */

	/* Pointer words on their way: value, position in the span, page entry, then object. */
	uint32_t batched;
	taddr values[BATCH_SIZE];
	uint64_t positions[BATCH_SIZE];
	const uint32_t *pages[BATCH_SIZE];
	uint32_t targets[BATCH_SIZE];
	uint8_t interior[BATCH_SIZE]; /* NOTE_INTERIOR or 0 */
};

/* What a bad target may cost is its own object or span; these end the whole scan. */
static bool is_fatal(const struct error *err)
{
	switch (error_code(err)) {
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
	case ERROR_UNSUPPORTED:
	case ERROR_CORRUPT_TARGET:
		return false;
	default:
		return true;
	}
}

static struct error *skip_unless_fatal(struct extractor *x, uint64_t size, struct error *err)
{
	if (!err || is_fatal(err))
		return err;
	error_free(err);
	x->totals.skipped_bytes += size;
	return NULL;
}

/*
 * The slots of a span whose words may be taken for an object's, as bits. Condemned objects keep
 * theirs (a finalizer may revive them). A slot just handed out by the allocator holds its
 * predecessor's words until it is initialised; freeIndexForScan tells (runtime/malloc.go,
 * mallocgc).
 */
static const uint64_t *source_bits(const struct extractor *x, const struct span *span)
{
	const struct span_lookup *lookup = x->graph->lookup;

	return span->sweep == SPAN_UNSWEPT ? lookup->allocated : lookup->conservative;
}

/* Takes the bits of what is no object out of the mask of a whole span. */
static void clear_free_slots(const struct extractor *x, const struct span *span, uint64_t *mask)
{
	const uint64_t *sources = source_bits(x, span);
	uint64_t slot_words = span->elem_size / 8, slots_end = span->elem_count * slot_words;

	bitmap_clear_range(mask, slots_end, span->page_count * GO_PAGE_SIZE / 8 - slots_end);
	for (uint32_t slot = 0; slot < span->elem_count; slot += 64) {
		unsigned count = span->elem_count - slot < 64 ? span->elem_count - slot : 64;
		uint64_t none = ~bitmap_load(sources, span->bits + slot, count);

		for (none &= bitmap_low_mask(count); none; none &= none - 1)
			bitmap_clear_range(mask,
					   (slot + (uint32_t)__builtin_ctzll(none)) * slot_words,
					   slot_words);
	}
}

/*
 * Where nothing tells which slots were just handed out (to go1.18), the last one of a span that a P
 * allocates from may still hold its predecessor's words.
 */
static void enter_slot(struct extractor *x, uint32_t slot)
{
	x->slot = slot;
	x->next_slot_word = (slot + UINT64_C(1)) * x->slot_words;
	x->slot_trusted = bitmap_get(x->graph->present, x->span->first_object + slot) &&
			  slot + 1 != x->span->newest;
}

/* words: of the whole span, if they are at hand. */
static void begin_span(struct extractor *x, const struct span *span, const uint64_t *words,
		       uint32_t *ends)
{
	x->span = span;
	x->noted_words = x->graph->noted && span->elem_size <= NOTED_SLOT_MAX ? words : NULL;
	x->ends = ends;
	x->edge_count = 0;
	x->slot_words = span->elem_count > 1 ? span->elem_size / 8 : UINT64_MAX;
	x->ends[0] = 0;
	x->batched = 0;
	edge_writer_begin(&x->writer);
	edge_writer_begin(&x->note_writer);
	enter_slot(x, 0);
}

static void close_slots_before(struct extractor *x, uint64_t position)
{
	do {
		x->ends[x->slot + 1] = x->edge_count;
		enter_slot(x, x->slot + 1);
	} while (position >= x->next_slot_word);
}

static void resolve_pages(struct extractor *x)
{
	for (uint32_t i = 0; i < x->batched; i++) {
		x->targets[i] = *x->pages[i];
		__builtin_prefetch(&x->graph->lookup->slots[x->targets[i]]);
	}
}

static void resolve_objects(struct extractor *x)
{
	const struct span_slots *slots = x->graph->lookup->slots;

	for (uint32_t i = 0; i < x->batched; i++) {
		x->targets[i] = span_slots_object(&slots[x->targets[i]], x->values[i]);
		__builtin_prefetch(&x->graph->present[x->targets[i] / 64]);
	}
}

/*
 * Does a word lead to the start of a slot? The remainder of the division that finds the slot is
 * less than the reciprocal then, and only then: a reciprocal is rounded up by less than 1 in
 * elem_size, which no slot of a span of small objects is far enough to add up to another step
 * (span.c, reciprocal_of).
 */
static bool is_start(const struct span_slots *slots, taddr value)
{
	uint64_t skip = value - slots->base;

	return !skip || (uint32_t)(skip * slots->reciprocal) < slots->reciprocal;
}

static void find_interior(struct extractor *x)
{
	const struct span_slots *slots = x->graph->lookup->slots;

	for (uint32_t i = 0; i < x->batched; i++)
		x->interior[i] =
		    is_start(&slots[*x->pages[i]], x->values[i]) ? 0 : (uint8_t)NOTE_INTERIOR;
}

/* What is at a word of the span, which may be in another slot already. */
static uint8_t note_word(const struct extractor *x, uint64_t position)
{
	uint64_t word;

	if (position >= x->next_slot_word)
		return NOTE_UNKNOWN;
	word = x->noted_words[position];
	return word < NOTE_UNKNOWN ? (uint8_t)word : (uint8_t)NOTE_UNKNOWN;
}

static struct edge_note note_of(const struct extractor *x, uint32_t i)
{
	uint64_t position = x->positions[i];

	return (struct edge_note){
		.word = (uint8_t)(position + x->slot_words - x->next_slot_word) | x->interior[i],
		.length = note_word(x, position + 1),
		.capacity = note_word(x, position + 2),
	};
}

/* One resolved word becomes an edge, if it leads to an object. */
static uint32_t edge_count_of(struct extractor *x, uint32_t target, uint32_t *edge)
{
	if (target == OBJECT_NONE)
		return 0;
	if (bitmap_get(x->graph->present, target)) {
		*edge = target;
		return 1;
	}
	if (!x->slot_trusted)
		return 0;
	*edge = OBJECT_NONE;
	x->totals.free_slot_edges++;
	return 1;
}

static struct error *flush(struct extractor *x)
{
	struct edge_note *notes = NULL;
	uint32_t *edges, count = 0;
	struct error *err;

	if (!x->batched)
		return NULL;
	err = edge_writer_room(&x->writer, x->batched, (void **)&edges);
	if (!err && x->noted_words)
		err = edge_writer_room(&x->note_writer, x->batched, (void **)&notes);
	if (err)
		return err;
	resolve_pages(x);
	resolve_objects(x);
	if (notes)
		find_interior(x);
	for (uint32_t i = 0; i < x->batched; i++) {
		uint32_t added;

		if (x->positions[i] >= x->next_slot_word)
			close_slots_before(x, x->positions[i]);
		added = edge_count_of(x, x->targets[i], &edges[count]);
		if (notes && added)
			notes[count] = note_of(x, i);
		count += added;
		x->edge_count += added;
	}
	edge_writer_add(&x->writer, count);
	if (notes)
		edge_writer_add(&x->note_writer, count);
	x->batched = 0;
	return NULL;
}

/* Batches the pointer words of a run of the span; position is that of its first word. */
static struct error *gather(struct extractor *x, const uint64_t *words, uint64_t word_count,
			    uint64_t position)
{
	const struct span_lookup *lookup = x->graph->lookup;
	struct error *err;

	for (uint64_t w = 0; w < word_count / 64; w++) {
		for (uint64_t bits = x->mask[w]; bits; bits &= bits - 1) {
			uint64_t at = w * 64 + (uint64_t)__builtin_ctzll(bits);
			const uint32_t *page = span_lookup_page(lookup, words[at]);

			if (!page)
				continue;
			__builtin_prefetch(page);
			x->pages[x->batched] = page;
			x->values[x->batched] = words[at];
			x->positions[x->batched++] = position + at;
		}
		if (x->batched > BATCH_SIZE - 64) {
			err = flush(x);
			if (err)
				return err;
		}
	}
	return NULL;
}

static struct error *end_span(struct extractor *x, struct graph_row *row)
{
	struct error *err = flush(x);

	if (err)
		return err;
	for (uint32_t slot = x->slot; slot < x->span->elem_count; slot++)
		x->ends[slot + 1] = x->edge_count;
	row->edges = edge_writer_edges(&x->writer);
	if (x->noted_words)
		row->notes = edge_writer_edges(&x->note_writer);
	x->totals.edges += x->edge_count;
	return NULL;
}

/* A span of small objects, whose bytes are at words. */
static struct error *extract_small(struct extractor *x, uint32_t i, const uint64_t *words)
{
	struct graph_row *row = &x->job->graph->rows[i];
	const struct span *span = span_table_at(x->graph->spans, i);
	uint32_t word_count = (uint32_t)(span->page_count * GO_PAGE_SIZE / 8);
	struct error *err = heap_bits_read(x->bits, span, 0, words, word_count, x->mask);

	if (err)
		return skip_unless_fatal(x, span->page_count * GO_PAGE_SIZE, err);
	clear_free_slots(x, span, x->mask);
	begin_span(x, span, words, row->ends);
	err = gather(x, words, word_count, 0);
	if (err)
		return err;
	return end_span(x, row);
}

/* A run of a large object, offset bytes into it. */
static struct error *extract_run(struct extractor *x, uint64_t offset, uint64_t size)
{
	uint32_t word_count = (uint32_t)(size / 8);
	struct error *err;

	err = memory_read_bulk(x->job->memory, x->span->base + offset, x->words, size);
	if (!err)
		err = heap_bits_read(x->bits, x->span, offset, x->words, word_count, x->mask);
	if (err)
		return skip_unless_fatal(x, size, err);
	return gather(x, x->words, word_count, offset / 8);
}

static struct error *extract_large(struct extractor *x, uint32_t i)
{
	struct graph_row *row = &x->job->graph->rows[i];
	const struct span *span = span_table_at(x->graph->spans, i);
	uint64_t size = (span->limit - span->base + RUN_SIZE - 1) & ~(uint64_t)(RUN_SIZE - 1);
	struct error *err;

	if (!span_lookup_bit(source_bits(x, span), span, 0))
		return NULL;
	begin_span(x, span, NULL, row->ends);
	for (uint64_t offset = 0; offset < size; offset += READ_SIZE) {
		uint64_t run = size - offset < READ_SIZE ? size - offset : READ_SIZE;

		err = extract_run(x, offset, run);
		if (err)
			return err;
	}
	return end_span(x, row);
}

/* runtime/mheap.go, spanClass: size class 0 is that of large objects. */
static bool is_large(const struct span *span)
{
	return span->span_class >> 1 == 0;
}

static bool has_pointers(const struct span *span)
{
	return span->elem_count && !span->noscan;
}

/* Spans from i on, before end, that lie side by side and fit the buffer; returns their end. */
static uint32_t find_run(const struct extractor *x, uint32_t i, uint32_t end, uint64_t *ret_size)
{
	taddr start = span_table_at(x->graph->spans, i)->base;
	uint64_t size = 0;

	for (; i < end; i++) {
		const struct span *span = span_table_at(x->graph->spans, i);
		uint64_t bytes = span->page_count * GO_PAGE_SIZE;

		if (!has_pointers(span) || is_large(span) || span->base != start + size ||
		    size + bytes > READ_SIZE)
			break;
		size += bytes;
	}
	*ret_size = size;
	return i;
}

static struct error *extract_each(struct extractor *x, uint32_t i, uint32_t end)
{
	struct error *err = NULL;

	for (; i < end && !err; i++) {
		const struct span *span = span_table_at(x->graph->spans, i);
		uint64_t size = span->page_count * GO_PAGE_SIZE;

		err = memory_read_bulk(x->job->memory, span->base, x->words, size);
		if (err)
			err = skip_unless_fatal(x, size, err);
		else
			err = extract_small(x, i, x->words);
	}
	return err;
}

/* Spans [i, end), side by side, read in one go; one by one if that fails. */
static struct error *extract_small_run(struct extractor *x, uint32_t i, uint32_t end, uint64_t size)
{
	taddr start = span_table_at(x->graph->spans, i)->base;
	struct error *err = memory_read_bulk(x->job->memory, start, x->words, size);

	if (err && is_fatal(err))
		return err;
	if (err) {
		error_free(err);
		return extract_each(x, i, end);
	}
	for (; i < end && !err; i++) {
		taddr base = span_table_at(x->graph->spans, i)->base;

		err = extract_small(x, i, x->words + (base - start) / 8);
	}
	return err;
}

static struct error *extract_range(struct extractor *x, uint32_t i, uint32_t end)
{
	struct error *err = NULL;

	while (i < end && !err) {
		const struct span *span = span_table_at(x->graph->spans, i);
		uint64_t size;
		uint32_t run_end;

		if (!has_pointers(span)) {
			i++;
		} else if (is_large(span)) {
			err = extract_large(x, i++);
		} else if (span->page_count * GO_PAGE_SIZE > READ_SIZE) {
			/* Far beyond any span of small objects. */
			x->totals.skipped_bytes += span->page_count * GO_PAGE_SIZE;
			i++;
		} else {
			run_end = find_run(x, i, end, &size);
			err = extract_small_run(x, i, run_end, size);
			i = run_end;
		}
	}
	return err;
}

static struct error *extract(struct extractor *x)
{
	struct extraction *job = x->job;
	uint32_t span_count = span_table_count(job->graph->spans);
	struct error *err;

	while (!atomic_load(&job->failed)) {
		uint32_t i = atomic_fetch_add(&job->next_span, SPANS_AT_ONCE);
		uint32_t left;

		if (i >= span_count)
			return NULL;
		left = span_count - i;
		err = extract_range(x, i, i + (left < SPANS_AT_ONCE ? left : SPANS_AT_ONCE));
		if (err) {
			atomic_store(&job->failed, true);
			return err;
		}
	}
	return NULL;
}

static struct error *run_extractor(void *arg, unsigned i)
{
	struct extraction *job = arg;
	struct extractor *x = &job->extractors[i];
	struct error *err;

	x->words = malloc(READ_SIZE);
	x->mask = malloc(READ_SIZE / 64);
	if (!x->words || !x->mask)
		return &error_nomem;
	err = heap_bits_new(job->memory, job->layout, job->graph->spans, &x->bits);
	if (err)
		return err;
	err = extract(x);
	if (!err)
		x->totals.skipped_bytes += heap_bits_skipped_bytes(x->bits);
	return err;
}

static void finish_extractor(struct extractor *x, struct graph *graph)
{
	graph->totals.edges += x->totals.edges;
	graph->totals.skipped_bytes += x->totals.skipped_bytes;
	graph->totals.free_slot_edges += x->totals.free_slot_edges;
	edge_writer_finish(&x->writer, &graph->chunks);
	edge_writer_finish(&x->note_writer, &graph->note_chunks);
	heap_bits_free(x->bits);
	free(x->words);
	free(x->mask);
}

struct error *graph_extract(struct graph *graph, struct memory *memory, const struct layout *layout,
			    unsigned thread_count)
{
	struct extraction job = { .graph = graph, .memory = memory, .layout = layout };
	struct error *err;

	thread_count = workers_clamp(thread_count);
	job.extractors = calloc(thread_count, sizeof(*job.extractors));
	if (!job.extractors)
		return &error_nomem;
	for (unsigned i = 0; i < thread_count; i++) {
		job.extractors[i].job = &job;
		job.extractors[i].graph = graph;
		edge_writer_init(&job.extractors[i].writer, &graph->budget, sizeof(uint32_t));
		edge_writer_init(&job.extractors[i].note_writer, &graph->budget,
				 sizeof(struct edge_note));
	}
	err = workers_run(thread_count, run_extractor, &job);
	for (unsigned i = 0; i < thread_count; i++)
		finish_extractor(&job.extractors[i], graph);
	free(job.extractors);
	return err;
}
