/*
 * What global variables are made of before the program runs: the linker lays down what &T{...} and
 * []T{...} point to, as data without any symbol. It is found through the variables that lead to it,
 * and has the name of the first that does.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/module.h"
#include "agent/goruntime/stack_walker.h"
#include "agent/goruntime/variable_private.h"

enum {
	STATICS_MAX = 1 << 20,
	PARTS_MAX = 1 << 22, /* that are looked at, of all variables */
	WORD = 8,
};

/* A value that may lead further. */
struct part {
	taddr addr;
	uint64_t count; /* of values, one after the other */
	type_id type;
	name_id name, package;
};

/* Parts in the order in which they are found, so that names come from the nearest variable. */
struct static_search {
	struct variable_reader *reader;
	struct variable_list parts;
	struct addr_map found; /* by address */
	size_t named_count;    /* of places that were there before */
};

static const struct go_type *type_at(const struct static_search *search, type_id id)
{
	return go_type_at(search->reader->table->types, id);
}

static struct error *add_part(struct static_search *search, taddr addr, uint64_t count,
			      type_id type, const struct part *parent)
{
	const struct part part = { addr, count, type, parent->name, parent->package };

	if (!type_at(search, type)->ptr_bytes || search->parts.count == PARTS_MAX)
		return NULL;
	return variable_list_add(&search->parts, sizeof(part), PARTS_MAX, &part);
}

static bool is_within(taddr addr, uint64_t size, taddr start, taddr end)
{
	return start <= addr && addr < end && size <= end - addr;
}

/* Data that holds pointers, of any module. */
static bool is_data(const struct static_search *search, taddr addr, uint64_t size)
{
	const struct module_table *modules = search->reader->table->modules;

	for (uint32_t i = 0; i < module_table_count(modules); i++) {
		const struct module *module = module_table_at(modules, i);

		if (is_within(addr, size, module->data, module->edata) ||
		    is_within(addr, size, module->bss, module->ebss))
			return true;
	}
	return false;
}

/* What the compiler made up has a symbol in programs that an external linker laid out, no type. */
static bool is_known(struct static_search *search, taddr addr)
{
	const struct global_place *place =
	    variable_global_at(search->reader->table, search->named_count, addr);

	return addr_map_get(&search->found, addr) || (place && !place->is_made_up);
}

/* Somewhere that count values of the type lie, if it is data that nobody knows yet. */
static struct error *lead_to(struct static_search *search, taddr addr, uint64_t count, type_id id,
			     const struct part *parent)
{
	struct variable_table *table = search->reader->table;
	const struct go_type *type = type_at(search, id);
	struct global_place place = { .addr = addr,
				      .made_type = id,
				      .is_array = count != 1,
				      .name = parent->name,
				      .package = parent->package };
	struct error *err;

	if (!type->ptr_bytes || !count || __builtin_mul_overflow(type->size, count, &place.size) ||
	    !is_data(search, addr, place.size) || is_known(search, addr) ||
	    table->globals.count >= search->named_count + STATICS_MAX)
		return NULL;
	err = addr_map_put(&search->found, addr, search);
	if (!err)
		err = variable_list_add(&table->globals, sizeof(place),
					search->named_count + STATICS_MAX, &place);
	return err ? err : add_part(search, addr, count, id, parent);
}

static struct error *follow_interface(struct static_search *search, const struct go_type *type,
				      const uint64_t words[2], const struct part *part)
{
	struct go_types *types = search->reader->table->types;
	const struct go_type *held;
	type_id id;
	struct error *err = type->has_methods ? go_types_by_itab(types, words[0], &id)
					      : go_types_by_descriptor(types, words[0], &id);

	if (err)
		return err;
	held = type_at(search, id);
	if (!held->direct_interface)
		return lead_to(search, words[1], 1, id, part);
	return held->kind == GO_KIND_POINTER ? lead_to(search, words[1], 1, held->elem, part)
					     : NULL;
}

/* A value of one, two or three words. */
static struct error *follow_words(struct static_search *search, const struct go_type *type,
				  const struct part *part)
{
	uint64_t words[3] = { 0 };
	struct error *err = memory_read(search->reader->walker->memory, part->addr, words,
					type->size <= sizeof(words) ? type->size : WORD);

	if (err)
		return err;
	switch (type->kind) {
	case GO_KIND_POINTER:
		return lead_to(search, words[0], 1, type->elem, part);
	case GO_KIND_SLICE:
		return lead_to(search, words[0], words[2], type->elem, part);
	case GO_KIND_INTERFACE:
		return follow_interface(search, type, words, part);
	default:
		return NULL;
	}
}

static struct error *follow_fields(struct static_search *search, const struct go_type *type,
				   const struct part *part)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < type->field_count && !err; i++)
		err = add_part(search, part->addr + type->fields[i].offset, 1, type->fields[i].type,
			       part);
	return err;
}

static struct error *follow_value(struct static_search *search, const struct part *part)
{
	const struct go_type *type = type_at(search, part->type);

	switch (type->kind) {
	case GO_KIND_STRUCT:
		return follow_fields(search, type, part);
	case GO_KIND_ARRAY:
		return add_part(search, part->addr, type->length, type->elem, part);
	default:
		return follow_words(search, type, part);
	}
}

static struct error *follow(struct static_search *search, struct part part)
{
	uint64_t size = type_at(search, part.type)->size;
	struct error *err = NULL;

	for (uint64_t i = 0; i < part.count && !err && search->parts.count < PARTS_MAX; i++) {
		err = follow_value(search, &part);
		part.addr += size;
	}
	if (err && !variable_is_final(err)) {
		error_free(err);
		return NULL;
	}
	return err;
}

static struct error *add_variables(struct static_search *search)
{
	const struct variable_list *globals = &search->reader->table->globals;
	struct error *err = NULL;

	for (size_t i = 0; i < search->named_count && !err; i++) {
		const struct global_place *place = (const struct global_place *)globals->items + i;
		const struct part named = { .name = place->name, .package = place->package };
		type_id type;

		if (!place->type)
			continue;
		err = go_types_by_index(search->reader->table->types, place->type, &type);
		if (!err)
			err = add_part(search, place->addr, 1, type, &named);
	}
	return err;
}

struct error *variable_statics_read(struct variable_reader *reader)
{
	struct static_search search = { .reader = reader,
					.named_count = reader->table->globals.count };
	struct error *err = add_variables(&search);

	for (size_t i = 0; i < search.parts.count && !err; i++)
		err = follow(&search, ((const struct part *)search.parts.items)[i]);
	variable_list_fini(&search.parts);
	addr_map_fini(&search.found);
	return err ? error_context(err, "data of global variables") : NULL;
}
