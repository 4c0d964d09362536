#include "agent/report/process_map.h"

#include <string.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/report/range_list.h"
#include "agent/target/maps.h"

enum {
	OS_PAGE_SIZE = 4096,
	/* What glibc keeps at the thread pointer, at the top of a stack: sizeof(struct pthread). */
	THREAD_BLOCK_SIZE = 2304,
};

static taddr page_up(taddr addr)
{
	return (addr + OS_PAGE_SIZE - 1) & ~(taddr)(OS_PAGE_SIZE - 1);
}

static taddr lower(taddr a, taddr b)
{
	return a < b ? a : b;
}

static taddr higher(taddr a, taddr b)
{
	return a > b ? a : b;
}

/* The name of the file that holds a module's text; NULL if there is none. */
static const char *module_file(const struct process_map_input *in, const struct module *module)
{
	const struct mapping *text = maps_find(in->maps, module->text);

	return text && text->kind == MAPPING_FILE ? text->name : NULL;
}

static bool is_bss_of(const struct mapping *mapping, const struct mapping *before, const char *file)
{
	return mapping->kind == MAPPING_ANONYMOUS && !*mapping->name && mapping->write &&
	       before->end == mapping->start && before->write && strcmp(before->name, file) == 0;
}

/* The mappings of one program file: the executable, or a plugin. */
static struct error *paint_file(const struct process_map_input *in, const char *file,
				struct paint_layer *layer)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < in->maps->count; i++) {
		const struct mapping *mapping = &in->maps->items[i];

		if (mapping->kind == MAPPING_FILE && strcmp(mapping->name, file) == 0)
			err = paint_add(layer, mapping->start, mapping->end,
					mapping->execute ? MEMORY_TEXT
					: mapping->write ? MEMORY_DATA
							 : MEMORY_READONLY);
		else if (i && is_bss_of(mapping, &in->maps->items[i - 1], file))
			err = paint_add(layer, mapping->start, mapping->end, MEMORY_BSS);
	}
	return err;
}

static struct error *paint_files(const struct process_map_input *in, struct address_map *map)
{
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = paint_file(in, in->exe, &layer);

	for (uint32_t i = 0; !err && i < module_table_count(in->modules); i++) {
		const char *file = module_file(in, module_table_at(in->modules, i));

		if (file && strcmp(file, in->exe) != 0)
			err = paint_file(in, file, &layer);
	}
	return err ? err : address_map_paint(map, &layer);
}

/* Zeroed globals begin within the last page of the initialised ones. */
static struct error *paint_bss(const struct process_map_input *in, struct address_map *map)
{
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < module_table_count(in->modules); i++) {
		const struct module *module = module_table_at(in->modules, i);

		err = paint_add(&layer, lower(module->bss, module->noptrbss),
				page_up(higher(module->ebss, module->enoptrbss)), MEMORY_BSS);
	}
	return err ? err : address_map_paint(map, &layer);
}

/*
 * The mapping of a stack that C made, found by an address on it. The kernel may have joined it
 * with a mapping above; the thread pointer, if it lies there, tells where the stack ends.
 */
static struct error *paint_stack(const struct process_map_input *in, taddr addr, taddr tls,
				 struct paint_layer *layer)
{
	const struct mapping *mapping = maps_find(in->maps, addr);
	taddr end;

	if (!mapping || mapping->kind != MAPPING_ANONYMOUS || !mapping->write || mapping->shared)
		return NULL;
	end = mapping->end;
	if (tls >= addr && tls < end)
		end = lower(end, page_up(tls + THREAD_BLOCK_SIZE));
	return paint_add(layer, mapping->start, end, MEMORY_THREAD_STACKS);
}

/* Stacks of threads and of g0s; those that lie in the heap are painted over later. */
static struct error *paint_stacks(const struct process_map_input *in, struct address_map *map)
{
	const struct machine_table *machines = goroutine_table_machines(in->goroutines);
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < in->thread_count; i++)
		err = paint_stack(in, in->threads[i].sp, in->threads[i].tls, &layer);
	for (uint32_t i = 0; !err && i < machines->count; i++) {
		const struct machine *machine = &machines->machines[i];

		if (machine->g0_stack.hi)
			err = paint_stack(in, machine->g0_stack.hi - sizeof(taddr),
					  machine->thread ? machine->thread->tls : 0, &layer);
	}
	return err ? err : address_map_paint(map, &layer);
}

static struct error *paint_metadata(const struct process_map_input *in, struct address_map *map)
{
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < in->metadata->count; i++)
		err = paint_add(&layer, in->metadata->items[i].start, in->metadata->items[i].end,
				MEMORY_HEAP_METADATA);
	return err ? err : address_map_paint(map, &layer);
}

/* Reserved for the heap to grow into. */
static void name_reserve(struct address_map *map)
{
	for (uint32_t i = 0; i < map->count; i++)
		if (map->items[i].kind == MEMORY_UNEXPLAINED && !map->items[i].accessible)
			map->items[i].kind = MEMORY_HEAP;
}

/* What in an arena belongs to nothing that we know of. */
static struct error *paint_arenas(const struct process_map_input *in, struct address_map *map)
{
	const struct arena_table *arenas = span_table_arenas(in->spans);
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < arena_table_count(arenas); i++) {
		taddr start = arena_table_at(arenas, i)->start;

		err = paint_add(&layer, start, start + arena_table_arena_bytes(arenas),
				MEMORY_UNEXPLAINED);
	}
	if (!err)
		err = address_map_paint(map, &layer);
	if (!err)
		name_reserve(map);
	return err;
}

/* Joins what lies side by side, so that a heap becomes a few pieces. */
static struct error *add_joined(struct paint_layer *layer, taddr start, taddr end)
{
	struct paint *last = layer->count ? &layer->items[layer->count - 1] : NULL;

	if (last && last->end == start) {
		last->end = end;
		return NULL;
	}
	return paint_add(layer, start, end, MEMORY_HEAP);
}

static struct error *paint_heap(const struct process_map_input *in, struct address_map *map)
{
	uint64_t run = 0, run_count = page_alloc_count(in->pages);
	uint32_t span = 0, span_count = span_table_count(in->spans);
	struct paint_layer layer scoped(paint_fini) = { 0 };
	struct error *err = NULL;

	while (!err && (run < run_count || span < span_count)) {
		const struct free_run *r = run < run_count ? page_alloc_at(in->pages, run) : NULL;
		const struct span *s = span < span_count ? span_table_at(in->spans, span) : NULL;

		if (!s || (r && r->start < s->base)) {
			err = add_joined(&layer, r->start, r->start + r->page_count * GO_PAGE_SIZE);
			run++;
		} else {
			if (!span_is_quarantined(s))
				err = add_joined(&layer, s->base,
						 s->base + s->page_count * GO_PAGE_SIZE);
			span++;
		}
	}
	return err ? err : address_map_paint(map, &layer);
}

struct error *process_map_init(const struct process_map_input *input, struct address_map *ret)
{
	struct error *(*const layers[])(const struct process_map_input *, struct address_map *) = {
		paint_files, paint_bss, paint_stacks, paint_metadata, paint_arenas, paint_heap,
	};
	struct address_map map scoped(address_map_fini) = { 0 };
	struct error *err = address_map_init(input->maps, &map);

	for (size_t i = 0; !err && i < sizeof(layers) / sizeof(layers[0]); i++)
		err = layers[i](input, &map);
	if (err)
		return error_context(err, "address space");
	*ret = map;
	map = (struct address_map){ 0 };
	return NULL;
}
