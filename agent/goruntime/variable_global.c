/*
 * Global variables: by DWARF, which knows their types, and by symbols, which know the compiler's
 * own as well ("main..stmp_12": what a composite literal begins with). Numbers in such names are of
 * one build alone and are left out.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_symbols.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/variable_private.h"

enum { GLOBALS_MAX = 1 << 24 };

static struct error *add_global(struct variable_reader *reader, const char *name,
				struct global_place *place)
{
	struct variable_table *table = reader->table;
	struct error *err = variable_package(table, name, &place->package);

	if (!err)
		err = place->is_made_up ? variable_name(table, variable_text(table, place->package),
							"(static)", &place->name)
					: variable_name(table, name, NULL, &place->name);
	if (!err && place->addr)
		err = variable_list_add(&table->globals, sizeof(*place), GLOBALS_MAX, place);
	return err;
}

/* "main..stmp_1", "main..dict.f[int]", "go:string.*": no name of a variable has two dots. */
static bool is_made_up(const char *name)
{
	return strstr(name, "..") || strchr(name, ':') || strchr(name, '"');
}

static struct error *add_indexed(struct variable_reader *reader, uint32_t i)
{
	struct indexed_global global;
	struct indexed_type type = { 0 };
	struct global_place place = { 0 };
	struct error *err = type_index_global(reader->index, i, &global);

	if (!err && global.type)
		err = type_index_type(reader->index, global.type, &type);
	if (err)
		return err;
	place.addr = global.addr + reader->bias;
	place.size = type.size;
	place.type = global.type;
	place.is_made_up = is_made_up(global.name);
	return place.size ? add_global(reader, global.name, &place) : NULL;
}

static struct error *add_symbol(struct variable_reader *reader, const struct elf_symbol *symbol)
{
	struct global_place place = { .addr = symbol->addr + reader->bias,
				      .size = symbol->size,
				      .is_made_up = is_made_up(symbol->name) };

	return add_global(reader, symbol->name, &place);
}

/* A variable that leads to it knows best what is there. */
static int rank_of(const struct global_place *place)
{
	return place->made_type ? 2 : place->type != 0;
}

/* By address; at one place what has a type comes last. */
static int by_addr(const void *left, const void *right)
{
	const struct global_place *a = left, *b = right;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static bool is_about_bytes(const struct error *err)
{
	return error_code(err) == ERROR_FORMAT;
}

static void sort(struct variable_list *globals)
{
	if (globals->count)
		qsort(globals->items, globals->count, sizeof(struct global_place), by_addr);
}

struct error *variable_globals_read(struct variable_reader *reader)
{
	struct variable_list *globals = &reader->table->globals;
	uint32_t count = reader->index ? type_index_global_count(reader->index) : 0;
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err; i++) {
		err = add_indexed(reader, i);
		if (err && is_about_bytes(err)) {
			error_free(err);
			err = NULL;
		}
	}
	count = reader->symbols ? elf_symbols_count(reader->symbols) : 0;
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_symbol(reader, elf_symbols_at(reader->symbols, i));
	sort(globals);
	if (!err)
		err = variable_statics_read(reader);
	sort(globals);
	return err;
}

const struct global_place *variable_global_at(const struct variable_table *table, size_t count,
					      taddr slot)
{
	const struct global_place *places = (const struct global_place *)table->globals.items;
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (places[middle].addr <= slot)
			low = middle + 1;
		else
			high = middle;
	}
	/* Symbols do not overlap but where two are at one place. */
	if (low && slot - places[low - 1].addr < places[low - 1].size)
		return &places[low - 1];
	return NULL;
}

bool variable_globals_find(const struct variable_table *table, taddr slot, struct variable *ret)
{
	const struct global_place *place = variable_global_at(table, table->globals.count, slot);
	struct error *err = NULL;

	if (!place)
		return false;
	*ret = (struct variable){
		.name = variable_text(table, place->name),
		.package = variable_text(table, place->package),
		.kind = place->is_made_up ? VARIABLE_NAMELESS : VARIABLE_GLOBAL,
		.addr = place->addr,
		.size = place->size,
		.type = place->made_type,
		.is_array = place->is_array,
	};
	if (place->type)
		err = go_types_by_index(table->types, place->type, &ret->type);
	if (err)
		ret->type = TYPE_UNKNOWN;
	error_free(err);
	return true;
}
