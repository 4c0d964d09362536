/*
 * Registers of frames that were interrupted at no call, where variables may be in registers alone:
 * of a thread that runs Go code at the stop, or that a signal handler interrupted in it, and of a
 * goroutine that asyncPreempt has taken from its thread (runtime/preempt.go).
 */
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/variable_private.h"

enum { SETS_MAX = 1 << 18 };

static struct error *add_set(struct variable_reader *reader, struct register_set *set,
			     struct goroutine_frames *goroutine)
{
	struct variable_list *sets = &reader->table->sets;
	struct error *err;

	/* Registers beyond have no names. */
	if (sets->count == SETS_MAX)
		return NULL;
	set->frame = goroutine->count;
	err = variable_list_add(sets, sizeof(*set), SETS_MAX, set);
	goroutine->set_count += !err;
	return err;
}

/* As the scan of the stack takes them for roots. */
struct error *variable_registers_running(struct variable_reader *reader, const struct goroutine *g,
					 struct goroutine_frames *goroutine)
{
	struct register_set set = { .is_of_thread = !g->signal_frame };

	if (!g->thread || g->status != GOROUTINE_RUNNING || !g->on_registers || g->in_system_call)
		return NULL;
	for (unsigned i = 0; i < REGISTER_COUNT; i++) {
		if (g->signal_frame)
			set.addr[i] = g->signal_frame + register_in_context(i);
		else
			set.value[i] = g->thread->gpr[register_of_thread(i)];
	}
	return add_set(reader, &set, goroutine);
}

struct error *variable_registers_preempted(struct variable_reader *reader, taddr sp,
					   struct goroutine_frames *goroutine)
{
	struct register_set set = { 0 };

	for (unsigned i = 0; i < REGISTER_COUNT; i++)
		if (register_in_preempt(i) != REGISTER_NOT_KEPT)
			set.addr[i] = sp + register_in_preempt(i);
	return add_set(reader, &set, goroutine);
}

static const struct register_set *sets_of(const struct variable_table *table,
					  const struct goroutine_frames *goroutine)
{
	return (const struct register_set *)table->sets.items + goroutine->first_set;
}

const struct register_set *variable_registers_of(const struct variable_table *table,
						 const struct goroutine_frames *goroutine,
						 uint32_t frame)
{
	for (uint32_t i = 0; i < goroutine->set_count; i++)
		if (sets_of(table, goroutine)[i].frame == frame)
			return &sets_of(table, goroutine)[i];
	return NULL;
}

static bool has_slot(const struct register_set *set, taddr slot, unsigned *ret_number)
{
	if (slot < ROOT_REGISTER_SLOTS) {
		*ret_number = (unsigned)slot - 1;
		return set->is_of_thread && slot && slot <= REGISTER_COUNT;
	}
	for (*ret_number = 0; *ret_number < REGISTER_COUNT; ++*ret_number)
		if (set->addr[*ret_number] == slot)
			return true;
	return false;
}

const struct register_set *variable_registers_at(const struct variable_table *table,
						 const struct goroutine_frames *goroutine,
						 taddr slot, unsigned *ret_number)
{
	for (uint32_t i = 0; i < goroutine->set_count; i++)
		if (has_slot(&sets_of(table, goroutine)[i], slot, ret_number))
			return &sets_of(table, goroutine)[i];
	return NULL;
}
