#include "agent/report/memory_need.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/goruntime/heap_extent.h"
#include "agent/goruntime/span_table.h"
#include "agent/report/analysis_report.h"

/* Bytes; what they are for is in agent/analysis. */
enum {
	ROW_BYTES = 16,        /* graph.h: by span */
	END_BYTES = 4,         /* by slot that may hold pointers */
	EDGE_BYTES = 4,        /* by pointer */
	STATE_BYTES = 1,       /* mark.c: by slot */
	COLOR_BYTES = 4,       /* label_color.c: by slot */
	CHUNK_BYTES = 8 << 20, /* edge_writer.c: by thread, before it is cut to what is used */
	/*
	 * What is shared, at its worst: every object is a group, and every edge a pair that is
	 * sorted. First it is folded (label_component.c, label_group.c), then masks of who reaches
	 * each group are handed on, of which all may be needed at a time (label_reach.c).
	 */
	FOLDING_OBJECT_BYTES = 112,
	REACH_OBJECT_BYTES = 56,
	GROUP_EDGE_BYTES = 32,
	MASK_BYTES = 128, /* by group and thread, but not more than: */
	MASKS_BYTES_MAX = 64 << 20,
	MASK_BYTES_MIN = 8, /* unless this for each of them is more */
	/* dominators.h: by slot, by slot with pointers, by pointer that leads back or across. */
	DOMINATOR_BYTES = 4,
	DOMINATOR_NUMBER_BYTES = 32,
	DOMINATOR_EDGE_BYTES = 4,
	/*
	 * graph_private.h: what a walk has noted of a pointer, of small slots alone.
	 * reference_private.h: by span, by slot, by live object of chains. At its worst a level,
	 * the one after it and what is left for later hold all objects (items and extents, in
	 * arrays that grow by half, and sorted), nothing is settled, and each thread has found all
	 * that a batch leads to.
	 */
	NOTE_BYTES = 3,
	WALK_SPAN_BYTES = 48,
	WALK_SLOT_BYTES = 4,
	WALK_CHAIN_BYTES = 14,
	WALK_ITEM_BYTES = 128,
	WALK_UNSETTLED_BYTES = 80,   /* by slot that may hold pointers */
	WALK_BATCH_BYTES = 64 << 20, /* by thread */
	/* reference_profile.c: by live object; frame_tree.h: by node. */
	PROFILE_BYTES = 8,
	PROFILE_NODE_BYTES = 160,
	PROFILE_SAMPLE_NODES = 4,
	PROFILE_NODES_MIN = 64 << 10,
	/* dominator_classes.c: by slot. */
	CLASS_BYTES = 12,
	/* What reading spans takes for a while, beside what stays. */
	SPAN_READING_BYTES = 3 * sizeof(struct span_candidate),
	GOROUTINE_BYTES = 2 << 10, /* its roots and its part of the answer */
	MARGIN_BYTES = 8 << 20,    /* results, stacks, the program's own */
};

/* The graph and its marking, but for its edges. */
static uint64_t fixed_bytes(const struct heap_extent *extent)
{
	return extent->spans * ROW_BYTES + extent->pointer_slots * END_BYTES +
	       extent->spans * END_BYTES + extent->slots / 8 + extent->slots * STATE_BYTES;
}

/* A run of edges that outgrows its chunk is copied to one of twice its size. */
static uint64_t edge_bytes(const struct memory_need_input *input)
{
	const struct heap_extent *extent = input->extent;
	uint64_t copied = extent->largest_words * input->threads;
	uint64_t edge = EDGE_BYTES + (input->questions.roots ? NOTE_BYTES : 0);

	if (copied > extent->pointer_words)
		copied = extent->pointer_words;
	return edge * (extent->pointer_words + 2 * copied) +
	       (uint64_t)input->threads * CHUNK_BYTES / EDGE_BYTES * edge;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t group_bytes(const struct heap_extent *extent, unsigned threads)
{
	uint64_t masks = extent->slots * MASK_BYTES;

	if (masks > MASKS_BYTES_MAX)
		masks = max(extent->slots * MASK_BYTES_MIN, MASKS_BYTES_MAX);
	return max(extent->slots * FOLDING_OBJECT_BYTES,
		   extent->slots * REACH_OBJECT_BYTES + threads * masks) +
	       extent->pointer_words * GROUP_EDGE_BYTES;
}

static uint64_t label_bytes(const struct memory_need_input *input)
{
	const struct heap_extent *extent = input->extent;
	uint64_t owners = extent->slots / 8; /* a bit for each, for a while */

	if (!input->labels)
		return 0;
	if (!input->many_parties)
		return owners + extent->slots * STATE_BYTES; /* a selection is marked by itself */
	return owners + extent->slots * COLOR_BYTES + group_bytes(extent, input->threads);
}

/* Every object might have edges, and every pointer lead to one of them from behind. */
static uint64_t retained_bytes(const struct memory_need_input *input)
{
	const struct heap_extent *extent = input->extent;
	uint64_t owners = extent->slots / 8;

	if (!input->questions.retained)
		return 0;
	if (input->questions.walks)
		owners += extent->slots * CLASS_BYTES;
	return owners + 2 * extent->slots / 8 + extent->pointer_slots * DOMINATOR_NUMBER_BYTES +
	       extent->pointer_words * DOMINATOR_EDGE_BYTES;
}

/* ---- questions about objects ---- */

struct memory_need_questions memory_need_questions(const Goheapd__Analysis *analysis, bool keeps,
						   bool stopped)
{
	struct memory_need_questions questions = { .roots = keeps, .copies = keeps };

	if (!analysis)
		return questions;
	questions.walks = analysis_wants_walk(analysis);
	questions.roots |= questions.walks;
	questions.chains = keeps || analysis_wants_chains(analysis);
	questions.copies |= stopped && questions.walks;
	questions.retained = analysis_wants_retained(analysis);
	questions.holders = analysis->label_types;
	if (analysis->profile)
		questions.samples = analysis->profile->max_samples;
	return questions;
}

/* What they take of any heap of this extent. */
static uint64_t least_bytes_of_questions(const struct memory_need_input *input)
{
	const struct memory_need_questions *questions = &input->questions;
	const struct heap_extent *extent = input->extent;
	uint64_t bytes = 0;

	if (questions->roots)
		bytes += extent->spans * WALK_SPAN_BYTES + extent->slots * WALK_SLOT_BYTES;
	if (questions->copies)
		bytes += extent->pointer_words * 8 + extent->spans * 8;
	if (questions->retained)
		bytes += extent->slots * DOMINATOR_BYTES;
	if (questions->holders)
		bytes += extent->slots * COLOR_BYTES;
	return bytes;
}

static uint64_t profile_bytes(const struct memory_need_input *input)
{
	const struct memory_need_questions *questions = &input->questions;
	uint64_t slots = input->extent->slots;
	uint64_t nodes =
	    max((uint64_t)questions->samples * PROFILE_SAMPLE_NODES, PROFILE_NODES_MIN);

	if (!questions->samples)
		return 0;
	return slots * PROFILE_BYTES + nodes * PROFILE_NODE_BYTES;
}

/* What they may take beside that: every object might be live, and led to by every pointer. */
static uint64_t most_bytes_of_questions(const struct memory_need_input *input)
{
	const struct memory_need_questions *questions = &input->questions;
	const struct heap_extent *extent = input->extent;
	uint64_t bytes = retained_bytes(input) + profile_bytes(input);

	if (questions->walks)
		bytes += extent->slots * WALK_ITEM_BYTES +
			 extent->pointer_slots * WALK_UNSETTLED_BYTES +
			 (uint64_t)input->threads * WALK_BATCH_BYTES;
	if (questions->chains)
		bytes += extent->slots * WALK_CHAIN_BYTES;
	if (questions->copies) /* what lies behind the last slot of a span */
		bytes += extent->pointer_words + extent->spans * GO_PAGE_SIZE;
	return bytes;
}

uint64_t memory_need_walked(uint64_t slots, uint64_t live_objects, bool chains)
{
	return slots * WALK_SLOT_BYTES + (chains ? live_objects * WALK_CHAIN_BYTES : 0);
}

/* ---- all of it ---- */

void memory_need_find(const struct memory_need_input *input, struct memory_need *ret)
{
	const struct heap_extent *extent = input->extent;
	uint64_t base = input->base + MARGIN_BYTES;

	if (!input->spans_read)
		base += extent->slots * 3 / 8 + extent->spans * (sizeof(struct span) + 32);
	ret->base = base;
	ret->plain = base + fixed_bytes(extent);
	ret->least = ret->plain + least_bytes_of_questions(input);
	ret->enough = ret->least + base / 8 + edge_bytes(input) + label_bytes(input) +
		      most_bytes_of_questions(input) +
		      (uint64_t)input->goroutines * GOROUTINE_BYTES;
	if (!input->spans_read)
		ret->enough += extent->spans * SPAN_READING_BYTES;
}

uint64_t memory_need_taken(void)
{
	unsigned long size, resident;
	FILE *file = fopen("/proc/self/statm", "re");
	struct rusage usage;
	bool known = file && fscanf(file, "%lu %lu", &size, &resident) == 2;

	if (file)
		fclose(file);
	if (known)
		return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

uint64_t memory_need_left(const struct memory_need *need, uint64_t limit)
{
	if (!limit)
		return 0;
	return limit > need->base ? limit - need->base : 1;
}

struct error *memory_need_refuse(const struct memory_need *need, uint64_t limit, struct error *err)
{
	error_free(err);
	if (need->plain != need->least)
		return error_new(ERROR_OUT_OF_MEMORY,
				 "the scan needs at least %" PRIu64 " bytes of memory, and %" PRIu64
				 " are enough in any case; max_scan_memory is %" PRIu64
				 ". Without its questions about objects it needs at least %" PRIu64,
				 need->least, need->enough, limit, need->plain);
	return error_new(ERROR_OUT_OF_MEMORY,
			 "the scan needs at least %" PRIu64 " bytes of memory, and %" PRIu64
			 " are enough in any case; max_scan_memory is %" PRIu64
			 ". depth=census needs no object graph",
			 need->least, need->enough, limit);
}
