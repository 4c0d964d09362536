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

/* Arguments lie behind the record, as they would above the frame of the function. */
static struct error *find_callee(struct variable_reader *reader, taddr record,
				 struct defer_place *place)
{
	struct memory *memory = reader->walker->memory;
	uint64_t fn = 0, entry;
	struct error *err = NULL;

	if (reader->table->defer_args)
		err = layout_read_field(memory, record, reader->walker->layout->defer_fn, &fn);
	if (err || !fn)
		return err;
	err = memory_u64(memory, fn, &entry);
	return err ? err : variable_entry_site(reader, entry, &place->callee);
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
	if (!err)
		err = find_callee(reader, record, &place);
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

/* What lies at an offset from a record. */
static void find_type(const struct variable_table *table, const struct defer_place *record,
		      uint64_t offset, struct word_owner *ret)
{
	int64_t start = 0;

	if (offset == table->defer_fn) {
		ret->type = table->func_type;
	} else if (offset == table->defer_link) {
		ret->type = table->defer_pointer;
	} else if (offset >= table->defer_size && record->callee) {
		offset -= table->defer_size;
		ret->type = variable_type_at(table, record->callee - 1, (int64_t)offset, &start);
		if (ret->type != TYPE_UNKNOWN)
			ret->addr -= offset - (uint64_t)start;
	}
}

struct word_owner variable_deferrer(const struct variable_table *table, uint32_t goroutine,
				    taddr slot)
{
	struct word_owner owner = { .addr = slot };
	const struct goroutine_frames *frames;
	const struct defer_place *record;
	uint32_t function;

	if (goroutine >= table->goroutine_count)
		return owner;
	frames = &table->goroutines[goroutine];
	function = frames->last_deferrer;
	record = record_before(defers_at(table, frames->first_defer), frames->defer_count, slot);
	if (record && slot - record->record < table->defer_size + table->defer_args) {
		uint64_t offset = slot - record->record;

		find_type(table, record, offset, &owner);
		function =
		    offset == table->defer_link && record->next ? record->next : record->function;
	} else if (!slot) {
		owner.type = table->defer_pointer;
	}
	owner.function = function ? variable_function_place(table, function - 1) : NULL;
	return owner;
}
