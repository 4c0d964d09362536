#include "agent/report/address_map.h"

#include <stdlib.h>
#include <string.h>

#include "agent/target/maps.h"

/* proc_pid_maps(5): what the kernel prints for memory that several processes share by no file. */
static bool is_shared_memory(const struct mapping *mapping)
{
	return strncmp(mapping->name, "/memfd:", 7) == 0 ||
	       strncmp(mapping->name, "/SYSV", 5) == 0 ||
	       strncmp(mapping->name, "[anon_shmem:", 12) == 0 ||
	       (mapping->shared && (strcmp(mapping->name, "/dev/zero") == 0 ||
				    strcmp(mapping->name, "/anon_hugepage") == 0 ||
				    (mapping->kind == MAPPING_ANONYMOUS && !*mapping->name)));
}

static enum memory_kind kind_of_mapping(const struct mapping *mapping)
{
	if (is_shared_memory(mapping))
		return MEMORY_SHARED;
	if (strcmp(mapping->name, "/anon_hugepage") == 0)
		return MEMORY_C_MEMORY;
	if (mapping->kind != MAPPING_ANONYMOUS)
		return MEMORY_FILE_MAPS;
	if (strcmp(mapping->name, "[stack]") == 0)
		return MEMORY_THREAD_STACKS;
	/* runtime/vma_linux.go names its mappings, since go1.25, where the kernel takes names. */
	if (strncmp(mapping->name, "[anon: Go: ", 11) == 0 ||
	    strncmp(mapping->name, "[anon:Go: ", 10) == 0)
		return MEMORY_HEAP_METADATA;
	return MEMORY_C_MEMORY;
}

struct error *address_map_init(const struct maps *maps, struct address_map *ret)
{
	struct address_map map = { 0 };

	map.items = calloc(maps->count + (size_t)1, sizeof(*map.items));
	if (!map.items)
		return &error_nomem;
	for (uint32_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->items[i];

		if (mapping->end >= UINT64_C(1) << 63) /* [vsyscall] is the kernel's */
			continue;
		map.items[map.count] = (struct region){
			.start = mapping->start,
			.end = mapping->end,
			.kind = kind_of_mapping(mapping),
			.mapping = i,
			.accessible = mapping->read || mapping->write || mapping->execute,
		};
		map.count++;
	}
	*ret = map;
	return NULL;
}

void address_map_fini(struct address_map *map)
{
	free(map->items);
	*map = (struct address_map){ 0 };
}

struct error *paint_add(struct paint_layer *layer, taddr start, taddr end, enum memory_kind kind)
{
	if (start >= end)
		return NULL;
	if (layer->count == layer->capacity) {
		uint32_t capacity = layer->capacity ? layer->capacity * 2 : 64;
		struct paint *grown;

		if (capacity < layer->capacity)
			return error_new(ERROR_LIMIT, "too many pieces of memory");
		grown = reallocarray(layer->items, capacity, sizeof(*grown));
		if (!grown)
			return &error_nomem;
		layer->items = grown;
		layer->capacity = capacity;
	}
	layer->items[layer->count++] = (struct paint){ start, end, kind };
	return NULL;
}

void paint_fini(struct paint_layer *layer)
{
	free(layer->items);
	*layer = (struct paint_layer){ 0 };
}

static int compare_paints(const void *a, const void *b)
{
	const struct paint *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Sorts, cuts overlaps off, and joins neighbours of one kind. */
static void tidy(struct paint_layer *layer)
{
	uint32_t kept = 0;

	if (!layer->count)
		return;
	qsort(layer->items, layer->count, sizeof(*layer->items), compare_paints);
	for (uint32_t i = 0; i < layer->count; i++) {
		struct paint paint = layer->items[i];
		struct paint *last = kept ? &layer->items[kept - 1] : NULL;

		if (last && paint.start < last->end)
			paint.start = last->end;
		if (paint.start >= paint.end)
			continue;
		if (last && paint.start == last->end && paint.kind == last->kind)
			last->end = paint.end;
		else
			layer->items[kept++] = paint;
	}
	layer->count = kept;
}

static void emit(struct address_map *map, struct region region, taddr end, enum memory_kind kind)
{
	if (region.start == end)
		return;
	region.end = end;
	region.kind = kind;
	map->items[map->count++] = region;
}

/* Appends one region, with the paint that falls on it; *next is the first paint not yet passed. */
static void paint_region(struct address_map *map, struct region region,
			 const struct paint_layer *layer, uint32_t *next)
{
	while (*next < layer->count && layer->items[*next].end <= region.start)
		++*next;
	for (uint32_t i = *next; i < layer->count && layer->items[i].start < region.end; i++) {
		const struct paint *paint = &layer->items[i];
		taddr start = paint->start > region.start ? paint->start : region.start;
		taddr end = paint->end < region.end ? paint->end : region.end;

		emit(map, region, start, region.kind);
		region.start = start;
		emit(map, region, end, paint->kind);
		region.start = end;
	}
	emit(map, region, region.end, region.kind);
}

struct error *address_map_paint(struct address_map *map, struct paint_layer *layer)
{
	struct address_map painted = { 0 };
	uint32_t next = 0;

	tidy(layer);
	/* A paint adds two regions at most, and one for each border that it crosses. */
	painted.items =
	    calloc((size_t)map->count * 2 + (size_t)layer->count * 2 + 1, sizeof(*painted.items));
	if (!painted.items)
		return &error_nomem;
	for (uint32_t i = 0; i < map->count; i++)
		paint_region(&painted, map->items[i], layer, &next);
	address_map_fini(map);
	*map = painted;
	return NULL;
}

const struct region *address_map_find(const struct address_map *map, taddr addr)
{
	uint32_t low = 0, high = map->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct region *region = &map->items[middle];

		if (addr < region->start)
			high = middle;
		else if (addr >= region->end)
			low = middle + 1;
		else
			return region;
	}
	return NULL;
}
