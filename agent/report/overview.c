#include "agent/report/overview.h"

#include <stdlib.h>

#include "agent/goruntime/collector.h"
#include "agent/goruntime/heap_extent.h"
#include "agent/goruntime/layout.h"
#include "agent/report/memory_need.h"
#include "agent/report/message.h"

static void fill_gc(Goheapd__GcState *gc, const struct collector *c)
{
	gc->has_gogc = true;
	gc->gogc = c->percent;
	gc->has_memory_limit_bytes = c->has_memory_limit;
	gc->memory_limit_bytes = c->memory_limit;
	gc->has_goal_bytes = c->has_goal;
	gc->goal_bytes = c->goal;
	gc->has_live_last_gc_bytes = true;
	gc->live_last_gc_bytes = c->marked;
	gc->has_cycles = true;
	gc->cycles = c->cycles;
	gc->has_forced = true;
	gc->forced = c->forced;
	gc->has_last_end_ns = c->last_end_ns != 0;
	gc->last_end_ns = c->last_end_ns;
	gc->has_pause_total_ns = true;
	gc->pause_total_ns = c->pause_total_ns;
	gc->has_cpu_fraction = true;
	gc->cpu_fraction = c->cpu_fraction;
	gc->has_limiter_active = c->has_limiter;
	gc->limiter_active = c->limiter_active;
}

struct error *overview_gc(struct memory *memory, const struct layout *layout,
			  Goheapd__GcState **ret)
{
	struct collector collector;
	struct error *err = collector_read(memory, layout, &collector);
	Goheapd__GcState *gc;

	if (err)
		return err;
	gc = malloc(sizeof(*gc));
	if (!gc)
		return &error_nomem;
	goheapd__gc_state__init(gc);
	fill_gc(gc, &collector);
	err = message_string(collector_phase_name(collector.phase), &gc->phase);
	if (err) {
		goheapd__gc_state__free_unpacked(gc, NULL);
		return err;
	}
	*ret = gc;
	return NULL;
}

struct error *overview_memory(struct memory *memory, const struct layout *layout,
			      Goheapd__RuntimeMemory **ret)
{
	struct runtime_memory counted;
	struct collector collector;
	Goheapd__RuntimeMemory *message;
	struct error *err = runtime_memory_read(memory, layout, &counted);

	if (!err)
		err = collector_read(memory, layout, &collector);
	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__runtime_memory__init(message);
	message->has_heap_in_use_bytes = true;
	message->heap_in_use_bytes = counted.heap_in_use;
	message->has_heap_idle_bytes = true;
	message->heap_idle_bytes = counted.heap_idle;
	message->has_heap_released_bytes = true;
	message->heap_released_bytes = counted.heap_released;
	message->has_heap_live_bytes = true;
	message->heap_live_bytes = collector.live;
	message->has_stacks_bytes = true;
	message->stacks_bytes = counted.stacks;
	message->has_sys_bytes = true;
	message->sys_bytes = counted.sys;
	*ret = message;
	return NULL;
}

struct error *overview_goroutines(struct memory *memory, const struct layout *layout, uint64_t *ret)
{
	return runtime_goroutine_count(memory, layout, ret);
}

/* Reading: at most all of the heap that is in use, all stacks, and a structure for each span. */
struct error *overview_cost(struct memory *memory, const struct layout *layout, unsigned threads,
			    struct overview_cost *ret)
{
	const uint64_t fixed = 16 << 20;
	struct runtime_memory counted;
	struct heap_extent extent;
	struct memory_need need;
	struct memory_need_input input = {
		.extent = &extent, .base = memory_need_taken(), .labels = true, .threads = threads
	};
	uint64_t goroutines;
	struct error *err = runtime_memory_read(memory, layout, &counted);

	if (!err)
		err = heap_extent_read(memory, layout, &extent);
	if (!err)
		err = runtime_goroutine_count(memory, layout, &goroutines);
	if (err)
		return err;
	input.goroutines = (uint32_t)goroutines;
	memory_need_find(&input, &need);
	ret->read_bytes =
	    counted.heap_in_use + counted.stacks + extent.spans * layout->mspan.size + fixed;
	ret->memory_bytes = need.enough;
	return NULL;
}
