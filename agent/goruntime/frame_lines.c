#include "agent/goruntime/frame_lines.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/stack_walker.h"

/*
 * How long a function's inline tree is, nothing says. Nearly all have fewer than 200 calls of 16
 * or 20 bytes each; where that does not do, the rest is tried.
 */
static const size_t tree_sizes[] = { 4096, 1 << 20 };

struct kept_lines {
	uint32_t count;
	struct pclntab_line lines[];
};

static void map_fini(struct addr_map *map)
{
	for (size_t i = 0; i < map->capacity; i++)
		free(map->entries[i].value);
	addr_map_fini(map);
}

void frame_lines_fini(struct frame_lines *lines)
{
	map_fini(&lines->calls);
	map_fini(&lines->places);
}

/* Reads as much of [addr, addr + size) as there is, by halves. */
static struct error *read_tree(struct memory *memory, taddr addr, uint8_t *bytes, size_t *size)
{
	for (;; *size /= 2) {
		struct error *err = memory_read_bulk(memory, addr, bytes, *size);

		if (!err || error_code(err) != ERROR_FAULT || *size < 16)
			return err;
		error_free(err);
	}
}

static struct error *find_with_tree(struct memory *memory, const struct stack_frame *frame,
				    taddr tree, size_t size, struct pclntab_line *lines,
				    uint32_t *ret_count)
{
	uint8_t *bytes scoped(freep) = malloc(size);
	struct error *err;

	if (!bytes)
		return &error_nomem;
	err = read_tree(memory, tree, bytes, &size);
	if (err)
		return err;
	return pclntab_lines(frame->module->pclntab, &frame->func, frame->pc, frame->is_call, bytes,
			     size, lines, ret_count);
}

/* Without its inlined calls where the tree cannot be made out. */
static struct error *find_lines(struct memory *memory, const struct stack_frame *frame,
				struct pclntab_line *lines, uint32_t *ret_count)
{
	taddr tree;
	struct error *err = pclntab_funcdata(frame->module->pclntab, &frame->func,
					     FUNCDATA_INLINE_TREE, frame->module->gofunc, &tree);

	if (err)
		return err;
	for (size_t i = 0; tree && i < sizeof(tree_sizes) / sizeof(tree_sizes[0]); i++) {
		err = find_with_tree(memory, frame, tree, tree_sizes[i], lines, ret_count);
		if (!err || error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE)
			return err;
		error_free(err);
	}
	return pclntab_lines(frame->module->pclntab, &frame->func, frame->pc, frame->is_call, NULL,
			     0, lines, ret_count);
}

static struct error *keep_lines(struct addr_map *map, taddr pc, const struct pclntab_line *lines,
				uint32_t count, struct kept_lines **ret)
{
	struct kept_lines *kept scoped(freep) =
	    malloc(sizeof(*kept) + count * sizeof(kept->lines[0]));
	struct error *err;

	if (!kept)
		return &error_nomem;
	kept->count = count;
	memcpy(kept->lines, lines, count * sizeof(kept->lines[0]));
	err = addr_map_put(map, pc, kept);
	if (err)
		return err;
	*ret = take(kept);
	return NULL;
}

struct error *stack_frame_lines(struct stack_walker *walker, const struct stack_frame *frame,
				const struct pclntab_line **ret, uint32_t *ret_count)
{
	struct addr_map *map = frame->is_call ? &walker->lines.calls : &walker->lines.places;
	struct kept_lines *kept = addr_map_get(map, frame->pc);

	if (!kept) {
		struct pclntab_line lines[PCLNTAB_LINES_MAX];
		uint32_t count;
		struct error *err = find_lines(walker->memory, frame, lines, &count);

		if (!err)
			err = keep_lines(map, frame->pc, lines, count, &kept);
		if (err)
			return err;
	}
	*ret = kept->lines;
	*ret_count = kept->count;
	return NULL;
}
