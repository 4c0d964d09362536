/*
 * Who deferred what: the records of each goroutine, found again by address.
 */
#include <stdlib.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/variable_private.h"

enum {
	DEFERS_MAX = 64 << 10, /* of a goroutine: further ones go by the latest */
	DEFERS_MAX_IN_ALL = 1 << 22,
};

static struct defer_place *defers_at(const struct variable_table *table, uint32_t first)
{
	return (struct defer_place *)table->defers.items + first;
}

static struct error *add_defer(struct variable_reader *reader, taddr record, taddr *ret_next)
{
	const struct layout *layout = reader->walker->layout;
	struct memory *memory = reader->walker->memory;
	struct defer_place place = { .record = record };
	uint64_t pc = 0;
	struct error *err = layout_read_field(memory, record, layout->defer_link, ret_next);

	if (!err)
		err = layout_read_field(memory, record, layout->defer_pc, &pc);
	if (!err && pc)
		err = variable_function_at(reader, pc - 1, &place.function);
	return err ? err
		   : variable_list_add(&reader->table->defers, sizeof(place), DEFERS_MAX_IN_ALL,
				       &place);
}

static int by_record(const void *left, const void *right)
{
	const struct defer_place *a = left, *b = right;

	return a->record < b->record ? -1 : a->record > b->record;
}

static void sort_defers(struct variable_table *table, struct goroutine_frames *goroutine)
{
	struct defer_place *defers = defers_at(table, goroutine->first_defer);

	if (!goroutine->defer_count)
		return;
	for (uint32_t i = 0; i + 1 < goroutine->defer_count; i++)
		defers[i].next = defers[i + 1].function;
	goroutine->last_deferrer = defers[0].function;
	qsort(defers, goroutine->defer_count, sizeof(*defers), by_record);
}

struct error *variable_defers_read(struct variable_reader *reader, const struct goroutine *g,
				   struct goroutine_frames *ret)
{
	taddr record = g->has_stack ? g->defers : 0;
	struct error *err = NULL;

	ret->first_defer = (uint32_t)reader->table->defers.count;
	while (record && ret->defer_count < DEFERS_MAX && !err) {
		err = add_defer(reader, record, &record);
		ret->defer_count += !err;
	}
	if (err && variable_is_final(err))
		return err;
	error_free(err);
	sort_defers(reader->table, ret);
	return NULL;
}

/* The last record that begins at or before slot, or NULL. */
static const struct defer_place *record_before(const struct defer_place *defers, uint32_t count,
					       taddr slot)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (defers[middle].record <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &defers[low - 1] : NULL;
}

const struct function_place *variable_deferrer(const struct variable_table *table,
					       uint32_t goroutine, taddr slot)
{
	const struct goroutine_frames *frames;
	const struct defer_place *record;
	uint32_t function;

	if (goroutine >= table->goroutine_count)
		return NULL;
	frames = &table->goroutines[goroutine];
	function = frames->last_deferrer;
	record = record_before(defers_at(table, frames->first_defer), frames->defer_count, slot);
	if (record && slot - record->record < table->defer_size + table->defer_args)
		function = slot - record->record == table->defer_link && record->next
			       ? record->next
			       : record->function;
	return function ? variable_function_place(table, function - 1) : NULL;
}
