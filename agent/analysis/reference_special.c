/*
 * Roots that the runtime keeps for finalizers and cleanups: functions, and objects that wait to be
 * handed to them. The records say of what type an object is: runtime/mheap.go, specialfinalizer
 * {special, fn, nret, fint, ot}; runtime/mfinal.go, finalizer {fn, arg, nret, fint, ot}, where ot
 * is the type of pointers to it, and fint what the function takes. Cleanups only have functions,
 * and what these capture or, since go1.26, their argument.
 */
#include "agent/analysis/reference_special.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/layout.h"

static struct error *read_type(struct expander *x, taddr addr, type_id *ret)
{
	struct item_state there = { .addr = addr, .span = &x->walk->spans[0] };
	const uint64_t *word;
	struct error *err = expander_words(x, &there, 0, 1, &word);

	*ret = TYPE_UNKNOWN;
	return err || !word ? err : expander_type(x, *word, false, ret);
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
		*ret = shape_of(SHAPE_FUNC, TYPE_UNKNOWN);
		err = queued_type(x, root->slot, &pointer);
		if (!err && pointer != TYPE_UNKNOWN)
			*ret = shape_of(SHAPE_VALUE, go_type_at(walk->input.types, pointer)->elem);
		return err;
	case ROOT_CLEANUP:
	case ROOT_CLEANUP_QUEUE:
		*ret = shape_of(SHAPE_FUNC, TYPE_UNKNOWN);
		return NULL;
	default:
		return NULL;
	}
}
