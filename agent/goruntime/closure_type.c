/*
 * What a func value points to: the code, and what the function captured. Only DWARF says what that
 * is; a method value holds its receiver, whose type is in the function's name.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/made_struct.h"
#include "agent/goruntime/module.h"

enum { WORD = 8 };

/* What the index says that the function's closures hold; *ret_count is 0 if it says nothing. */
static struct error *find_captures(const struct go_types *types, taddr code, uint32_t *ret_first,
				   uint32_t *ret_count)
{
	struct error *err;

	*ret_first = *ret_count = 0;
	/* The index is the program's own, not that of a plugin. */
	if (!types->index ||
	    module_table_find_text(types->modules, code) != module_table_at(types->modules, 0))
		return NULL;
	err = type_index_captures(types->index, code - types->bias, ret_first, ret_count);
	if (err && !go_types_is_final(err)) {
		*ret_count = 0;
		error_free(err);
		return NULL;
	}
	return err;
}

static struct error *add_captures(struct made_struct *made, uint32_t first, uint32_t count)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err; i++) {
		struct indexed_field field;
		type_id type;

		err = type_index_capture(made->types->index, first + i, &field);
		if (!err)
			err = go_types_meet_number(made->types, field.type, &type);
		if (!err)
			err = made_struct_add(made, field.name, field.offset, type);
	}
	if (!err || go_types_is_final(err))
		return err;
	error_free(err);
	return NULL;
}

/*
 * The receiver's type from the name of a method value: "main.(*T).M-fm" is of a *main.T,
 * "main.T.M-fm" of a main.T. 0 if the index has none of that name.
 */
static struct error *find_receiver(const struct go_types *types, const char *function,
				   uint32_t *ret)
{
	static const char suffix[] = "-fm", pointer[] = ".(*";
	size_t size = strlen(function);
	char *name scoped(freep) = malloc(size + 2);
	char *method, *at;

	*ret = 0;
	if (!name)
		return &error_nomem;
	if (!types->index || size < sizeof(suffix) ||
	    strcmp(function + size - (sizeof(suffix) - 1), suffix))
		return NULL;
	name[0] = '*';
	memcpy(name + 1, function, size + 1);
	method = strrchr(name + 1, '.');
	if (!method)
		return NULL;
	*method = '\0';
	at = strstr(name + 1, pointer);
	if (at && method[-1] == ')') {
		method[-1] = '\0';
		memmove(at + 1, at + sizeof(pointer) - 1, strlen(at + sizeof(pointer) - 1) + 1);
		*ret = type_index_find_name(types->index, name);
	} else {
		*ret = type_index_find_name(types->index, name + 1);
	}
	return NULL;
}

static struct error *add_receiver(struct made_struct *made, const char *function)
{
	type_id type = TYPE_UNKNOWN;
	uint32_t number;
	struct error *err = find_receiver(made->types, function, &number);

	if (!err && number)
		err = go_types_meet_number(made->types, number, &type);
	return err || type == TYPE_UNKNOWN ? err : made_struct_add(made, "R", WORD, type);
}

static struct error *make_closure(struct go_types *types, const struct pclntab_func *func,
				  type_id *ret)
{
	struct made_struct made = { .types = types };
	uint32_t first, count;
	type_id code = TYPE_UNKNOWN;
	const char *name = NULL;
	struct error *err = find_captures(types, func->entry, &first, &count);

	if (!err && count > RTYPE_FIELDS_MAX)
		count = RTYPE_FIELDS_MAX;
	if (!err)
		err = go_types_join(types, "closure of ", func->name, &name);
	if (!err)
		err = go_types_basic(types, GO_KIND_UINTPTR, &code);
	if (!err)
		err = made_struct_begin(&made, name, count + 2, ret);
	if (err || *ret == TYPE_UNKNOWN)
		return err;
	err = made_struct_add(&made, "F", 0, code);
	if (!err)
		err = count ? add_captures(&made, first, count) : add_receiver(&made, func->name);
	made_struct_end(&made, *ret, 0);
	return err;
}

static struct error *find_function(const struct go_types *types, taddr code,
				   struct pclntab_func *ret, bool *ret_found)
{
	const struct module *module = module_table_find_text(types->modules, code);
	struct error *err = NULL;

	*ret_found = false;
	if (module)
		err = pclntab_find(module->pclntab, code, ret_found, ret);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		err = NULL;
	}
	*ret_found = *ret_found && ret->entry == code;
	return err;
}

struct error *go_types_meet_closure(struct go_types *types, taddr code, type_id *ret)
{
	struct pclntab_func func;
	bool found;
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (go_types_known(&types->by_closure, code, ret))
		return NULL;
	err = find_function(types, code, &func, &found);
	if (!err && found)
		err = make_closure(types, &func, ret);
	if (err && go_types_is_final(err))
		return err;
	error_free(err);
	return go_types_remember(&types->by_closure, code, *ret);
}
