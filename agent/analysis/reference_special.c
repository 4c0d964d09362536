/*
 * Roots that the runtime keeps for finalizers and cleanups: functions, and objects that wait to be
 * handed to them. The records say of what type an object is: runtime/mheap.go, specialfinalizer
 * {special, fn, nret, fint, ot}; runtime/mfinal.go, finalizer {fn, arg, nret, fint, ot}, where ot
 * is the type of pointers to it, and fint what the function takes. Cleanups (runtime/mcleanup.go)
 * have a closure of AddCleanup's, which has captured the function that was given to it and the
 * argument; since go1.26 a record has {call, fn, arg}, where arg points to a copy of the argument.
 * Only the function's own parameter says of what type that is: AddCleanup is generic.
 */
#include "agent/analysis/reference_special.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/layout.h"

/* 0 if it cannot be read. */
static struct error *read_word(struct expander *x, taddr addr, uint64_t *ret)
{
	bool is_read;

	return expander_word(x, addr, ret, &is_read);
}

static struct error *read_type(struct expander *x, taddr addr, type_id *ret)
{
	uint64_t word;
	struct error *err = read_word(x, addr, &word);

	*ret = TYPE_UNKNOWN;
	return err ? err : expander_type(x, word, false, ret);
}

/* The code of the function that a func value at addr is; 0 if it is none. */
static struct error *read_code(struct expander *x, taddr addr, uint64_t *ret)
{
	type_id closure = TYPE_UNKNOWN;
	uint64_t func;
	struct error *err = read_word(x, addr, &func);

	if (!err)
		err = read_word(x, func, ret);
	if (!err)
		err = go_types_by_closure(x->walk->input.types, *ret, &closure);
	if (!err && closure == TYPE_UNKNOWN)
		*ret = 0;
	return err;
}

/* Where a record has both types, the object's is that of what the second one points to. */
static struct error *read_types(struct expander *x, taddr fint, taddr ot, type_id *ret_pointer)
{
	const struct go_types *types = x->walk->input.types;
	type_id taken, pointer = TYPE_UNKNOWN;
	struct error *err = read_type(x, fint, &taken);

	*ret_pointer = TYPE_UNKNOWN;
	if (!err && taken != TYPE_UNKNOWN)
		err = read_type(x, ot, &pointer);
	if (!err && go_type_at(types, pointer)->kind == GO_KIND_POINTER)
		*ret_pointer = pointer;
	return err;
}

struct error *finalizer_type(struct expander *x, taddr record, type_id *ret_pointer)
{
	taddr end = record + x->walk->input.layout->special_finalizer.size;

	return read_types(x, end - 16, end - 8, ret_pointer);
}

/* The words of an entry look alike: it is the argument if the types are where they then are. */
static struct error *queued_type(struct expander *x, taddr slot, type_id *ret_pointer)
{
	const struct layout *l = x->walk->input.layout;

	return read_types(x, slot - l->finalizer_arg.offset + l->finalizer_fint.offset,
			  slot - l->finalizer_arg.offset + l->finalizer_ot.offset, ret_pointer);
}

struct error *finalizer_name(struct reference_walk *walk, type_id pointer, const char **ret)
{
	static const char before[] = "finalizer of (", after[] = ")";
	const char *type = go_type_at(walk->input.types, pointer)->name;
	struct made_name *names;
	char *name;

	*ret = "finalizer";
	if (pointer == TYPE_UNKNOWN)
		return NULL;
	for (size_t i = 0; i < walk->made_name_count; i++) {
		*ret = walk->made_names[i].name;
		if (walk->made_names[i].type == pointer)
			return NULL;
	}
	names = realloc(walk->made_names, (walk->made_name_count + 1) * sizeof(*names));
	if (!names)
		return &error_nomem;
	walk->made_names = names;
	name = malloc(sizeof(before) + strlen(type) + sizeof(after));
	if (!name)
		return &error_nomem;
	sprintf(name, "%s%s%s", before, type, after);
	names[walk->made_name_count++] = (struct made_name){ pointer, name };
	*ret = name;
	return NULL;
}

/* ---- cleanups ---- */

static const struct go_field *find_field(const struct go_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->field_count; i++)
		if (!strcmp(type->fields[i].name, name))
			return &type->fields[i];
	return NULL;
}

/* AddCleanup's variables are of shapes ("go.shape.*uint8"), which no pointer is. */
static bool is_by_reference(const struct go_types *types, const struct go_field *field)
{
	return go_type_at(types, field->type)->name[0] == '*';
}

/* What the function takes that a closure of AddCleanup's at addr has captured. */
static struct error *find_captured_param(struct expander *x, taddr addr,
					 const struct go_field *cleanup, type_id *ret)
{
	struct go_types *types = x->walk->input.types;
	taddr slot = addr + cleanup->offset;
	uint64_t code = 0;
	struct error *err = NULL;

	if (is_by_reference(types, cleanup))
		err = read_word(x, slot, &slot);
	if (!err)
		err = read_code(x, slot, &code);
	return err ? err : go_types_first_param(types, code, ret);
}

static struct error *refine_closure(struct expander *x, taddr addr, type_id closure, shape_id *ret)
{
	struct go_types *types = x->walk->input.types;
	const struct go_type *type = go_type_at(types, closure);
	const struct go_field *cleanup = find_field(type, "cleanup");
	const struct go_field *arg = find_field(type, "arg");
	type_id param = TYPE_UNKNOWN, refined = TYPE_UNKNOWN;
	struct error *err = NULL;

	if (cleanup && arg)
		err = find_captured_param(x, addr, cleanup, &param);
	if (err || param == TYPE_UNKNOWN)
		return err;
	if (is_by_reference(types, arg))
		err = go_types_pointer_to(types, param, &param);
	if (!err)
		err = go_types_refined(types, closure, (uint32_t)(arg - type->fields), param,
				       &refined);
	if (!err && refined != TYPE_UNKNOWN)
		*ret = shape_of(SHAPE_CLOSURE, refined);
	return err;
}

/* To go1.25: a closure of AddCleanup's, with the type of what the function takes. */
static struct error *find_captured_argument(struct expander *x, taddr slot, shape_id *ret)
{
	static const char closure_of[] = "closure of runtime.AddCleanup[";
	struct go_types *types = x->walk->input.types;
	type_id closure = TYPE_UNKNOWN;
	uint64_t addr, code = 0;
	struct error *err = read_word(x, slot, &addr);

	if (!err)
		err = read_word(x, addr, &code);
	if (!err)
		err = go_types_by_closure(types, code, &closure);
	if (err ||
	    strncmp(go_type_at(types, closure)->name, closure_of, sizeof(closure_of) - 1) != 0)
		return err;
	return refine_closure(x, addr, closure, ret);
}

/* Since go1.26: the words look alike. It is the argument if both before it are functions. */
static struct error *find_argument(struct expander *x, taddr slot, shape_id *ret)
{
	type_id param = TYPE_UNKNOWN;
	uint64_t call, fn;
	struct error *err = read_code(x, slot - 16, &call);

	if (!err)
		err = read_code(x, slot - 8, &fn);
	if (err || !call || !fn)
		return err;
	err = go_types_first_param(x->walk->input.types, fn, &param);
	*ret = param == TYPE_UNKNOWN ? (shape_id)SHAPE_UNTYPED : shape_of(SHAPE_VALUE, param);
	return err;
}

static struct error *cleanup_shape(struct expander *x, taddr slot, shape_id *ret)
{
	*ret = shape_of(SHAPE_FUNC, TYPE_UNKNOWN);
	return layout_has(x->walk->input.layout, cleanup_fn) ? find_argument(x, slot, ret)
							     : find_captured_argument(x, slot, ret);
}

struct error *special_root_find(struct expander *x, const struct heap_root *root, const char **name,
				shape_id *ret)
{
	struct reference_walk *walk = x->walk;
	type_id pointer = TYPE_UNKNOWN;
	struct error *err = NULL;

	*ret = SHAPE_UNTYPED;
	switch ((enum root_kind)root->kind) {
	case ROOT_FINALIZER:
		*ret = shape_of(SHAPE_FUNC, TYPE_UNKNOWN);
		err = finalizer_type(
		    x, root->slot - walk->input.layout->special_finalizer_fn.offset, &pointer);
		return err ? err : finalizer_name(walk, pointer, name);
	case ROOT_FINALIZER_QUEUE:
		/* In go1.24 cleanups wait here, too. */
		err = cleanup_shape(x, root->slot, ret);
		if (!err)
			err = queued_type(x, root->slot, &pointer);
		if (!err && pointer != TYPE_UNKNOWN)
			*ret = shape_of(SHAPE_VALUE, go_type_at(walk->input.types, pointer)->elem);
		return err;
	case ROOT_CLEANUP:
	case ROOT_CLEANUP_QUEUE:
		return cleanup_shape(x, root->slot, ret);
	default:
		return NULL;
	}
}
