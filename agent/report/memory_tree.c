#include "agent/report/memory_tree.h"

#include <stdlib.h>
#include <string.h>

#include "agent/report/address_map.h"
#include "agent/report/message.h"
#include "agent/report/resident.h"
#include "agent/target/maps.h"

struct usage memory_tree_region(const struct resident *resident, const struct region *region)
{
	struct resident_bytes pages = resident_count(resident, region->start, region->end);
	bool touched = memory_kind_counts_touched(region->kind) || !region->accessible;

	return (struct usage){
		.bytes = touched ? pages.touched : region->end - region->start,
		.resident = pages.resident,
	};
}

/* Adds a child, which the parent owns from then on. */
static struct error *add_child(Goheapd__MemoryNode *parent, const char *id, const char *title,
			       struct usage usage, Goheapd__MemoryNode **ret)
{
	Goheapd__MemoryNode *node;
	struct error *err = message_reserve((void ***)&parent->children, parent->n_children);

	if (err)
		return err;
	node = malloc(sizeof(*node));
	if (!node)
		return &error_nomem;
	goheapd__memory_node__init(node);
	parent->children[parent->n_children++] = node;
	node->bytes = usage.bytes;
	node->resident_bytes = usage.resident;
	err = message_string(id, &node->id);
	if (!err)
		err = message_text(title, &node->title);
	if (!err && ret)
		*ret = node;
	return err;
}

/* Makes the node the sum of its children. */
static void sum_up(Goheapd__MemoryNode *node)
{
	node->bytes = 0;
	node->resident_bytes = 0;
	for (size_t i = 0; i < node->n_children; i++) {
		node->bytes += node->children[i]->bytes;
		node->resident_bytes += node->children[i]->resident_bytes;
	}
}

/* A row of the fixed part of the tree: children follow their parent, one level deeper. */
struct row {
	unsigned depth;
	const char *id, *title;
	struct usage usage; /* of leaves */
};

enum { DEPTH_MAX = 5 };

static struct error *add_rows(Goheapd__MemoryNode *top, const struct row *rows, size_t count)
{
	Goheapd__MemoryNode *path[DEPTH_MAX + 1] = { top };

	for (size_t i = 0; i < count; i++) {
		struct error *err = add_child(path[rows[i].depth], rows[i].id, rows[i].title,
					      rows[i].usage, &path[rows[i].depth + 1]);

		if (err)
			return err;
	}
	return NULL;
}

/* From the leaves up; the tree is as deep as the rows above, not as the target likes. */
static void sum_rows(Goheapd__MemoryNode *node, unsigned depth)
{
	if (!node->n_children || depth > DEPTH_MAX)
		return;
	for (size_t i = 0; i < node->n_children; i++)
		sum_rows(node->children[i], depth + 1);
	sum_up(node);
}

static struct error *add_heap(Goheapd__MemoryNode *heap, const struct heap_usage *u, bool marked)
{
	const struct row in_use[] = {
		{ 0, "in_use_spans", "spans of objects", { 0 } },
		{ 1, "alloc", "allocated objects", u->unmarked },
	};
	const struct row reachability[] = {
		{ 0, "live", "reachable from roots", u->live },
		{ 0, "finalizable", "kept for a finalizer alone", u->finalizable },
		{ 0, "garbage", "not yet collected", u->garbage },
	};
	const struct row slots[] = {
		{ 0, "free_slots", "free slots between objects", u->free_slots },
		{ 0, "round", "ends of spans that fit no slot", u->round },
	};
	const struct row rest[] = {
		{ 0, "manual_spans", "spans of the runtime itself", { 0 } },
		{ 1, "stacks_used", "goroutine stacks", u->stacks },
		{ 1, "other", "spare stacks and work buffers", u->manual },
		{ 0, "free_spans", "free pages", { 0 } },
		{ 1, "kept", "held for reuse", u->kept },
		{ 1, "released", "given back to the kernel", u->released },
	};
	Goheapd__MemoryNode *spans;
	struct error *err = add_rows(heap, in_use, 2);

	if (err)
		return err;
	spans = heap->children[0];
	if (marked)
		err = add_rows(spans->children[0], reachability, 3);
	if (!err)
		err = add_rows(spans, slots, 2);
	if (!err)
		err = add_rows(heap, rest, 6);
	if (!err)
		sum_rows(heap, 1);
	return err;
}

/* Regions of a kind that has a child for each name. */
struct named {
	const char *name;
	struct usage usage;
};

static const char *name_of(const struct mapping *mapping)
{
	return *mapping->name ? mapping->name : "anonymous";
}

static int compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->usage.bytes != y->usage.bytes)
		return x->usage.bytes < y->usage.bytes ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* One entry for each name, largest first; returns how many. */
static size_t join_names(struct named *names, size_t count)
{
	size_t kept = 0;

	qsort(names, count, sizeof(*names), compare_named);
	for (size_t i = 0; i < count; i++) {
		if (kept && strcmp(names[kept - 1].name, names[i].name) == 0)
			usage_add(&names[kept - 1].usage, names[i].usage);
		else
			names[kept++] = names[i];
	}
	qsort(names, kept, sizeof(*names), compare_sizes);
	return kept;
}

static struct error *add_names(Goheapd__MemoryNode *node, const struct memory_tree_input *input,
			       enum memory_kind kind)
{
	struct named *names scoped(freep) =
	    calloc(input->regions->count + (size_t)1, sizeof(*names));
	size_t count = 0;

	if (!names)
		return &error_nomem;
	for (uint32_t i = 0; i < input->regions->count; i++) {
		const struct region *region = &input->regions->items[i];
		struct usage usage;

		if (region->kind != kind)
			continue;
		usage = memory_tree_region(input->resident, region);
		if (usage.bytes)
			names[count++] =
			    (struct named){ name_of(&input->maps->items[region->mapping]), usage };
	}
	count = join_names(names, count);
	for (size_t i = 0; i < count; i++) {
		struct error *err =
		    add_child(node, names[i].name, names[i].name, names[i].usage, NULL);

		if (err)
			return err;
	}
	sum_up(node);
	return NULL;
}

static struct error *add_kind(Goheapd__MemoryNode *process, const struct memory_tree_input *input,
			      enum memory_kind kind, struct usage usage)
{
	Goheapd__MemoryNode *node;
	struct error *err =
	    add_child(process, memory_kind_id(kind), memory_kind_title(kind), usage, &node);

	if (err)
		return err;
	if (kind == MEMORY_HEAP)
		return add_heap(node, input->heap, input->marked);
	if (kind == MEMORY_FILE_MAPS || kind == MEMORY_C_MEMORY)
		return add_names(node, input, kind);
	return NULL;
}

static struct error *fill(Goheapd__MemoryNode *process, const struct memory_tree_input *input)
{
	struct usage sums[MEMORY_KIND_COUNT] = { 0 };
	struct error *err = message_string("process", &process->id);

	if (!err)
		err = message_text("the process", &process->title);
	for (uint32_t i = 0; i < input->regions->count; i++)
		usage_add(&sums[input->regions->items[i].kind],
			  memory_tree_region(input->resident, &input->regions->items[i]));
	for (enum memory_kind kind = 0; !err && kind < MEMORY_KIND_COUNT; kind++)
		err = add_kind(process, input, kind, sums[kind]);
	if (!err)
		sum_up(process);
	return err;
}

struct error *memory_tree_make(const struct memory_tree_input *input, Goheapd__MemoryNode **ret)
{
	Goheapd__MemoryNode *process = malloc(sizeof(*process));
	struct error *err;

	if (!process)
		return &error_nomem;
	goheapd__memory_node__init(process);
	err = fill(process, input);
	if (err) {
		goheapd__memory_node__free_unpacked(process, NULL);
		return error_context(err, "memory tree");
	}
	*ret = process;
	return NULL;
}
