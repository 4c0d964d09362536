/*
 * For tests: what the heap side of agent/goruntime reads from a running Go process, as lines of
 * JSON. First the totals; then, for each line "mask ADDR WORDS" on standard input, the pointer
 * mask of so many words of the object that begins at ADDR (or whose header lies before it).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/heap_bits.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/span.h"
#include "tests/support/live_target.h"

enum { WORD = 8, RUN_WORDS = 1 << 16 };

struct facts {
	struct live_target target;
	struct span_table *spans;
	struct heap_bits *bits;
};

static void print_totals(const struct facts *facts)
{
	const struct span_totals *t = span_table_totals(facts->spans);

	printf("{\"objects\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"alloc_count_sum\": %" PRIu64
	       ", \"in_use_pages\": %" PRIu64 ", \"runtime_in_use_pages\": %" PRIu64
	       ", \"manual_pages\": %" PRIu64 ", \"skipped_spans\": %" PRIu64
	       ", \"unswept_spans\": %" PRIu64 ", \"sweeping_spans\": %" PRIu64
	       ", \"quarantined_bytes\": %" PRIu64 "}\n",
	       t->allocated_objects, t->allocated_bytes, t->alloc_count_sum, t->in_use_pages,
	       t->runtime_in_use_pages, t->manual_pages, t->skipped_spans, t->unswept_spans,
	       t->sweeping_spans, t->quarantined_bytes);
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

static struct error *answer(struct facts *facts)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr, word_count;
		struct error *err;

		if (sscanf(line, "mask %" SCNu64 " %" SCNu64, &addr, &word_count) != 2)
			return error_new(ERROR_BAD_REQUEST, "heap_facts: %s", line);
		err = print_mask(facts, addr, word_count);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *run(pid_t pid, struct facts *facts)
{
	struct error *err = live_target_init(pid, &facts->target);

	if (!err)
		err = span_table_read(facts->target.memory, facts->target.layout, &facts->spans);
	if (!err)
		err = heap_bits_new(facts->target.memory, facts->target.layout, facts->spans,
				    &facts->bits);
	if (err)
		return err;
	print_totals(facts);
	return answer(facts);
}

int main(int argc, char **argv)
{
	struct facts facts = { .target.exe_fd = -1 };
	struct error *err = run(argc > 1 ? atoi(argv[1]) : 0, &facts);

	heap_bits_free(facts.bits);
	span_table_free(facts.spans);
	live_target_fini(&facts.target);
	if (!err)
		return 0;
	fprintf(stderr, "heap_facts: %s\n", error_message(err));
	error_free(err);
	return 1;
}
