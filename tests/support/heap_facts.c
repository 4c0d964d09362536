/*
 * For tests: what the heap side of agent/goruntime reads from a running Go process, as lines of
 * JSON. First the totals; then an answer for each line on standard input:
 *
 *   mask ADDR WORDS   the pointer mask of so many words from ADDR on
 *   size BYTES        how many slots of that size are allocated, present and conservative
 *   roots             the words of special records, queues and tiny blocks, and the objects with
 *                     finalizers
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "tests/support/live_target.h"

enum { WORD = 8, RUN_WORDS = 1 << 16 };

struct facts {
	struct live_target target;
	struct span_table *spans;
	struct heap_bits *bits;
	struct page_alloc *pages;
	struct special_table *specials;
	uint32_t gcphase;
};

static void print_totals(const struct facts *facts)
{
	const struct span_totals *t = span_table_totals(facts->spans);
	const struct page_totals *p = page_alloc_totals(facts->pages);

	printf("{\"objects\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"alloc_count_sum\": %" PRIu64
	       ", \"in_use_pages\": %" PRIu64 ", \"runtime_in_use_pages\": %" PRIu64
	       ", \"manual_pages\": %" PRIu64 ", \"skipped_spans\": %" PRIu64
	       ", \"unswept_spans\": %" PRIu64 ", \"sweeping_spans\": %" PRIu64
	       ", \"quarantined_bytes\": %" PRIu64,
	       t->allocated_objects, t->allocated_bytes, t->alloc_count_sum, t->in_use_pages,
	       t->runtime_in_use_pages, t->manual_pages, t->skipped_spans, t->unswept_spans,
	       t->sweeping_spans, t->quarantined_bytes);
	printf(", \"gcphase\": %" PRIu32, facts->gcphase);
	printf(", \"kept_pages\": %" PRIu64 ", \"released_pages\": %" PRIu64
	       ", \"cached_pages\": %" PRIu64 ", \"spanless_pages\": %" PRIu64
	       ", \"managed_pages\": %" PRIu64 ", \"contradictions\": %" PRIu64 "}\n",
	       p->kept_pages, p->released_pages, p->cached_pages, p->spanless_pages,
	       p->managed_pages, p->contradictions);
	fflush(stdout);
}

/* Bits of words of a span, run by run as the graph asks for them; mask is zeroed. */
static struct error *read_mask(struct facts *facts, const struct span *span, uint64_t *mask)
{
	uint64_t total = span->page_count * GO_PAGE_SIZE / WORD;
	uint64_t *words scoped(freep) = malloc(total * WORD);
	bool small = span->span_class >> 1 != 0;
	struct error *err;

	if (!words)
		return &error_nomem;
	err = memory_read_bulk(facts->target.memory, span->base, words, total * WORD);
	for (uint64_t at = 0; at < total && !err;) {
		uint64_t count = small || total - at < RUN_WORDS ? total - at : RUN_WORDS;

		err = heap_bits_read(facts->bits, span, at * WORD, words + at, (uint32_t)count,
				     mask + at / BITMAP_WORD_BITS);
		at += count;
	}
	return err;
}

static struct error *print_mask(struct facts *facts, taddr addr, uint64_t word_count)
{
	const struct span *span = span_table_find(facts->spans, addr);
	uint32_t object = span_table_object(facts->spans, addr);
	uint64_t *mask scoped(freep) = NULL;
	struct error *err;

	if (object == OBJECT_NONE ||
	    (addr - span->base) / WORD + word_count > span->page_count * GO_PAGE_SIZE / WORD)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no such object", addr);
	mask = calloc(span->page_count * GO_PAGE_SIZE / WORD / BITMAP_WORD_BITS, sizeof(*mask));
	if (!mask)
		return &error_nomem;
	err = read_mask(facts, span, mask);
	if (err)
		return err;
	printf("{\"elem_size\": %" PRIu64 ", \"allocated\": %s, \"skipped_bytes\": %" PRIu64
	       ", \"mask\": \"",
	       span->elem_size,
	       span_slot_allocated(facts->spans, span, object - span->first_object) ? "true"
										    : "false",
	       heap_bits_skipped_bytes(facts->bits));
	for (uint64_t i = 0; i < word_count; i += 8) {
		unsigned part = word_count - i < 8 ? (unsigned)(word_count - i) : 8;

		printf("%02x", (unsigned)bitmap_load(mask, (addr - span->base) / WORD + i, part));
	}
	puts("\"}");
	fflush(stdout);
	return NULL;
}

static void print_size(const struct facts *facts, uint64_t elem_size)
{
	uint64_t allocated = 0, present = 0, conservative = 0, sweeping = 0;

	for (uint32_t i = 0; i < span_table_count(facts->spans); i++) {
		const struct span *span = span_table_at(facts->spans, i);

		if (span->elem_size != elem_size)
			continue;
		sweeping += span->sweep == SPAN_SWEEPING ? span->elem_count : 0;
		for (uint32_t slot = 0; slot < span->elem_count; slot++) {
			allocated += span_slot_allocated(facts->spans, span, slot);
			present += span_slot_present(facts->spans, span, slot);
			conservative += span_slot_conservative(facts->spans, span, slot);
		}
	}
	printf("{\"allocated\": %" PRIu64 ", \"present\": %" PRIu64 ", \"conservative\": %" PRIu64
	       ", \"sweeping\": %" PRIu64 "}\n",
	       allocated, present, conservative, sweeping);
	fflush(stdout);
}

/* A root_sink that prints. */
static struct error *print_root(struct root_sink *sink, const struct root *root)
{
	(void)sink;
	printf("[%d, %" PRIu64 "], ", root->kind, root->value);
	return NULL;
}

static struct error *print_roots(const struct facts *facts)
{
	const struct live_target *t = &facts->target;
	struct root_sink sink = { print_root };
	struct error *err;

	printf("{\"roots\": [");
	err = special_table_roots(facts->specials, t->memory, t->layout, &sink);
	if (!err)
		err = special_queue_roots(t->memory, t->layout, &sink);
	if (err)
		return err;
	printf("[-1, 0]], \"specials\": [");
	for (uint32_t i = 0; i < special_table_count(facts->specials); i++) {
		const struct special *special = special_table_at(facts->specials, i);
		const struct span *span = span_table_span_of(facts->spans, special->object);

		printf("[%d, %" PRIu64 "], ", special->kind,
		       span_object_addr(span, special->object));
	}
	printf("[-1, 0]], \"skipped\": %" PRIu64 "}\n", special_table_skipped(facts->specials));
	fflush(stdout);
	return NULL;
}

static struct error *answer_line(struct facts *facts, const char *line)
{
	uint64_t addr, word_count, size;

	if (sscanf(line, "size %" SCNu64, &size) == 1) {
		print_size(facts, size);
		return NULL;
	}
	if (!strcmp(line, "roots\n"))
		return print_roots(facts);
	if (sscanf(line, "mask %" SCNu64 " %" SCNu64, &addr, &word_count) == 2)
		return print_mask(facts, addr, word_count);
	return error_new(ERROR_BAD_REQUEST, "not a question: %s", line);
}

static struct error *answer(struct facts *facts)
{
	struct error *err = NULL;
	char line[256];

	while (!err && fgets(line, sizeof(line), stdin))
		err = answer_line(facts, line);
	return err;
}

static struct error *run(pid_t pid, struct facts *facts)
{
	struct error *err = live_target_init(pid, &facts->target);

	if (!err)
		err = memory_u32(facts->target.memory, facts->target.layout->global_gcphase.addr,
				 &facts->gcphase);
	if (!err)
		err = span_table_read(facts->target.memory, facts->target.layout, &facts->spans);
	if (!err)
		err = heap_bits_new(facts->target.memory, facts->target.layout, facts->spans,
				    &facts->bits);
	if (!err)
		err = page_alloc_read(facts->target.memory, facts->target.layout, facts->spans,
				      &facts->pages);
	if (!err)
		err = special_table_read(facts->target.memory, facts->target.layout, facts->spans,
					 &facts->specials);
	if (err)
		return err;
	print_totals(facts);
	return answer(facts);
}

int main(int argc, char **argv)
{
	struct facts facts = { .target.exe_fd = -1 };
	struct error *err = run(argc > 1 ? atoi(argv[1]) : 0, &facts);

	special_table_free(facts.specials);
	page_alloc_free(facts.pages);
	heap_bits_free(facts.bits);
	span_table_free(facts.spans);
	live_target_fini(&facts.target);
	if (!err)
		return 0;
	fprintf(stderr, "heap_facts: %s\n", error_message(err));
	error_free(err);
	return 1;
}
