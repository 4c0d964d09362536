#include "agent/goruntime/collector.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/gather.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum {
	MIN_RUNWAY = 64 << 10,       /* runtime/mgcpacer.go, heapGoalInternal */
	MIN_GOAL_HEADROOM = 1 << 20, /* memoryLimitMinHeapGoalHeadroom */
	GOROUTINES_MAX = 1 << 24,
};

/* Reads fields of the runtime's globals, keeping the first error. */
struct reader {
	struct memory *memory;
	struct error *err;
};

/* 0 for what this runtime does not have. */
static uint64_t field(struct reader *r, struct layout_global global, struct layout_field field)
{
	uint64_t value = 0;

	if (!r->err && global.size && field.size)
		r->err = layout_read_field(r->memory, global.addr, field, &value);
	return r->err ? 0 : value;
}

static uint64_t global_value(struct reader *r, struct layout_global global)
{
	const struct layout_field whole = { .offset = 0, .size = (uint32_t)global.size };

	return field(r, global, whole);
}

/* runtime/mgcpacer.go, memoryLimitHeapGoal; since go1.19. */
static uint64_t memory_limit_goal(struct reader *r, const struct layout *l, uint64_t limit,
				  uint64_t marked)
{
	struct layout_global c = l->global_gc_controller;
	uint64_t free = field(r, c, l->gc_controller_heap_free);
	uint64_t allocated =
	    field(r, c, l->gc_controller_total_alloc) - field(r, c, l->gc_controller_total_free);
	uint64_t ready = field(r, c, l->gc_controller_mapped_ready);
	uint64_t other, overage = ready > limit ? ready - limit : 0;
	uint64_t goal, headroom = 0;

	if (allocated > ready || free > ready - allocated)
		return marked; /* counters in mid-change */
	other = ready - free - allocated;
	if (other + overage >= limit)
		return marked;
	goal = limit - (other + overage);
	/* A share of the goal since go1.21, a constant before. */
	if (l->const_heap_goal_headroom_percent.known)
		headroom = goal / 100 * (uint64_t)l->const_heap_goal_headroom_percent.value;
	if (headroom < MIN_GOAL_HEADROOM)
		headroom = MIN_GOAL_HEADROOM;
	goal = goal < headroom || goal - headroom < headroom ? headroom : goal - headroom;
	return goal < marked ? marked : goal;
}

/* runtime/mgcpacer.go, heapGoalInternal; since go1.19. Before, the goal was kept as it is. */
static uint64_t read_goal(struct reader *r, const struct layout *l, const struct collector *c)
{
	struct layout_global controller = l->global_gc_controller;
	uint64_t goal, limited, least, triggered;

	if (!layout_has(l, gc_controller_percent_goal))
		return field(r, l->global_memstats, l->mstats_next_gc);
	goal = field(r, controller, l->gc_controller_percent_goal);
	if (layout_has(l, gc_controller_memory_limit)) {
		limited = memory_limit_goal(r, l, c->has_memory_limit ? c->memory_limit : INT64_MAX,
					    c->marked);
		if (limited < goal)
			return limited;
	}
	least = field(r, controller, l->gc_controller_sweep_trigger);
	if (least > goal)
		goal = least;
	triggered = field(r, controller, l->gc_controller_triggered);
	if (triggered != UINT64_MAX && goal < triggered + MIN_RUNWAY)
		goal = triggered + MIN_RUNWAY;
	return goal;
}

static void read_settings(struct reader *r, const struct layout *l, struct collector *c)
{
	struct layout_global controller = l->global_gc_controller;
	uint64_t limit;

	c->percent = layout_has(l, gc_controller_gc_percent)
			 ? (int32_t)field(r, controller, l->gc_controller_gc_percent)
			 : (int32_t)global_value(r, l->global_gc_percent);
	limit = field(r, controller, l->gc_controller_memory_limit);
	/* No limit is math.MaxInt64; runtime/mgcpacer.go, readGOMEMLIMIT. */
	if (layout_has(l, gc_controller_memory_limit) && limit < INT64_MAX) {
		c->has_memory_limit = true;
		c->memory_limit = limit;
	}
}

static void read_counters(struct reader *r, const struct layout *l, struct collector *c)
{
	struct layout_global stats = l->global_memstats;
	uint64_t fraction = field(r, stats, l->mstats_gc_cpu_fraction);

	c->cycles = field(r, stats, l->mstats_num_gc);
	c->forced = field(r, stats, l->mstats_num_forced_gc);
	c->last_end_ns = field(r, stats, l->mstats_last_gc_unix);
	c->pause_total_ns = field(r, stats, l->mstats_pause_total_ns);
	memcpy(&c->cpu_fraction, &fraction, sizeof(c->cpu_fraction));
	c->has_limiter = layout_has(l, gc_cpu_limiter_enabled);
	c->limiter_active = field(r, l->global_gc_cpu_limiter, l->gc_cpu_limiter_enabled) != 0;
}

/* Totals that moved from memstats to gcController after go1.15. */
static uint64_t moved(struct reader *r, const struct layout *l, struct layout_field now,
		      struct layout_field before)
{
	return now.size ? field(r, l->global_gc_controller, now)
			: field(r, l->global_memstats, before);
}

struct error *collector_read(struct memory *memory, const struct layout *layout,
			     struct collector *ret)
{
	struct reader r = { .memory = memory };
	struct collector c = { 0 };

	c.phase = (uint32_t)global_value(&r, layout->global_gcphase);
	c.marked = moved(&r, layout, layout->gc_controller_heap_marked, layout->mstats_heap_marked);
	c.live = moved(&r, layout, layout->gc_controller_heap_live, layout->mstats_heap_live);
	read_settings(&r, layout, &c);
	read_counters(&r, layout, &c);
	c.goal = read_goal(&r, layout, &c);
	/* With GOGC=off and no limit the runtime reckons with a goal of exabytes. */
	c.has_goal = c.percent >= 0 || c.has_memory_limit;
	if (r.err)
		return error_context(r.err, "the collector's counters");
	*ret = c;
	return NULL;
}

const char *collector_phase_name(uint32_t phase)
{
	switch (phase) {
	case COLLECTOR_OFF:
		return "off";
	case COLLECTOR_MARK:
		return "mark";
	case COLLECTOR_MARK_TERMINATION:
		return "mark termination";
	default:
		return "unknown";
	}
}

/* A field of mstats.heapStats: the sum of its parts; runtime/mstats.go, unsafeRead. */
static uint64_t heap_stat(struct reader *r, const struct layout *l, struct layout_field part)
{
	struct layout_global stats = l->global_memstats;
	uint64_t sum = 0;

	if (!layout_has(l, mstats_heap_stats) || !layout_has(l, heap_stats) || !part.size)
		return 0;
	for (uint32_t at = 0; at + l->heap_stats.size <= l->mstats_heap_stats.size;
	     at += l->heap_stats.size) {
		struct layout_field each = part;

		each.offset += l->mstats_heap_stats.offset + at;
		sum += field(r, stats, each);
	}
	return sum;
}

static uint64_t other_sys(struct reader *r, const struct layout *l)
{
	struct layout_global stats = l->global_memstats;

	return field(r, stats, l->mstats_stacks_sys) + field(r, stats, l->mstats_mspan_sys) +
	       field(r, stats, l->mstats_mcache_sys) + field(r, stats, l->mstats_buckhash_sys) +
	       field(r, stats, l->mstats_gc_sys) + field(r, stats, l->mstats_other_sys);
}

/* Up to go1.15; runtime/mstats.go, updatememstats and readmemstats_m. */
static void read_early(struct reader *r, const struct layout *l, struct runtime_memory *m)
{
	struct layout_global stats = l->global_memstats;
	uint64_t stacks = field(r, stats, l->mstats_stacks_in_use);

	m->heap_in_use = field(r, stats, l->mstats_heap_in_use);
	m->heap_idle = field(r, stats, l->mstats_heap_idle);
	m->heap_released = field(r, stats, l->mstats_heap_released);
	m->stacks = stacks + field(r, stats, l->mstats_stacks_sys);
	m->sys = field(r, stats, l->mstats_heap_sys) + stacks + other_sys(r, l);
}

/* runtime/mstats.go, readmemstats_m. */
static void read_current(struct reader *r, const struct layout *l, struct runtime_memory *m)
{
	struct layout_global c = l->global_gc_controller;
	uint64_t stacks = heap_stat(r, l, l->heap_stats_in_stacks);

	m->heap_in_use = field(r, c, l->gc_controller_heap_in_use);
	m->heap_released = field(r, c, l->gc_controller_heap_released);
	m->heap_idle = m->heap_released + field(r, c, l->gc_controller_heap_free);
	m->stacks = stacks + field(r, l->global_memstats, l->mstats_stacks_sys);
	m->sys = m->heap_in_use + m->heap_idle + stacks + other_sys(r, l) +
		 heap_stat(r, l, l->heap_stats_in_work_bufs) +
		 heap_stat(r, l, l->heap_stats_in_heap_bits);
}

struct error *runtime_memory_read(struct memory *memory, const struct layout *layout,
				  struct runtime_memory *ret)
{
	struct reader r = { .memory = memory };
	struct runtime_memory m = { 0 };

	if (layout_has(layout, gc_controller_heap_in_use))
		read_current(&r, layout, &m);
	else
		read_early(&r, layout, &m);
	if (r.err)
		return error_context(r.err, "the runtime's memory counters");
	*ret = m;
	return NULL;
}

static void count_status(void *arg, const struct gather_item *item, const uint8_t *bytes)
{
	const uint32_t scan_bit = 0x1000; /* runtime/runtime2.go, _Gscan */
	uint64_t *count = arg;
	uint32_t status;

	(void)item;
	if (!bytes)
		return;
	status = load_u32le(bytes) & ~scan_bit;
	if (status != GOROUTINE_IDLE && status != GOROUTINE_DEAD && status != GOROUTINE_DEADEXTRA)
		++*count;
}

struct error *runtime_goroutine_count(struct memory *memory, const struct layout *layout,
				      uint64_t *ret)
{
	struct gather_item *items scoped(freep) = NULL;
	uint64_t *pointers scoped(freep) = NULL;
	uint64_t array, count, alive = 0;
	struct error *err = memory_u64(memory, layout->global_allgs.addr, &array);

	if (!err)
		err = memory_u64(memory, layout->global_allgs.addr + 8, &count);
	if (!err)
		err = memory_read_words(memory, array, count, GOROUTINES_MAX, &pointers);
	if (err)
		return error_context(err, "allgs");
	items = calloc(count + 1, sizeof(*items));
	if (!items)
		return &error_nomem;
	for (uint64_t i = 0; i < count; i++)
		items[i] = (struct gather_item){ .addr = pointers[i] + layout->g_status.offset,
						 .size = 4 };
	err = gather_read(memory, items, count, count_status, &alive);
	if (!err)
		*ret = alive;
	return err;
}
