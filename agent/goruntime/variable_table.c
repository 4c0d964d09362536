#include "agent/goruntime/variable_table.h"

#include <stdlib.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/variable_private.h"

enum { DEFER_ARGS_MAX = 64 << 10 }; /* bytes; to go1.16 */

void variable_table_free(struct variable_table *table)
{
	if (!table)
		return;
	string_pool_fini(&table->names);
	variable_list_fini(&table->globals);
	variable_list_fini(&table->functions);
	variable_list_fini(&table->sites);
	variable_list_fini(&table->locals);
	variable_list_fini(&table->frames);
	variable_list_fini(&table->defers);
	variable_list_fini(&table->sets);
	variable_list_fini(&table->queue_blocks);
	variable_list_fini(&table->queued_types);
	free(table->goroutines);
	free(table);
}

static void take_layout(struct variable_table *table, const struct layout *layout)
{
	table->g_size = layout->g.size;
	table->g_context = layout->g_sched_ctxt.offset;
	table->queue_entries = layout->fin_block_entries.offset;
	table->queue_entry_size = layout->finalizer.size;
	table->queue_fn = layout->finalizer_fn.offset;
	table->queue_arg = layout->finalizer_arg.offset;
	table->defer_fn = layout->defer_fn.offset;
	table->defer_link = layout->defer_link.offset;
	table->defer_size = layout->defer.size;
	table->defer_args = layout_has(layout, defer_size) ? DEFER_ARGS_MAX : 0;
}

/* Of the words of a defer record. */
static struct error *find_types(struct variable_table *table)
{
	type_id record = TYPE_UNKNOWN;
	struct error *err = go_types_by_name(table->types, "func()", &table->func_type);

	if (!err)
		err = go_types_by_name(table->types, "runtime._defer", &record);
	if (err || record == TYPE_UNKNOWN)
		return err;
	return go_types_pointer_to(table->types, record, &table->defer_pointer);
}

static struct error *read_parts(struct variable_reader *reader)
{
	struct error *err = find_types(reader->table);

	if (!err)
		err = variable_globals_read(reader);
	if (!err)
		err = variable_frames_read(reader);
	return err ? err : variable_queues_read(reader);
}

struct error *variable_table_read(struct go_types *types, const struct module_table *modules,
				  const struct goroutine_table *goroutines,
				  struct stack_walker *walker, const struct type_index *index,
				  const struct elf_symbols *symbols, uint64_t bias,
				  struct variable_table **ret)
{
	struct variable_table *table scoped(variable_table_freep) = calloc(1, sizeof(*table));
	struct variable_reader reader = { .table = table,
					  .goroutines = goroutines,
					  .walker = walker,
					  .index = index,
					  .symbols = symbols,
					  .bias = bias };
	struct error *err;

	if (!table)
		return &error_nomem;
	table->types = types;
	table->modules = modules;
	take_layout(table, walker->layout);
	err = string_pool_init(&table->names, VARIABLE_NAMES_MAX);
	if (!err)
		err = read_parts(&reader);
	addr_map_fini(&reader.function_of);
	addr_map_fini(&reader.site_of);
	if (err)
		return error_context(err, "variables");
	*ret = take(table);
	return NULL;
}

/* What has one name wherever it is. */
static const char *const plain_names[ROOT_KIND_END] = {
	[ROOT_DATA] = "(nameless data)",
	[ROOT_BSS] = "(nameless bss)",
	[ROOT_STACK] = "(stack)",
	[ROOT_GOROUTINE] = "(goroutine)",
	[ROOT_FINALIZER] = "finalizer",
	[ROOT_WEAK_HANDLE] = "weak handle",
	[ROOT_CLEANUP] = "cleanup",
	[ROOT_FINALIZER_QUEUE] = "finalizer queue",
	[ROOT_CLEANUP_QUEUE] = "cleanup queue",
	[ROOT_TINY_BLOCK] = "(tiny block)",
	[ROOT_STACK_CONSERVATIVE] = "(stack)",
	[ROOT_REGISTER] = "(registers)",
	[ROOT_SYSTEM_STACK] = "(system stack)",
};

static void take_plain(enum root_kind kind, taddr slot, struct variable *ret)
{
	*ret = (struct variable){
		.name = kind < ROOT_KIND_END ? plain_names[kind] : "?",
		.package = "",
		.kind =
		    kind == ROOT_DATA || kind == ROOT_BSS ? VARIABLE_NAMELESS : VARIABLE_RUNTIME,
		.addr = slot < ROOT_REGISTER_SLOTS ? 0 : slot,
		.size = slot < ROOT_REGISTER_SLOTS ? 0 : 8,
	};
}

void variable_take_function(const struct variable_table *table,
			    const struct function_place *function, name_id name, taddr slot,
			    struct variable *ret)
{
	*ret = (struct variable){
		.name = variable_text(table, name),
		.package = variable_text(table, function->package),
		.file = function->file,
		.line = function->line,
		.kind = VARIABLE_RUNTIME,
		.addr = slot < ROOT_REGISTER_SLOTS ? 0 : slot,
		.size = slot < ROOT_REGISTER_SLOTS ? 0 : 8,
	};
}

/* A word of a g, or of a record of what it deferred. */
static void find_goroutine(const struct variable_table *table, uint32_t goroutine, taddr slot,
			   struct variable *ret)
{
	const struct function_place *innermost;
	struct word_owner owner;
	bool in_g = goroutine < table->goroutine_count &&
		    slot - table->goroutines[goroutine].g < table->g_size;

	if (in_g) {
		innermost = variable_innermost(table, goroutine);
		if (innermost)
			variable_take_function(table, innermost, innermost->context, slot, ret);
		if (slot - table->goroutines[goroutine].g == table->g_context)
			ret->type = table->func_type;
		return;
	}
	owner = variable_deferrer(table, goroutine, slot);
	if (!owner.function)
		return;
	variable_take_function(table, owner.function, owner.function->defer, owner.addr, ret);
	ret->type = owner.type;
	if (owner.type != TYPE_UNKNOWN)
		ret->size = go_type_at(table->types, owner.type)->size;
}

void variable_table_find(const struct variable_table *table, enum root_kind kind,
			 uint32_t goroutine, taddr slot, struct variable *ret)
{
	const struct function_place *function;

	take_plain(kind, slot, ret);
	switch (kind) {
	case ROOT_DATA:
	case ROOT_BSS:
		variable_globals_find(table, slot, ret);
		return;
	case ROOT_STACK:
		variable_frames_find(table, goroutine, slot, ret);
		return;
	case ROOT_STACK_CONSERVATIVE:
		if (!variable_registers_find(table, goroutine, slot, ret))
			variable_frames_find(table, goroutine, slot, ret);
		return;
	case ROOT_GOROUTINE:
		find_goroutine(table, goroutine, slot, ret);
		return;
	case ROOT_REGISTER:
		if (variable_registers_find(table, goroutine, slot, ret))
			return;
		function = variable_innermost(table, goroutine);
		if (function)
			variable_take_function(table, function, function->registers, slot, ret);
		return;
	case ROOT_FINALIZER_QUEUE:
		ret->name = variable_text(table, table->finalizer_queue);
		ret->type = variable_queued_type(table, slot);
		return;
	case ROOT_CLEANUP_QUEUE:
		ret->name = variable_text(table, table->cleanup_queue);
		return;
	default:
		return;
	}
}
