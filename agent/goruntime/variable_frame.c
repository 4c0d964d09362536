/*
 * Frames of all goroutines and what lies in them. A frame is where it ends on its stack, and the
 * place in the program where it stands, of which there are few: a place has its variables.
 *
 *	fp of the caller -> |                         |
 *	                    | arguments of the callee | <- offsets from 0 on, of the callee's fp
 *	fp ---------------> | return address          |
 *	                    | locals                  | <- negative offsets
 *	sp ---------------> |                         |
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/variable_private.h"

enum { WORD = 8 };

/* ---- functions ---- */

static struct error *name_function(struct variable_table *table, const char *name,
				   struct function_place *function)
{
	const struct {
		const char *last;
		name_id *ret;
	} names[] = {
		{ NULL, &function->name },           { "(temporary)", &function->temporary },
		{ "(defer)", &function->defer },     { "(registers)", &function->registers },
		{ "(context)", &function->context }, { "(stack)", &function->stack },
	};
	struct error *err = variable_package(table, name, &function->package);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		err = variable_name(table, name, names[i].last, names[i].ret);
	return err;
}

/* Where the function begins; a table that does not say leaves it without. */
static struct error *find_line(const struct module *module, const struct pclntab_func *func,
			       struct function_place *function)
{
	struct pclntab_line lines[PCLNTAB_LINES_MAX];
	uint32_t count = 0;
	struct error *err =
	    pclntab_lines(module->pclntab, func, func->entry, false, NULL, 0, lines, &count);

	if (err && error_code(err) == ERROR_NOMEM)
		return err;
	if (!err && count) {
		function->file = lines[count - 1].file;
		function->line = lines[count - 1].line;
	}
	error_free(err);
	return NULL;
}

struct error *variable_function(struct variable_reader *reader, const struct pclntab_func *func,
				const struct module *module, uint32_t *ret)
{
	struct variable_table *table = reader->table;
	uintptr_t known = (uintptr_t)addr_map_get(&reader->function_of, func->entry);
	struct function_place function = { .entry = func->entry,
					   .args_size = func->args > 0 ? (uint32_t)func->args : 0 };
	struct error *err;

	if (known) {
		*ret = (uint32_t)(known - 1);
		return NULL;
	}
	err = name_function(table, func->name, &function);
	if (!err)
		err = find_line(module, func, &function);
	if (!err)
		err = variable_list_add(&table->functions, sizeof(function), UINT32_MAX, &function);
	if (err)
		return err;
	*ret = (uint32_t)table->functions.count - 1;
	return addr_map_put(&reader->function_of, func->entry, (void *)((uintptr_t)*ret + 1));
}

/* ---- places where frames stand ---- */

static struct error *add_local(struct variable_reader *reader, const struct indexed_local *local,
			       struct frame_site *site)
{
	struct variable_table *table = reader->table;
	struct local_place place = {
		.offset = local->offset,
		.size = local->size,
		.piece_offset = local->piece_offset,
		.type = local->type,
		.is_heap_address = local->is_heap_address,
		.is_register = local->is_register,
	};
	struct error *err = variable_name(table, local->function, local->name, &place.name);

	if (!err)
		err = variable_list_add(&table->locals, sizeof(place), VARIABLE_LOCALS_MAX, &place);
	site->local_count += !err;
	return err;
}

/*
 * Variables that are where the frame stands; pc is within the call, not after it, and a call leaves
 * nothing in registers.
 */
static struct error *add_locals(struct variable_reader *reader, taddr pc, bool is_call,
				struct frame_site *site)
{
	const struct function_place *function =
	    variable_function_place(reader->table, site->function);
	uint32_t first = 0, count = 0;
	struct error *err =
	    type_index_locals(reader->index, function->entry - reader->bias, &first, &count);

	for (uint32_t i = 0; i < count && !err; i++) {
		struct indexed_local local;

		err = type_index_local(reader->index, first + i, &local);
		if (!err && pc >= local.start && pc < local.end && !(is_call && local.is_register))
			err = add_local(reader, &local, site);
	}
	if (!err || error_code(err) == ERROR_NOMEM)
		return err;
	error_free(err); /* an index that is damaged here has no variables from here on */
	return NULL;
}

static struct error *find_site(struct variable_reader *reader, const struct stack_frame *frame,
			       uint32_t *ret)
{
	struct variable_table *table = reader->table;
	taddr pc = frame->is_call ? frame->pc - 1 : frame->pc;
	uintptr_t known = (uintptr_t)addr_map_get(&reader->site_of, pc);
	struct frame_site site = { .first_local = (uint32_t)table->locals.count };
	struct error *err;

	if (known) {
		*ret = (uint32_t)(known - 1);
		return NULL;
	}
	err = variable_function(reader, &frame->func, frame->module, &site.function);
	if (!err && reader->index)
		err = add_locals(reader, pc - reader->bias, frame->is_call, &site);
	if (!err)
		err = variable_list_add(&table->sites, sizeof(site), UINT32_MAX, &site);
	if (err)
		return err;
	*ret = (uint32_t)table->sites.count - 1;
	return addr_map_put(&reader->site_of, pc, (void *)((uintptr_t)*ret + 1));
}

/* ---- goroutines ---- */

struct visit {
	struct variable_reader *reader;
	const struct goroutine *g;
	struct goroutine_frames *goroutine;
	taddr preempt_sp; /* of the frame before, if that is asyncPreempt's; or 0 */
	struct error *err;
};

static struct error *add_registers(struct visit *visit, const struct stack_frame *frame)
{
	struct error *err = NULL;

	if (!visit->goroutine->count)
		err = variable_registers_running(visit->reader, visit->g, visit->goroutine);
	else if (visit->preempt_sp)
		err = variable_registers_preempted(visit->reader, visit->preempt_sp,
						   visit->goroutine);
	visit->preempt_sp = 0;
	if (frame->is_call && !strcmp(frame->func.name, "runtime.asyncPreempt"))
		visit->preempt_sp = frame->sp;
	return err;
}

static bool visit_frame(void *arg, const struct stack_frame *frame)
{
	struct visit *visit = arg;
	struct variable_table *table = visit->reader->table;
	struct frame_place place = { 0 };
	uint64_t below = visit->goroutine->stack_hi - frame->fp;

	if (below > UINT32_MAX || table->frames.count >= VARIABLE_FRAMES_MAX)
		return false;
	place.below = (uint32_t)below;
	visit->err = find_site(visit->reader, frame, &place.site);
	if (!visit->err)
		visit->err = add_registers(visit, frame);
	if (!visit->err)
		visit->err =
		    variable_list_add(&table->frames, sizeof(place), VARIABLE_FRAMES_MAX, &place);
	visit->goroutine->count += !visit->err;
	return !visit->err;
}

bool variable_is_final(const struct error *err)
{
	return error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE;
}

/* A stack that cannot be walked to its end has the frames up to there. */
static struct error *read_frames(struct variable_reader *reader, const struct goroutine *g,
				 struct goroutine_frames *ret)
{
	struct visit visit = { .reader = reader, .g = g, .goroutine = ret };
	struct error *err;

	if (!g->has_stack || g->unsettled || g->stack_lo >= g->stack_hi)
		return NULL;
	err = stack_walk(reader->walker, g, visit_frame, &visit);
	if (visit.err) {
		error_free(err);
		return visit.err;
	}
	if (err && variable_is_final(err))
		return err;
	error_free(err);
	return NULL;
}

struct error *variable_function_at(struct variable_reader *reader, taddr pc, uint32_t *ret)
{
	const struct module *module = module_table_find_text(reader->table->modules, pc);
	struct pclntab_func func;
	bool found = false;
	uint32_t place;
	struct error *err = NULL;

	*ret = 0;
	if (module)
		err = pclntab_find(module->pclntab, pc, &found, &func);
	if (!err && found)
		err = variable_function(reader, &func, module, &place);
	if (err && variable_is_final(err))
		return err;
	if (!err && found)
		*ret = place + 1;
	error_free(err);
	return NULL;
}

struct error *variable_entry_site(struct variable_reader *reader, taddr entry, uint32_t *ret)
{
	const struct module *module = module_table_find_text(reader->table->modules, entry);
	struct stack_frame frame = { .pc = entry, .module = module };
	bool found = false;
	uint32_t site;
	struct error *err = NULL;

	*ret = 0;
	if (module)
		err = pclntab_find(module->pclntab, entry, &found, &frame.func);
	if (!err && found)
		err = find_site(reader, &frame, &site);
	if (err && variable_is_final(err))
		return err;
	if (!err && found)
		*ret = site + 1;
	error_free(err);
	return NULL;
}

static struct error *read_goroutine(struct variable_reader *reader, uint32_t index)
{
	const struct goroutine *g = goroutine_table_at(reader->goroutines, index);
	struct goroutine_frames frames = {
		.first = reader->table->frames.count,
		.first_set = (uint32_t)reader->table->sets.count,
		.g = g->g,
		.stack_lo = g->stack_lo,
		.stack_hi = g->stack_hi,
	};
	struct error *err = NULL;

	if (g->start_pc)
		err = variable_function_at(reader, g->start_pc, &frames.start);
	if (!err)
		err = read_frames(reader, g, &frames);
	if (!err)
		err = variable_defers_read(reader, g, &frames);
	reader->table->goroutines[index] = frames;
	return err;
}

struct error *variable_frames_read(struct variable_reader *reader)
{
	struct variable_table *table = reader->table;
	struct error *err = NULL;

	table->goroutine_count = goroutine_table_count(reader->goroutines);
	table->goroutines = calloc((size_t)table->goroutine_count + 1, sizeof(*table->goroutines));
	if (!table->goroutines)
		return &error_nomem;
	for (uint32_t i = 0; i < table->goroutine_count && !err; i++)
		err = read_goroutine(reader, i);
	return err;
}

/* ---- finding ---- */

static const struct frame_place *frames_of(const struct variable_table *table,
					   const struct goroutine_frames *goroutine)
{
	return (const struct frame_place *)table->frames.items + goroutine->first;
}

static const struct frame_site *site_of(const struct variable_table *table,
					const struct frame_place *frame)
{
	return (const struct frame_site *)table->sites.items + frame->site;
}

static const struct local_place *find_local(const struct variable_table *table,
					    const struct frame_site *site, int64_t offset)
{
	const struct local_place *locals =
	    (const struct local_place *)table->locals.items + site->first_local;

	for (uint32_t i = 0; i < site->local_count; i++)
		if (!locals[i].is_register && offset >= locals[i].offset &&
		    (uint64_t)(offset - locals[i].offset) < locals[i].size)
			return &locals[i];
	return NULL;
}

static const struct local_place *find_register(const struct variable_table *table,
					       const struct frame_site *site, unsigned number)
{
	const struct local_place *locals =
	    (const struct local_place *)table->locals.items + site->first_local;

	for (uint32_t i = 0; i < site->local_count; i++)
		if (locals[i].is_register && locals[i].offset == number)
			return &locals[i];
	return NULL;
}

static void set_function(const struct variable_table *table, const struct function_place *function,
			 struct variable *ret)
{
	ret->package = variable_text(table, function->package);
	ret->file = function->file;
	ret->line = function->line;
}

/* An escaped variable is its address here; what it is of lies where that leads. */
static void set_type(const struct variable_table *table, const struct local_place *local,
		     struct variable *ret)
{
	type_id type;
	struct error *err = go_types_by_index(table->types, local->type, &type);

	if (!err && local->is_heap_address)
		err = go_types_pointer_to(table->types, type, &type);
	if (!err) {
		ret->type = type;
		ret->size = go_type_at(table->types, type)->size;
	}
	error_free(err);
}

/* A frame that has variables. */
struct standing {
	const struct frame_site *site;
	taddr fp;
	const struct register_set *set; /* NULL: what it had in registers is not known */
};

static struct variable_word word_in(const struct standing *frame, const struct local_place *local,
				    uint64_t offset)
{
	struct variable_word word = { 0 };

	if (!local->is_register) {
		word.addr = frame->fp + (uint64_t)local->offset + offset;
	} else if (frame->set && !offset) {
		word.addr = frame->set->addr[local->offset];
		word.value = frame->set->value[local->offset];
		word.in_register = frame->set->is_of_thread;
	}
	return word;
}

/* Where a word of the variable that a piece is of is. */
static struct variable_word find_word(const struct variable_table *table,
				      const struct standing *frame, const struct local_place *piece,
				      uint64_t at)
{
	const struct local_place *locals =
	    (const struct local_place *)table->locals.items + frame->site->first_local;

	for (uint32_t i = 0; i < frame->site->local_count; i++)
		if (locals[i].name == piece->name && locals[i].type == piece->type &&
		    at - locals[i].piece_offset < locals[i].size)
			return word_in(frame, &locals[i], at - locals[i].piece_offset);
	return (struct variable_word){ 0 };
}

/* at: where in the variable that the piece is of the root's word is. */
static void find_around(const struct variable_table *table, const struct standing *frame,
			const struct local_place *piece, uint64_t at, struct variable *ret)
{
	ret->in_pieces = true;
	for (unsigned i = 0; i < VARIABLE_AROUND; i++)
		ret->around[i] =
		    find_word(table, frame, piece, at + i * WORD - VARIABLE_BEFORE * WORD);
	ret->around[VARIABLE_BEFORE] = word_in(frame, piece, at - piece->piece_offset);
}

type_id variable_type_at(const struct variable_table *table, uint32_t site, int64_t offset,
			 int64_t *ret_start)
{
	const struct local_place *local =
	    find_local(table, (const struct frame_site *)table->sites.items + site, offset);
	struct variable variable = { 0 };

	if (local) {
		set_type(table, local, &variable);
		*ret_start = local->offset - (int64_t)local->piece_offset;
	}
	return variable.type;
}

static taddr end_of(const struct goroutine_frames *goroutine, const struct frame_place *frame)
{
	return goroutine->stack_hi - frame->below;
}

static struct standing standing_of(const struct variable_table *table,
				   const struct goroutine_frames *goroutine,
				   const struct frame_place *frame)
{
	uint32_t number = (uint32_t)(frame - frames_of(table, goroutine));

	return (struct standing){ .site = site_of(table, frame),
				  .fp = end_of(goroutine, frame),
				  .set = variable_registers_of(table, goroutine, number) };
}

static void take_piece(const struct variable_table *table, const struct standing *frame,
		       const struct local_place *piece, uint64_t at, struct variable *ret)
{
	*ret =
	    (struct variable){ .name = variable_text(table, piece->name), .kind = VARIABLE_LOCAL };
	find_around(table, frame, piece, at, ret);
	set_function(table, variable_function_place(table, frame->site->function), ret);
	set_type(table, piece, ret);
}

static bool take_local(const struct variable_table *table, const struct goroutine_frames *goroutine,
		       const struct frame_place *place, taddr slot, struct variable *ret)
{
	const struct standing frame = standing_of(table, goroutine, place);
	const struct local_place *local = find_local(table, frame.site, (int64_t)(slot - frame.fp));

	if (!local)
		return false;
	take_piece(table, &frame, local,
		   slot - frame.fp - (uint64_t)local->offset + local->piece_offset, ret);
	ret->addr = frame.fp + (uint64_t)local->offset - local->piece_offset;
	return true;
}

static bool take_temporary(const struct variable_table *table, const struct frame_place *frame,
			   taddr slot, struct variable *ret)
{
	const struct function_place *function =
	    variable_function_place(table, site_of(table, frame)->function);

	*ret = (struct variable){ .name = variable_text(table, function->temporary),
				  .kind = VARIABLE_TEMPORARY,
				  .addr = slot,
				  .size = WORD };
	set_function(table, function, ret);
	return true;
}

/* The first frame, from the innermost, that ends above the slot; count if none does. */
static uint32_t frame_above(const struct frame_place *frames, uint32_t count, uint64_t below)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (frames[middle].below < below)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* A word above a frame that is an argument of its function, be it one that no variable names. */
static bool take_argument(const struct variable_table *table,
			  const struct goroutine_frames *goroutine, const struct frame_place *frame,
			  taddr slot, struct variable *ret)
{
	const struct function_place *function =
	    variable_function_place(table, site_of(table, frame)->function);
	taddr end = end_of(goroutine, frame);

	if (take_local(table, goroutine, frame, slot, ret))
		return true;
	return slot - end < function->args_size && take_temporary(table, frame, slot, ret);
}

static bool find_in_frames(const struct variable_table *table,
			   const struct goroutine_frames *goroutine, taddr slot,
			   struct variable *ret)
{
	const struct frame_place *frames = frames_of(table, goroutine);
	uint32_t i = frame_above(frames, goroutine->count, goroutine->stack_hi - slot);

	/* The outermost frame is so small that arguments reach beyond it. */
	for (uint32_t k = i; k && k + 2 > i; k--)
		if (take_argument(table, goroutine, &frames[k - 1], slot, ret))
			return true;
	if (i == goroutine->count)
		return i && take_temporary(table, &frames[i - 1], slot, ret);
	return take_local(table, goroutine, &frames[i], slot, ret) ||
	       take_temporary(table, &frames[i], slot, ret);
}

/* Of a stack that could not be walked: the function that the goroutine began with. */
static bool take_stack(const struct variable_table *table, const struct goroutine_frames *goroutine,
		       taddr slot, struct variable *ret)
{
	const struct function_place *function;

	if (!goroutine->start)
		return false;
	function = variable_function_place(table, goroutine->start - 1);
	*ret = (struct variable){ .name = variable_text(table, function->stack),
				  .kind = VARIABLE_TEMPORARY,
				  .addr = slot,
				  .size = WORD };
	set_function(table, function, ret);
	return true;
}

bool variable_frames_find(const struct variable_table *table, uint32_t goroutine, taddr slot,
			  struct variable *ret)
{
	const struct goroutine_frames *frames;

	if (goroutine >= table->goroutine_count)
		return false;
	frames = &table->goroutines[goroutine];
	if (slot < frames->stack_lo || slot >= frames->stack_hi)
		return false;
	return find_in_frames(table, frames, slot, ret) || take_stack(table, frames, slot, ret);
}

bool variable_registers_find(const struct variable_table *table, uint32_t goroutine, taddr slot,
			     struct variable *ret)
{
	const struct goroutine_frames *frames;
	const struct register_set *set;
	const struct local_place *local;
	const struct function_place *function;
	struct standing frame;
	unsigned number;

	if (goroutine >= table->goroutine_count)
		return false;
	frames = &table->goroutines[goroutine];
	set = variable_registers_at(table, frames, slot, &number);
	if (!set)
		return false;
	frame = standing_of(table, frames, frames_of(table, frames) + set->frame);
	local = find_register(table, frame.site, number);
	function = variable_function_place(table, frame.site->function);
	if (!local) {
		variable_take_function(table, function, function->registers, slot, ret);
		return true;
	}
	take_piece(table, &frame, local, local->piece_offset, ret);
	ret->has_offset = true;
	ret->offset = local->piece_offset;
	return true;
}

const struct function_place *variable_innermost(const struct variable_table *table,
						uint32_t goroutine)
{
	const struct goroutine_frames *frames;

	if (goroutine >= table->goroutine_count)
		return NULL;
	frames = &table->goroutines[goroutine];
	if (frames->count)
		return variable_function_place(table,
					       site_of(table, frames_of(table, frames))->function);
	return frames->start ? variable_function_place(table, frames->start - 1) : NULL;
}
