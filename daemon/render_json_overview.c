#include "daemon/render_json_common.h"

static void add_memory(struct json_fields *fields, const Goheapd__RuntimeMemory *memory)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_optional_u64(&object, "rss_bytes", memory->has_rss_bytes, memory->rss_bytes);
	json_add_optional_u64(&object, "heap_in_use_bytes", memory->has_heap_in_use_bytes,
			      memory->heap_in_use_bytes);
	json_add_optional_u64(&object, "heap_idle_bytes", memory->has_heap_idle_bytes,
			      memory->heap_idle_bytes);
	json_add_optional_u64(&object, "heap_released_bytes", memory->has_heap_released_bytes,
			      memory->heap_released_bytes);
	json_add_optional_u64(&object, "heap_live_bytes", memory->has_heap_live_bytes,
			      memory->heap_live_bytes);
	json_add_optional_u64(&object, "stacks_bytes", memory->has_stacks_bytes,
			      memory->stacks_bytes);
	json_add_optional_u64(&object, "sys_bytes", memory->has_sys_bytes, memory->sys_bytes);
	json_add_fields(fields, "memory", &object);
}

static void add_cost(struct json_fields *fields, const Goheapd__Cost *cost)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_string(&object, "mode", render_mode(cost->mode));
	json_add_optional_bytes(&object, "why", cost->has_why, cost->why);
	json_add_seconds(&object, "pause_seconds", cost->pause_us);
	json_add_u64(&object, "read_bytes", cost->read_bytes);
	json_add_u64(&object, "memory_bytes", cost->memory_bytes);
	json_add_fields(fields, "cost", &object);
}

void render_json_overview(struct text *text, const Goheapd__OverviewResult *overview)
{
	struct json_fields fields;
	json_t *object;
	struct error *err;

	json_fields_init(&fields);
	render_json_identity(&fields, overview->identity);
	render_json_gc(&fields, overview->gc);
	add_memory(&fields, overview->memory);
	render_json_cgroup(&fields, overview->cgroup);
	json_add_optional_u64(&fields, "goroutines", overview->has_goroutines,
			      overview->goroutines);
	json_add_u64(&fields, "threads", overview->threads);
	render_json_detail(&fields, overview->detail);
	add_cost(&fields, overview->cost);
	render_json_warnings(&fields, overview->warnings, overview->n_warnings);
	err = json_fields_finish(&fields, &object);
	if (err)
		text_fail(text, err);
	else
		json_write(text, object);
}
