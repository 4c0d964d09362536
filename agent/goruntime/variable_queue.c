/*
 * Finalizers and cleanups are called one after the other by goroutines of the runtime's own. What
 * waits is kept by a queue, and in truth by the call that does not end.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/variable_private.h"

enum {
	BLOCKS_MAX = 1 << 20,
	QUEUED_MAX = 1 << 24,
};

/* The function that one of the runtime's goroutines has called, and its name; NULL: none. */
static const char *called_by(const struct variable_table *table,
			     const struct goroutine_frames *goroutine)
{
	const struct frame_place *frames =
	    (const struct frame_place *)table->frames.items + goroutine->first;
	const struct frame_site *sites = (const struct frame_site *)table->sites.items;

	for (uint32_t i = goroutine->count; i-- > 0;) {
		const struct function_place *function =
		    variable_function_place(table, sites[frames[i].site].function);

		if (strcmp(variable_text(table, function->package), "runtime") != 0)
			return variable_text(table, function->name);
	}
	return NULL;
}

static bool begins_with(const struct variable_table *table,
			const struct goroutine_frames *goroutine, const char *const *names)
{
	const char *name;

	if (!goroutine->start)
		return false;
	name = variable_text(table, variable_function_place(table, goroutine->start - 1)->name);
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* The queue goes on while any of its goroutines is free. */
static const char *find_blocker(const struct variable_table *table, const char *const *names)
{
	const char *blocker = NULL;

	for (uint32_t i = 0; i < table->goroutine_count; i++) {
		const char *called;

		if (!begins_with(table, &table->goroutines[i], names))
			continue;
		called = called_by(table, &table->goroutines[i]);
		if (!called)
			return NULL;
		blocker = blocker ? blocker : called;
	}
	return blocker;
}

static struct error *name_queue(struct variable_table *table, const char *queue,
				const char *const *names, name_id *ret)
{
	static const char blocked[] = ", blocked by ";
	const char *blocker = find_blocker(table, names);
	size_t size = strlen(queue) + sizeof(blocked) + (blocker ? strlen(blocker) : 0);
	char *name scoped(freep) = malloc(size);

	if (!name)
		return &error_nomem;
	strcpy(name, queue);
	if (blocker)
		strcat(strcat(name, blocked), blocker);
	return variable_name(table, name, NULL, ret);
}

/* ---- what waits, and of which type it is ---- */

static struct error *read_entries(struct variable_reader *reader, taddr block, uint64_t count)
{
	const struct layout *l = reader->walker->layout;
	struct variable_table *table = reader->table;
	struct error *err = NULL;

	for (uint64_t i = 0; i < count && !err; i++) {
		taddr entry = block + l->fin_block_entries.offset + i * l->finalizer.size, type;

		err = layout_read_field(reader->walker->memory, entry, l->finalizer_ot, &type);
		if (!err)
			err = variable_list_add(&table->queued_types, sizeof(type), QUEUED_MAX,
						&type);
	}
	return err;
}

static struct error *read_block(struct variable_reader *reader, taddr addr, taddr *ret_next)
{
	const struct layout *l = reader->walker->layout;
	struct variable_table *table = reader->table;
	struct queue_block block = { .addr = addr, .first = (uint32_t)table->queued_types.count };
	uint64_t count = 0;
	struct error *err =
	    layout_read_field(reader->walker->memory, addr, l->fin_block_count, &count);

	if (!err && count > l->fin_block_entries.size / l->finalizer.size)
		err = error_new(ERROR_CORRUPT_TARGET, "a block of too many finalizers");
	if (!err)
		err = read_entries(reader, addr, count);
	block.count = (uint32_t)count;
	if (!err && count)
		err = variable_list_add(&table->queue_blocks, sizeof(block), BLOCKS_MAX, &block);
	return err ? err
		   : layout_read_field(reader->walker->memory, addr, l->fin_block_alllink,
				       ret_next);
}

static int by_addr(const void *left, const void *right)
{
	const struct queue_block *a = left, *b = right;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* A queue that cannot be read to its end tells as much as was read. */
static struct error *read_queue(struct variable_reader *reader)
{
	const struct layout *l = reader->walker->layout;
	struct variable_list *blocks = &reader->table->queue_blocks;
	taddr block = 0, anchor = 0;
	struct error *err = NULL;

	if (layout_has(l, global_allfin) && layout_has(l, finalizer) &&
	    layout_has(l, fin_block_entries))
		err = memory_u64(reader->walker->memory, l->global_allfin.addr, &block);
	/* A circle meets the block that is remembered at each power of two. */
	for (uint32_t i = 0; block && block != anchor && i < BLOCKS_MAX && !err; i++) {
		if ((i & (i - 1)) == 0)
			anchor = block;
		err = read_block(reader, block, &block);
	}
	if (err && variable_is_final(err))
		return err;
	error_free(err);
	if (blocks->count)
		qsort(blocks->items, blocks->count, sizeof(struct queue_block), by_addr);
	return NULL;
}

/* The last block that begins at or before slot, or NULL. */
static const struct queue_block *block_before(const struct variable_table *table, taddr slot)
{
	const struct queue_block *blocks = (const struct queue_block *)table->queue_blocks.items;
	size_t low = 0, high = table->queue_blocks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (blocks[middle].addr <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &blocks[low - 1] : NULL;
}

type_id variable_queued_type(const struct variable_table *table, taddr slot)
{
	const struct queue_block *block = block_before(table, slot);
	const taddr *types = (const taddr *)table->queued_types.items;
	uint64_t offset = block ? slot - block->addr - table->queue_entries : 0;
	type_id type = TYPE_UNKNOWN;
	struct error *err;

	if (!block || slot - block->addr < table->queue_entries ||
	    offset / table->queue_entry_size >= block->count)
		return TYPE_UNKNOWN;
	/* Of a cleanup's, in go1.24, more can be told than that. */
	if (offset % table->queue_entry_size == table->queue_fn)
		return types[block->first + offset / table->queue_entry_size] ? table->func_type
									      : TYPE_UNKNOWN;
	if (offset % table->queue_entry_size != table->queue_arg)
		return TYPE_UNKNOWN;
	err = go_types_by_descriptor(table->types,
				     types[block->first + offset / table->queue_entry_size], &type);
	error_free(err);
	return type;
}

struct error *variable_queues_read(struct variable_reader *reader)
{
	/* runtime/mfinal.go, mcleanup.go: the former has another name since go1.25. */
	static const char *const finalizers[] = { "runtime.runfinq", "runtime.runFinalizers",
						  NULL };
	static const char *const cleanups[] = { "runtime.runCleanups", NULL };
	struct variable_table *table = reader->table;
	struct error *err =
	    name_queue(table, "finalizer queue", finalizers, &table->finalizer_queue);

	if (!err)
		err = name_queue(table, "cleanup queue", cleanups, &table->cleanup_queue);
	return err ? err : read_queue(reader);
}
