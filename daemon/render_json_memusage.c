#include "daemon/render_json_common.h"
#include "daemon/render_json_labels.h"

/*
 * The tree is at most as deep as a message may nest (proto/wire/limits.h), which the wire checks
 * before a message gets here: the recursion is bounded by that.
 */
static json_t *node_object(const Goheapd__MemoryNode *node)
{
	struct json_fields object;
	json_t *children = json_array(), *ret = NULL;

	json_fields_init(&object);
	json_add_string(&object, "id", node->id);
	json_add_bytes(&object, "title", node->title);
	json_add_u64(&object, "bytes", node->bytes);
	json_add_u64(&object, "resident_bytes", node->resident_bytes);
	for (size_t i = 0; i < node->n_children; i++) {
		if (json_array_append_new(children, node_object(node->children[i])) < 0)
			object.failed = true;
	}
	json_add(&object, "children", children);
	error_free(json_fields_finish(&object, &ret));
	return ret;
}

static void add_heap(struct json_fields *fields, const Goheapd__HeapTotals *heap)
{
	struct json_fields object;

	if (!heap) {
		json_add_null(fields, "heap");
		return;
	}
	json_fields_init(&object);
	json_add_optional_u64(&object, "live_bytes", heap->has_live_bytes, heap->live_bytes);
	json_add_optional_u64(&object, "live_objects", heap->has_live_objects, heap->live_objects);
	json_add_optional_u64(&object, "finalizable_bytes", heap->has_finalizable_bytes,
			      heap->finalizable_bytes);
	json_add_optional_u64(&object, "finalizable_objects", heap->has_finalizable_objects,
			      heap->finalizable_objects);
	json_add_optional_u64(&object, "garbage_bytes", heap->has_garbage_bytes,
			      heap->garbage_bytes);
	json_add_optional_u64(&object, "garbage_objects", heap->has_garbage_objects,
			      heap->garbage_objects);
	json_add_u64(&object, "allocated_bytes", heap->allocated_bytes);
	json_add_u64(&object, "allocated_objects", heap->allocated_objects);
	json_add_u64(&object, "free_bytes", heap->free_bytes);
	json_add_u64(&object, "round_bytes", heap->round_bytes);
	json_add_optional_u64(&object, "goal_bytes", heap->has_goal_bytes, heap->goal_bytes);
	json_add_optional_u64(&object, "marked_bytes_last_gc", heap->has_marked_bytes_last_gc,
			      heap->marked_bytes_last_gc);
	json_add_fields(fields, "heap", &object);
}

static void add_stacks(struct json_fields *fields, const Goheapd__StackTotals *stacks)
{
	struct json_fields object;

	if (!stacks) {
		json_add_null(fields, "stacks");
		return;
	}
	json_fields_init(&object);
	json_add_u64(&object, "goroutines", stacks->goroutines);
	json_add_u64(&object, "bytes", stacks->bytes);
	json_add_u64(&object, "in_use_bytes", stacks->in_use_bytes);
	json_add_fields(fields, "stacks", &object);
}

/* The process's own GC state and cgroup, as they were at the scan. */
static void add_surroundings(struct json_fields *fields, const Goheapd__ScanResult *result)
{
	if (result->gc)
		render_json_gc(fields, result->gc);
	else
		json_add_null(fields, "gc");
	render_json_cgroup(fields, result->cgroup);
	json_add_optional_u64(fields, "rss_bytes", result->has_rss_bytes, result->rss_bytes);
}

void render_json_memusage(struct text *text, const struct scan_view *view)
{
	struct json_fields fields;

	json_begin(text, NULL, '{');
	render_json_scan_head(text, view);
	json_fields_init(&fields);
	json_add(&fields, "memory",
		 view->result->memory ? node_object(view->result->memory) : json_null());
	add_heap(&fields, view->result->heap);
	add_stacks(&fields, view->result->stacks);
	add_surroundings(&fields, view->result);
	json_write_fields(text, &fields);
	render_json_labels(text, view);
	json_end(text, '}');
	text_string(text, "\n");
}
