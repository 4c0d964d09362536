/*
 * Stops a running Go program again and again at chosen moments of its collections, as the keeper
 * does it, scans it, and compares with what the collector has marked, object by object.
 *
 *	mark_facts PID COUNT MOMENT SIZE[,SIZE...]
 *
 * MOMENT: marking, ended (straight after mark termination) or sweeping (some time after it). A stop
 *that came too late for it does not count. Prints an object for each stop, until COUNT of them are
 *in time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "agent/analysis/mark.h"
#include "agent/goruntime/collector.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/stack.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "agent/target/threads.h"
#include "tests/support/heap_trace.h"
#include "tests/support/live_scan.h"
#include "tests/support/live_target.h"

enum {
	SIZES_MAX = 16,
	EXTENDED_STATE_MAX = 16 << 10,
	SETTLE_ROUNDS = 5,
	LATE_MAX = 100, /* stops that come too late, for each that is wanted */
	WAIT_SECONDS = 60,
	NS_PER_SECOND = 1000000000,
};

static const struct timespec poll_pause = { .tv_nsec = 20000 };

/* What is proven must not depend on how busy the machine is. */
static const struct stop_limits patient = { .wait_us = 5000000, .attempts = 4 };

enum moment { MARKING, ENDED, SWEEPING, MOMENTS };
static const char *const moment_names[] = { "marking", "ended", "sweeping" };

struct watcher {
	pid_t pid;
	enum moment moment;
	uint64_t sizes[SIZES_MAX];
	unsigned size_count;
	struct procfs procfs;
	struct live_target target;
	struct module_table *modules; /* they do not change */
	struct address_range *unwalkable;
	uint32_t unwalkable_count;
};

/* Where the collector is, by two words that are read without stopping anybody. */
struct pace {
	uint32_t phase, sweepgen;
};

static struct error *read_pace(const struct watcher *w, struct pace *ret)
{
	const struct layout *l = w->target.layout;
	struct iovec local[] = { { &ret->phase, 4 }, { &ret->sweepgen, 4 } };
	struct iovec remote[] = {
		{ (void *)l->global_gcphase.addr, 4 },
		{ (void *)(l->global_mheap.addr + l->mheap_sweepgen.offset), 4 },
	};

	if (process_vm_readv(w->pid, local, 2, remote, 2, 0) != 8)
		return error_system(errno, "reading process %d", (int)w->pid);
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static bool has_come(const struct watcher *w, const struct pace *before, const struct pace *now)
{
	if (w->moment == MARKING)
		return now->phase == COLLECTOR_MARK;
	return now->sweepgen != before->sweepgen; /* the sweep begins with another generation */
}

/* Of uneven length, so that no two stops find the program at the same place. */
static void let_run(unsigned round, unsigned most_us)
{
	const struct timespec pause = { .tv_nsec = (long)(round * 7919 % most_us) * 1000 };

	nanosleep(&pause, NULL);
}

static struct error *wait_for_moment(const struct watcher *w, unsigned round)
{
	uint64_t deadline = now_ns() + (uint64_t)WAIT_SECONDS * NS_PER_SECOND;
	struct pace before, now;
	struct error *err = read_pace(w, &before);

	do {
		/* Who sleeps is let run at once when it wakes, even where everybody is busy. */
		nanosleep(&poll_pause, NULL);
		if (!err)
			err = read_pace(w, &now);
		if (err)
			return err;
		if (now_ns() > deadline)
			return error_new(ERROR_GONE, "the program does not collect");
	} while (!has_come(w, &before, &now));
	if (w->moment == MARKING || w->moment == SWEEPING)
		let_run(round, 4000);
	return NULL;
}

/* ---- the threads, as the decoder gets them ---- */

struct stopped_set {
	struct threads *threads;
	struct stopped_thread *stopped;
	uint8_t *vectors;
};

static void stopped_set_fini(struct stopped_set *set)
{
	threads_free(set->threads);
	free(set->stopped);
	free(set->vectors);
}

static struct error *take_thread(const struct stopped_set *set, uint32_t index)
{
	const struct thread *thread = threads_at(set->threads, index);
	const struct registers *r = &thread->registers;
	struct stopped_thread *stopped = &set->stopped[index];
	uint8_t *vector = set->vectors + (size_t)index * EXTENDED_STATE_MAX;
	size_t size;
	struct error *err =
	    threads_extended_state(set->threads, index, vector, EXTENDED_STATE_MAX, &size);

	if (err)
		return err;
	*stopped = (struct stopped_thread){
		.tid = (uint32_t)thread->tid,
		.target_tid = (uint32_t)thread->namespace_tid,
		.pc = r->pc,
		.sp = r->sp,
		.bp = r->bp,
		.tls = r->tls,
		.vector = vector,
		.vector_size = (uint32_t)size,
	};
	memcpy(stopped->gpr, r->general, sizeof(stopped->gpr));
	return NULL;
}

static struct error *stop(const struct watcher *w, const struct process *process,
			  struct stopped_set *set)
{
	uint32_t left, count;
	struct error *err = threads_stop(process, &patient, &set->threads);

	if (!err)
		err = threads_settle(set->threads, w->unwalkable, w->unwalkable_count,
				     SETTLE_ROUNDS, &left);
	if (err)
		return err;
	count = threads_count(set->threads);
	set->stopped = calloc(count + 1, sizeof(*set->stopped));
	set->vectors = calloc(count + 1, EXTENDED_STATE_MAX);
	if (!set->stopped || !set->vectors)
		return &error_nomem;
	for (uint32_t i = 0; !err && i < count; i++)
		err = take_thread(set, i);
	return err;
}

/* ---- the comparison ---- */

struct comparison {
	uint64_t sweeps[RAW_SWEEPS]; /* spans */
	uint64_t live;
	uint64_t missed;   /* exactly reachable, but not live to the scan */
	uint64_t invented; /* the other way round */
	/* Of spans that are to be swept, whose objects are all older than the sweep. */
	uint64_t marked_live, marked_dead;
	uint64_t unmarked_live, unmarked_exact;
	uint64_t refused; /* marked, but a conservative word would not count */
	/* Of swept spans. */
	uint64_t survived_live, new_live, free_live;
};

struct size_comparison {
	uint64_t live, marked_dead, unmarked_live;
};

static void compare_unswept(const struct raw_span *raw, uint32_t slot, bool live, bool exact,
			    bool conservative, struct comparison *c)
{
	bool marked = raw_span_marked(raw, slot);

	c->marked_live += marked && live;
	c->marked_dead += marked && !live && raw_span_allocated(raw, slot);
	c->refused += marked && !conservative && raw_span_allocated(raw, slot);
	c->unmarked_live += !marked && live;
	c->unmarked_exact += !marked && exact;
}

static void compare_swept(const struct raw_span *raw, uint32_t slot, struct comparison *c)
{
	if (raw_span_survived(raw, slot))
		c->survived_live++;
	else if (raw_span_allocated(raw, slot))
		c->new_live++;
	else
		c->free_live++;
}

static bool is_unswept(const struct raw_span *raw)
{
	return raw->sweep == RAW_UNSWEPT || raw->sweep == RAW_UNSWEPT_CACHED;
}

static void compare_slot(const struct live_scan *scan, const struct heap_trace *trace,
			 const struct span *span, uint32_t slot, struct comparison *c)
{
	const struct raw_span *raw = &trace->spans[span - span_table_at(scan->spans, 0)];
	uint32_t object = span->first_object + slot;
	bool live = mark_is_live(scan->mark, object);
	bool exact = trace->reach[object] == REACH_EXACT;

	c->live += live;
	c->missed += exact && !live;
	c->invented += live && trace->reach[object] == REACH_NONE;
	if (is_unswept(raw))
		compare_unswept(raw, slot, live, exact,
				span_slot_conservative(scan->spans, span, slot), c);
	else if (live && raw->sweep != RAW_SWEEPING)
		compare_swept(raw, slot, c);
}

static void compare(const struct live_scan *scan, const struct heap_trace *trace,
		    struct comparison *c)
{
	for (uint32_t i = 0; i < trace->span_count; i++) {
		const struct span *span = span_table_at(scan->spans, i);
		const struct raw_span *raw = &trace->spans[i];

		if (!raw->found)
			continue;
		c->sweeps[raw->sweep]++;
		for (uint32_t slot = 0; slot < span->elem_count; slot++)
			compare_slot(scan, trace, span, slot, c);
	}
}

static struct size_comparison compare_size(const struct live_scan *scan,
					   const struct heap_trace *trace, uint64_t size)
{
	struct size_comparison c = { 0 };

	for (uint32_t i = 0; i < trace->span_count; i++) {
		const struct span *span = span_table_at(scan->spans, i);
		const struct raw_span *raw = &trace->spans[i];

		for (uint32_t slot = 0; span->elem_size == size && slot < span->elem_count;
		     slot++) {
			bool live = mark_is_live(scan->mark, span->first_object + slot);
			bool marked = raw->found && raw_span_marked(raw, slot);

			c.live += live;
			c.marked_dead += is_unswept(raw) && marked && !live;
			c.unmarked_live += is_unswept(raw) && !marked && live;
		}
	}
	return c;
}

static void print(const struct watcher *w, const struct live_scan *scan,
		  const struct heap_trace *trace, const struct comparison *c, bool in_time)
{
	const struct mark_totals *totals = mark_totals(scan->mark);

	printf("{\"in_time\":%s,\"phase\":\"%s\",\"swept\":%" PRIu64 ",\"cached\":%" PRIu64
	       ",\"unswept\":%" PRIu64 ",\"unswept_cached\":%" PRIu64 ",\"sweeping\":%" PRIu64,
	       in_time ? "true" : "false", scan->phase, c->sweeps[RAW_SWEPT], c->sweeps[RAW_CACHED],
	       c->sweeps[RAW_UNSWEPT], c->sweeps[RAW_UNSWEPT_CACHED], c->sweeps[RAW_SWEEPING]);
	printf(",\"live\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"invented\":%" PRIu64
	       ",\"marked_live\":%" PRIu64 ",\"marked_dead\":%" PRIu64 ",\"unmarked_live\":%" PRIu64
	       ",\"unmarked_exact\":%" PRIu64 ",\"refused\":%" PRIu64,
	       c->live, c->missed, c->invented, c->marked_live, c->marked_dead, c->unmarked_live,
	       c->unmarked_exact, c->refused);
	printf(",\"survived_live\":%" PRIu64 ",\"new_live\":%" PRIu64 ",\"free_live\":%" PRIu64
	       ",\"strays\":%" PRIu64 ",\"free_slot_hits\":%" PRIu64 ",\"conservative\":%" PRIu32
	       ",\"skipped\":%" PRIu32 ",\"self_check\":\"%s\",\"sizes\":{",
	       c->survived_live, c->new_live, c->free_live, trace->strays, totals->free_slot_hits,
	       scan->conservative_stacks, scan->skipped_stacks, scan->self_check);
	for (unsigned i = 0; i < w->size_count; i++) {
		struct size_comparison size = compare_size(scan, trace, w->sizes[i]);

		printf("%s\"%" PRIu64 "\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
		       w->sizes[i], size.live, size.marked_dead, size.unmarked_live);
	}
	printf("}}\n");
}

static bool is_in_time(const struct watcher *w, const struct live_scan *scan,
		       const struct comparison *c)
{
	if (w->moment == MARKING)
		return !strcmp(scan->phase, collector_phase_name(COLLECTOR_MARK));
	return c->sweeps[RAW_UNSWEPT] + c->sweeps[RAW_UNSWEPT_CACHED] != 0;
}

static struct error *look(const struct watcher *w, const struct stopped_set *set, bool *ret_in_time)
{
	struct live_scan scan;
	struct heap_trace trace;
	struct comparison comparison = { 0 };
	struct error *err = live_scan_init(&w->target, w->modules, set->stopped,
					   threads_count(set->threads), &scan);

	if (err)
		return err;
	err = heap_trace_init(&w->target, &scan, &trace);
	if (!err) {
		compare(&scan, &trace, &comparison);
		*ret_in_time = is_in_time(w, &scan, &comparison);
		print(w, &scan, &trace, &comparison, *ret_in_time);
		heap_trace_fini(&trace);
	}
	live_scan_fini(&scan);
	return err;
}

static struct error *take_stop(const struct watcher *w, unsigned round, bool *ret_in_time)
{
	struct process *process scoped(process_freep) = NULL;
	struct stopped_set set = { 0 };
	struct error *err = process_read(&w->procfs, w->pid, &process);

	if (!err)
		err = wait_for_moment(w, round);
	if (!err)
		err = stop(w, process, &set);
	if (!err)
		err = look(w, &set, ret_in_time);
	stopped_set_fini(&set);
	return err ? error_context(err, "stop %u", round) : NULL;
}

static struct error *find_unwalkable(struct watcher *w)
{
	struct pc_range *ranges scoped(freep) = NULL;
	struct error *err = module_table_read(w->target.memory, w->target.layout, &w->modules);

	if (!err)
		err = stack_unwalkable_ranges(module_table_at(w->modules, 0)->pclntab, &ranges,
					      &w->unwalkable_count);
	if (err)
		return err;
	w->unwalkable = calloc(w->unwalkable_count + 1, sizeof(*w->unwalkable));
	if (!w->unwalkable)
		return &error_nomem;
	for (uint32_t i = 0; i < w->unwalkable_count; i++)
		w->unwalkable[i] = (struct address_range){ ranges[i].start, ranges[i].end };
	return NULL;
}

static struct error *run(struct watcher *w, unsigned count)
{
	struct error *err = procfs_init(&w->procfs, "/proc", "/sys/fs/cgroup");

	if (!err)
		err = live_target_init(w->pid, &w->target);
	if (!err)
		err = find_unwalkable(w);
	memory_fini(w->target.memory);
	for (unsigned i = 0, done = 0; !err && done < count && i < LATE_MAX * count; i++) {
		bool in_time = false;

		err = take_stop(w, i, &in_time);
		done += in_time;
		let_run(i, 3000);
	}
	free(w->unwalkable);
	module_table_free(w->modules);
	live_target_fini(&w->target);
	return err;
}

static enum moment parse_moment(const char *text)
{
	for (unsigned i = 0; i < MOMENTS; i++) {
		if (!strcmp(text, moment_names[i]))
			return (enum moment)i;
	}
	return MOMENTS;
}

static void parse_sizes(struct watcher *w, char *text)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, ",", &rest); word && w->size_count < SIZES_MAX;
	     word = strtok_r(NULL, ",", &rest))
		w->sizes[w->size_count++] = strtoull(word, NULL, 10);
}

int main(int argc, char **argv)
{
	struct watcher w = { .target.exe_fd = -1 };
	struct error *err;

	if (argc != 5 || parse_moment(argv[3]) == MOMENTS) {
		fprintf(stderr, "usage: mark_facts PID COUNT MOMENT SIZES\n");
		return EXIT_FAILURE;
	}
	w.pid = (pid_t)atoi(argv[1]);
	w.moment = parse_moment(argv[3]);
	parse_sizes(&w, argv[4]);
	err = run(&w, (unsigned)atoi(argv[2]));
	if (!err)
		return EXIT_SUCCESS;
	fprintf(stderr, "mark_facts: %s\n", error_message(err));
	error_free(err);
	return EXIT_FAILURE;
}
