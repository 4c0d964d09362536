#include "agent/report/self_check.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"

/* A span that is being swept changes its count and its bits one after the other. */
enum { SLOTS_IN_MOTION = 1024, PAGES_IN_MOTION = 64 };

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * Pages are counted after a span is there, and no more before it goes (runtime/mheap.go, initSpan,
 * freeSpanLocked), while nothing is allocated from it: the spans may have more, by such spans.
 */
static bool pages_add_up(const struct span_totals *spans)
{
	return spans->in_use_pages >= spans->runtime_in_use_pages &&
	       spans->in_use_pages - spans->runtime_in_use_pages <= spans->empty_pages;
}

/*
 * Spans are made of pages that the allocator manages, but for user arenas, of which one that is
 * being made may not look so yet (runtime/arena.go, allocUserArenaChunk).
 */
static uint64_t pages_out_of_bounds(const struct span_totals *spans,
				    const struct page_totals *pages)
{
	uint64_t total = spans->in_use_pages + spans->manual_pages - spans->user_arena_pages;
	uint64_t outside = total > pages->span_pages ? total - pages->span_pages : 0;

	return spans->user_arena_pages && outside <= spans->empty_pages ? 0 : outside;
}

void self_check(const struct self_check_input *input, char ret[SELF_CHECK_SIZE])
{
	const struct span_totals *spans = input->spans;
	const char *complaint = goroutine_table_complaint(input->goroutines);
	uint64_t slack = input->thread_count + spans->sweeping_spans * SLOTS_IN_MOTION;

	if (spans->skipped_spans)
		snprintf(ret, SELF_CHECK_SIZE,
			 "%" PRIu64 " spans contradict the runtime's other tables",
			 spans->skipped_spans);
	else if (distance(spans->alloc_count_sum,
			  spans->allocated_objects + spans->reusable_objects) > slack)
		snprintf(ret, SELF_CHECK_SIZE,
			 "spans count %" PRIu64 " allocated objects, their bits %" PRIu64,
			 spans->alloc_count_sum, spans->allocated_objects);
	else if (spans->miscounted_spans || spans->uneven_spans > input->thread_count)
		snprintf(ret, SELF_CHECK_SIZE,
			 "%" PRIu64 " spans count other objects than their bits do",
			 spans->miscounted_spans + spans->uneven_spans);
	else if (!pages_add_up(spans))
		snprintf(ret, SELF_CHECK_SIZE,
			 "the heap counts %" PRIu64 " pages in use, its spans have %" PRIu64,
			 spans->runtime_in_use_pages, spans->in_use_pages);
	else if (input->pages->contradictions > (uint64_t)input->thread_count * PAGES_IN_MOTION)
		snprintf(ret, SELF_CHECK_SIZE, "%" PRIu64 " pages are free and in a span at once",
			 input->pages->contradictions);
	else if (input->pages->foreign_pages || input->pages->broken_ranges)
		snprintf(ret, SELF_CHECK_SIZE,
			 "%" PRIu64
			 " pages of the page allocator's ranges are in no arena, %" PRIu64
			 " ranges make no sense",
			 input->pages->foreign_pages, input->pages->broken_ranges);
	else if (pages_out_of_bounds(spans, input->pages))
		snprintf(ret, SELF_CHECK_SIZE,
			 "%" PRIu64 " pages of spans are outside of the page allocator's ranges",
			 pages_out_of_bounds(spans, input->pages));
	else if (input->skipped_specials)
		snprintf(ret, SELF_CHECK_SIZE, "%" PRIu64 " lists of specials do not hold together",
			 input->skipped_specials);
	else
		snprintf(ret, SELF_CHECK_SIZE, "%s", complaint ? complaint : "ok");
}
