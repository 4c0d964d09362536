#include "agent/analysis/heap_copy.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/pages.h"
#include "agent/analysis/workers.h"
#include "agent/goruntime/span_lookup.h"

/* Neighbouring spans are read at once, up to so many bytes and spans. */
enum { RUN_BYTES = 4 << 20, SPANS_AT_ONCE = 256 };

static const uint64_t not_there = UINT64_MAX;

struct heap_copy {
	struct memory memory;
	const struct span_table *spans;
	const struct span_lookup *lookup; /* of spans */
	struct budget budget;
	struct pages bytes, place_pages;
	uint64_t *places; /* by span: where its bytes begin, or not_there */
};

bool heap_copy_has(const struct span *span)
{
	return span->state == SPAN_IN_USE && span->elem_count && !span->noscan;
}

static uint64_t size_of(const struct span *span)
{
	return heap_copy_has(span) ? span->page_count * GO_PAGE_SIZE : 0;
}

static uint64_t copied_bytes(const struct span_table *spans)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < span_table_count(spans); i++)
		bytes += size_of(span_table_at(spans, i));
	return bytes;
}

uint64_t heap_copy_need(const struct span_table *spans)
{
	return copied_bytes(spans) + span_table_count(spans) * sizeof(uint64_t);
}

/* ---- reading it ---- */

/* The span that holds addr, or NULL. */
static const struct span *find_span(const struct heap_copy *copy, taddr addr, uint32_t *ret_index)
{
	const uint32_t *page = span_lookup_page(copy->lookup, addr);
	const struct span *span;

	if (!page || !*page)
		return NULL;
	*ret_index = *page - 1;
	span = span_table_at(copy->spans, *ret_index);
	return addr - span->base < size_of(span) ? span : NULL;
}

static const void *held_bytes(const struct memory *memory, taddr addr, size_t size)
{
	const struct heap_copy *copy = (const struct heap_copy *)memory;
	uint32_t index;
	const struct span *span = find_span(copy, addr, &index);

	if (!span || copy->places[index] == not_there || size > size_of(span) - (addr - span->base))
		return NULL;
	return (const uint8_t *)copy->bytes.data + copy->places[index] + (addr - span->base);
}

/* A run may lead from one span into the next. */
static struct error *read_copy(struct memory *memory, taddr addr, void *buf, size_t size)
{
	const struct heap_copy *copy = (const struct heap_copy *)memory;
	uint8_t *out = buf;

	while (size) {
		uint32_t index;
		const struct span *span = find_span(copy, addr, &index);
		uint64_t skip, part;

		if (!span || copy->places[index] == not_there)
			return error_new(ERROR_FAULT, "0x%" PRIx64 ": not kept", addr);
		skip = addr - span->base;
		part = size_of(span) - skip;
		if (part > size)
			part = size;
		memcpy(out, (const uint8_t *)copy->bytes.data + copy->places[index] + skip, part);
		out += part;
		addr += part;
		size -= part;
	}
	return NULL;
}

static void free_copy(struct memory *memory)
{
	struct heap_copy *copy = (struct heap_copy *)memory;

	memory_fini(memory);
	pages_fini(&copy->place_pages);
	pages_fini(&copy->bytes);
	free(copy);
}

static const struct memory_ops copy_ops = { .read = read_copy,
					    .held = held_bytes,
					    .free = free_copy };

/* ---- making it ---- */

struct copying {
	struct heap_copy *copy;
	struct memory *from;
	_Atomic uint32_t next_span;
};

static bool is_fault(const struct error *err)
{
	return error_code(err) == ERROR_FAULT;
}

static struct error *read_span(struct copying *job, uint32_t index)
{
	const struct span *span = span_table_at(job->copy->spans, index);
	uint8_t *to = (uint8_t *)job->copy->bytes.data + job->copy->places[index];
	struct error *err = memory_read_bulk(job->from, span->base, to, size_of(span));

	if (!err || !is_fault(err))
		return err;
	error_free(err);
	job->copy->places[index] = not_there;
	return NULL;
}

/* The spans [first, end) lie side by side. If they cannot be read together, some can alone. */
static struct error *read_run(struct copying *job, uint32_t first, uint32_t end, uint64_t size)
{
	const struct span *span = span_table_at(job->copy->spans, first);
	uint8_t *to = (uint8_t *)job->copy->bytes.data + job->copy->places[first];
	struct error *err = memory_read_bulk(job->from, span->base, to, size);

	if (!err || !is_fault(err))
		return err;
	error_free(err);
	err = NULL;
	for (uint32_t i = first; !err && i < end; i++)
		err = read_span(job, i);
	return err;
}

/* How far spans go on side by side from first, and how many bytes that is. */
static uint32_t find_run(const struct copying *job, uint32_t first, uint32_t end,
			 uint64_t *ret_size)
{
	const struct span_table *spans = job->copy->spans;
	const struct span *span = span_table_at(spans, first);
	taddr next = span->base + size_of(span);
	uint32_t i = first + 1;

	*ret_size = size_of(span);
	for (; i < end && *ret_size < RUN_BYTES; i++) {
		span = span_table_at(spans, i);
		if (span->base != next || !size_of(span))
			break;
		*ret_size += size_of(span);
		next += size_of(span);
	}
	return i;
}

static struct error *copy_spans(struct copying *job, uint32_t first, uint32_t end)
{
	struct error *err = NULL;

	while (!err && first < end) {
		uint64_t size;
		uint32_t next = find_run(job, first, end, &size);

		if (size)
			err = read_run(job, first, next, size);
		first = next;
	}
	return err;
}

static struct error *run_copy(void *arg, unsigned thread)
{
	struct copying *job = arg;
	uint32_t count = span_table_count(job->copy->spans), start;
	struct error *err = NULL;

	(void)thread;
	while (!err && (start = atomic_fetch_add(&job->next_span, SPANS_AT_ONCE)) < count)
		err = copy_spans(job, start,
				 count - start < SPANS_AT_ONCE ? count : start + SPANS_AT_ONCE);
	return err;
}

/* Every span that is copied has its place: in their order, without gaps. */
static struct error *place_spans(struct heap_copy *copy)
{
	uint32_t count = span_table_count(copy->spans);
	uint64_t place = 0;
	struct error *err =
	    pages_init(&copy->place_pages, &copy->budget, count * sizeof(*copy->places));

	if (!err)
		err = pages_init(&copy->bytes, &copy->budget, copied_bytes(copy->spans));
	if (err)
		return err;
	copy->places = copy->place_pages.data;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t size = size_of(span_table_at(copy->spans, i));

		copy->places[i] = size ? place : not_there;
		place += size;
	}
	return NULL;
}

struct error *heap_copy_new(struct memory *memory, const struct span_table *spans,
			    unsigned thread_count, uint64_t memory_limit, struct memory **ret)
{
	struct heap_copy *copy = calloc(1, sizeof(*copy));
	struct copying job = { .copy = copy, .from = memory };
	struct error *err;

	if (!copy)
		return &error_nomem;
	memory_init(&copy->memory, &copy_ops);
	copy->spans = spans;
	copy->lookup = span_table_lookup(spans);
	copy->budget.limit = memory_limit;
	err = place_spans(copy);
	if (!err)
		err = workers_run(workers_clamp(thread_count), run_copy, &job);
	if (err) {
		free_copy(&copy->memory);
		return error_context(err, "copy of the heap");
	}
	*ret = &copy->memory;
	return NULL;
}
