#include "agent/goruntime/machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/pc_facts.h"
#include "agent/goruntime/signal_frame.h"

enum {
	SYSTEM_FRAMES_MAX = 256, /* looked at on one system stack */
	SYSTEM_BYTES_MAX = 16 << 10,
};

struct reader {
	struct memory *memory;
	const struct layout *layout;
	struct pc_cache *cache;
	struct addr_map threads; /* struct stopped_thread by target_tid */
};

void machine_table_fini(struct machine_table *table)
{
	free(table->machines);
	*table = (struct machine_table){ 0 };
}

const struct machine *machine_table_find(const struct machine_table *table, taddr m)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->machines[middle].m == m)
			return &table->machines[middle];
		if (table->machines[middle].m < m)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A missing g has no stack. */
static struct error *read_bounds(const struct reader *reader, taddr g, struct stack_bounds *ret)
{
	struct error *err;

	*ret = (struct stack_bounds){ 0 };
	if (!g)
		return NULL;
	err = layout_read_field(reader->memory, g, reader->layout->g_stack_lo, &ret->lo);
	return err ? err
		   : layout_read_field(reader->memory, g, reader->layout->g_stack_hi, &ret->hi);
}

static struct error *read_machine(const struct reader *reader, taddr m, struct machine *ret,
				  taddr *ret_next)
{
	const struct layout *layout = reader->layout;
	taddr g0 = 0, gsignal = 0;
	const struct {
		struct layout_field field;
		uint64_t *value;
	} fields[] = {
		{ layout->m_g0, &g0 },
		{ layout->m_gsignal, &gsignal },
		{ layout->m_curg, &ret->curg },
		{ layout->m_p, &ret->p },
		{ layout->m_procid, &ret->procid },
		{ layout->m_vdso_pc, &ret->vdso_pc },
		{ layout->m_vdso_sp, &ret->vdso_sp },
		{ layout->m_all_link, ret_next },
	};
	struct error *err = NULL;

	ret->m = m;
	for (size_t i = 0; !err && i < sizeof(fields) / sizeof(fields[0]); i++)
		err = layout_read_field(reader->memory, m, fields[i].field, fields[i].value);
	if (!err)
		err = read_bounds(reader, g0, &ret->g0_stack);
	if (!err)
		err = read_bounds(reader, gsignal, &ret->signal_stack);
	if (!err)
		err = read_bounds(reader, ret->curg, &ret->user_stack);
	return err;
}

static enum machine_stack stack_of(const struct machine *machine, taddr sp)
{
	if (stack_bounds_hold(machine->user_stack, sp))
		return MACHINE_STACK_USER;
	if (stack_bounds_hold(machine->signal_stack, sp))
		return MACHINE_STACK_SIGNAL;
	if (stack_bounds_hold(machine->g0_stack, sp))
		return MACHINE_STACK_G0;
	return MACHINE_STACK_NONE;
}

static struct error *find_interrupted(const struct reader *reader, struct machine *machine)
{
	struct signal_frame frame;
	struct error *err;
	bool found;

	machine->interrupted = machine->registers;
	if (machine->registers.stack != MACHINE_STACK_SIGNAL)
		return NULL;
	err = signal_frame_find(reader->memory, machine->signal_stack.lo, machine->signal_stack.hi,
				machine->registers.sp, &found, &frame);
	if (err || !found)
		return err;
	machine->signal_frame = frame.context;
	machine->interrupted =
	    (struct machine_state){ frame.pc, frame.sp, stack_of(machine, frame.sp) };
	return NULL;
}

static void note_roles(struct machine *machine, uint32_t roles)
{
	machine->moves_stack |= (roles & ROLE_MOVES_STACK) != 0;
	machine->grows_stack |= (roles & (ROLE_GROWS_STACK | ROLE_MOVES_STACK)) != 0;
}

/*
 * Where a stack cannot be walked (a C library, the vDSO, a switch under way), every word that
 * would do as a return address is taken for one.
 */
static struct error *note_words(const struct reader *reader, struct machine *machine, taddr sp)
{
	uint64_t left = machine->g0_stack.hi - sp;
	taddr end = sp + (left < SYSTEM_BYTES_MAX ? left : SYSTEM_BYTES_MAX);

	for (taddr at = (sp + 7) & ~(taddr)7; at + 8 <= end; at += 8) {
		struct pc_facts *facts;
		uint64_t word;
		struct error *err = memory_u64(reader->memory, at, &word);

		if (!err)
			err = pc_cache_find(reader->cache, word, &facts);
		if (err)
			return err;
		if (facts)
			note_roles(machine, facts->function->roles);
	}
	return NULL;
}

/*
 * Looks at the functions on g0, from the innermost to where the goroutine's stack was left: one
 * of them may be copying a stack. They run on a system stack always.
 */
static struct error *note_system_frames(const struct reader *reader, struct machine *machine,
					taddr pc, taddr sp)
{
	for (unsigned i = 0; i < SYSTEM_FRAMES_MAX; i++) {
		struct pc_facts *facts;
		struct error *err = pc_cache_find(reader->cache, pc, &facts);

		if (err)
			return err;
		if (!facts || facts->frame_size < 0)
			return note_words(reader, machine, sp);
		note_roles(machine, facts->function->roles);
		if (i &&
		    (facts->function->roles & (ROLE_SWITCH | ROLE_TOP) ||
		     facts->function->func.flag & (PCLNTAB_FLAG_TOP_FRAME | PCLNTAB_FLAG_SP_WRITE)))
			return NULL;
		sp += (uint32_t)facts->frame_size + 8;
		if (!stack_bounds_hold(machine->g0_stack, sp))
			return NULL;
		err = memory_u64(reader->memory, sp - 8, &pc);
		if (err)
			return err;
	}
	return NULL;
}

/*
 * Caught in a function that leaves one stack for another, on whichever of them, or outside Go on
 * g0, where a signal handler may have overwritten what vdso_sp said.
 */
static struct error *note_switch(const struct reader *reader, struct machine *machine)
{
	struct pc_facts *facts;
	struct error *err = pc_cache_find(reader->cache, machine->interrupted.pc, &facts);

	if (!err && !facts)
		machine->switching = !stack_bounds_hold(machine->user_stack, machine->vdso_sp);
	if (err || !facts || facts->function->roles & ROLE_CLOCK)
		return err;
	machine->switching = facts->function->roles & ROLE_SWITCH ||
			     (facts->function->func.flag & PCLNTAB_FLAG_SP_WRITE &&
			      machine->interrupted.stack == MACHINE_STACK_USER);
	return NULL;
}

/* amd64: the kernel returns behind the instruction, or begins again at it. */
static bool is_system_call(const struct reader *reader, taddr pc)
{
	static const uint8_t instruction[2] = { 0x0f, 0x05 };
	uint8_t bytes[2];
	struct error *err = memory_read(reader->memory, pc, bytes, sizeof(bytes));
	bool found = !err && !memcmp(bytes, instruction, sizeof(bytes));

	error_free(err);
	return found;
}

/*
 * Go code keeps nothing in registers over a call, and where the runtime's assembly calls the
 * kernel, neither does that. Of code that the compiler made, or others wrote, it is not known.
 */
static struct error *note_system_call(const struct reader *reader, struct machine *machine)
{
	taddr pc = machine->interrupted.pc;
	struct pc_facts *facts;
	struct error *err = pc_cache_find(reader->cache, pc, &facts);

	if (err || !facts || machine->switching || !(facts->function->roles & ROLE_SYSTEM_CALL) ||
	    !(facts->function->func.flag & PCLNTAB_FLAG_ASM))
		return err;
	machine->in_system_call =
	    is_system_call(reader, pc) ||
	    (pc - facts->function->func.entry >= 2 && is_system_call(reader, pc - 2));
	return NULL;
}

static struct error *note_state(const struct reader *reader, struct machine *machine)
{
	struct error *err = find_interrupted(reader, machine);

	if (!err)
		err = note_switch(reader, machine);
	if (!err)
		err = note_system_call(reader, machine);
	if (err || machine->interrupted.stack != MACHINE_STACK_G0 ||
	    stack_bounds_hold(machine->user_stack, machine->vdso_sp))
		return err; /* on g0 for the vDSO alone, it moves nothing */
	if (stack_bounds_hold(machine->g0_stack, machine->vdso_sp))
		return note_system_frames(reader, machine, machine->vdso_pc, machine->vdso_sp);
	return note_system_frames(reader, machine, machine->interrupted.pc,
				  machine->interrupted.sp);
}

/* What cannot be told of a thread, because its stack makes no sense, counts as the worst case. */
static struct error *match_thread(const struct reader *reader, struct machine *machine)
{
	struct error *err;

	machine->thread = addr_map_get(&reader->threads, machine->procid);
	if (!machine->thread)
		return NULL;
	machine->registers = (struct machine_state){ machine->thread->pc, machine->thread->sp,
						     stack_of(machine, machine->thread->sp) };
	err = note_state(reader, machine);
	if (!err || error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE)
		return err;
	error_free(err);
	machine->switching = machine->moves_stack = machine->grows_stack = true;
	machine->in_system_call = false;
	return NULL;
}

static struct error *add_machine(struct machine_table *table, const struct machine *machine)
{
	if (table->count == table->capacity) {
		uint32_t capacity = table->capacity ? 2 * table->capacity : 16;
		struct machine *machines =
		    reallocarray(table->machines, capacity, sizeof(*machines));

		if (!machines)
			return &error_nomem;
		table->machines = machines;
		table->capacity = capacity;
	}
	table->machines[table->count++] = *machine;
	return NULL;
}

static struct error *follow_chain(const struct reader *reader, struct machine_table *table)
{
	taddr next, anchor = 0;
	struct error *err = memory_u64(reader->memory, reader->layout->global_allm.addr, &next);

	while (!err && next) {
		struct machine machine = { 0 };
		taddr m = next;

		if (table->count == MACHINES_MAX)
			return error_new(ERROR_LIMIT, "more than %d Ms in the chain", MACHINES_MAX);
		/* A cycle meets the M that is remembered at each power of two. */
		if (m == anchor)
			return error_new(ERROR_CORRUPT_TARGET, "a chain without end");
		if ((table->count & (table->count - 1)) == 0)
			anchor = m;
		err = read_machine(reader, m, &machine, &next);
		if (!err)
			err = match_thread(reader, &machine);
		if (!err)
			err = add_machine(table, &machine);
		if (err)
			return error_context(err, "m 0x%" PRIx64, m);
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct machine *left = a, *right = b;

	return (left->m > right->m) - (left->m < right->m);
}

static struct error *index_threads(struct reader *reader, const struct stopped_thread *threads,
				   uint32_t thread_count)
{
	for (uint32_t i = 0; i < thread_count; i++) {
		struct error *err;

		if (!threads[i].target_tid)
			continue;
		err = addr_map_put(&reader->threads, threads[i].target_tid, (void *)&threads[i]);
		if (err)
			return err;
	}
	return NULL;
}

struct error *machine_table_read(struct memory *memory, const struct layout *layout,
				 struct pc_cache *cache, const struct stopped_thread *threads,
				 uint32_t thread_count, struct machine_table *ret)
{
	struct reader reader = { .memory = memory, .layout = layout, .cache = cache };
	struct machine_table table = { 0 };
	struct error *err = index_threads(&reader, threads, thread_count);

	if (!err)
		err = follow_chain(&reader, &table);
	addr_map_fini(&reader.threads);
	if (err) {
		machine_table_fini(&table);
		return err;
	}
	if (table.count)
		qsort(table.machines, table.count, sizeof(*table.machines), by_address);
	*ret = table;
	return NULL;
}
