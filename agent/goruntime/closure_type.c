/*
 * What a func value points to: the code, and what the function captured. DWARF says that since
 * go1.23; else the code that makes such closures knows a struct that they are allocated as. A
 * method value holds its receiver, whose type is in the function's name.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/pclntab.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/closure_site.h"
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
	if (!types->index)
		return NULL;
	err = type_index_captures(types->index, code - types->bias, ret_first, ret_count);
	if (err && !go_types_is_final(err)) {
		*ret_count = 0;
		error_free(err);
		return NULL;
	}
	return err;
}

/* What a method value is of has a name of the compiler's own where nothing is optimised. */
static const char *name_of_capture(const char *name)
{
	return strcmp(name, ".this") ? name : "R";
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
			err =
			    made_struct_add(made, name_of_capture(field.name), field.offset, type);
	}
	if (!err || go_types_is_final(err))
		return err;
	error_free(err);
	return NULL;
}

/* ---- the struct that the compiler allocates ---- */

struct error *go_types_read_sites(struct go_types *types)
{
	return types->sites || !types->memory.memory
		   ? NULL
		   : closure_sites_read(types->memory.memory, types->modules, &types->sites);
}

static struct error *find_site(struct go_types *types, taddr code, struct rtype *ret,
			       bool *ret_found)
{
	struct error *err = go_types_read_sites(types);
	taddr descriptor = err || !types->sites ? 0 : closure_sites_find(types->sites, code);

	*ret_found = false;
	if (!descriptor)
		return err;
	err = rtype_read(&types->source, descriptor, ret);
	if (err && !go_types_is_final(err)) {
		error_free(err);
		return NULL;
	}
	*ret_found = !err && ret->kind == GO_KIND_STRUCT && ret->item_count;
	return err;
}

/* Names that the compiler made up (".autotmp_23") are no better than those of later versions. */
static struct error *copy_name(struct go_types *types, taddr name, const char **ret)
{
	char *text scoped(freep) = NULL;
	struct error *err = rtype_text(&types->source, name, &text, NULL);

	return err ? err : text_pool_copy(&types->pool, text, strlen(text), ret);
}

static struct error *add_site_field(struct made_struct *made, const struct rtype *rtype, uint32_t i)
{
	struct go_types *types = made->types;
	struct rtype_field field;
	const char *name = NULL;
	type_id type = TYPE_UNKNOWN;
	struct error *err = rtype_field(&types->source, rtype, i, &field);

	if (!err)
		err = copy_name(types, field.name, &name);
	if (!err)
		err = go_types_meet_descriptor(types, field.type, &type);
	return err || type == TYPE_UNKNOWN ? err : made_struct_add(made, name, field.offset, type);
}

/* The first field is the code pointer. */
static struct error *add_site_fields(struct made_struct *made, const struct rtype *rtype)
{
	struct error *err = NULL;

	for (uint32_t i = 1; i < rtype->item_count && !err; i++)
		err = add_site_field(made, rtype, i);
	if (!err || go_types_is_final(err))
		return err;
	error_free(err);
	return NULL;
}

/* ---- method values ---- */

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

/* Whoever knows: DWARF, the code, the function's name. */
struct closure_facts {
	uint32_t first, count; /* captures in the index */
	struct rtype site;
	bool has_site;
};

static struct error *find_facts(struct go_types *types, taddr code, struct closure_facts *ret)
{
	struct error *err = find_captures(types, code, &ret->first, &ret->count);

	ret->has_site = false;
	if (!err && !ret->count)
		err = find_site(types, code, &ret->site, &ret->has_site);
	if (ret->count > RTYPE_FIELDS_MAX)
		ret->count = RTYPE_FIELDS_MAX;
	return err;
}

static struct error *add_facts(struct made_struct *made, const struct closure_facts *facts,
			       const char *function)
{
	if (facts->count)
		return add_captures(made, facts->first, facts->count);
	return facts->has_site ? add_site_fields(made, &facts->site) : add_receiver(made, function);
}

static struct error *make_closure(struct go_types *types, const struct pclntab_func *func,
				  type_id *ret)
{
	struct made_struct made = { .types = types };
	struct closure_facts facts;
	type_id code = TYPE_UNKNOWN;
	const char *name = NULL;
	struct error *err = find_facts(types, func->entry, &facts);

	if (!err)
		err = go_types_join(types, "closure of ", func->name, &name);
	if (!err)
		err = go_types_basic(types, GO_KIND_UINTPTR, &code);
	if (!err)
		err = made_struct_begin(
		    &made, name, (facts.has_site ? facts.site.item_count : facts.count) + 2, ret);
	if (err || *ret == TYPE_UNKNOWN)
		return err;
	err = made_struct_add(&made, "F", 0, code);
	if (!err)
		err = add_facts(&made, &facts, func->name);
	made_struct_end(&made, *ret, facts.has_site ? facts.site.size : 0);
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
