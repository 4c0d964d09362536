#include "agent/analysis/reference_sudog.h"

#include <string.h>

#include "agent/goruntime/layout.h"

bool sudog_is(const struct go_type *type)
{
	return type->kind == GO_KIND_STRUCT && !strcmp(type->name, "runtime.sudog");
}

/* Of a channel that was met as one. */
static type_id met_elem_type(const struct reference_walk *walk, taddr addr)
{
	uint32_t object = span_lookup_object(walk->lookup, addr);
	shape_id shape =
	    object == OBJECT_NONE ? SHAPE_UNMET : state_shape(state_load(&walk->states[object]));

	return shape_kind(shape) == SHAPE_CHANNEL
		   ? go_type_at(walk->input.types, shape_type(shape))->elem
		   : TYPE_UNKNOWN;
}

/*
 * Of the elements of the channel at addr. One without pointers in its buffer is not in a copy of
 * the heap: then it is known if something has led to it before.
 */
static struct error *elem_type(struct expander *x, taddr addr, type_id *ret)
{
	const struct layout *layout = x->walk->input.layout;
	uint64_t descriptor;
	bool is_read;
	struct error *err =
	    expander_word(x, addr + layout->hchan_elem_type.offset, &descriptor, &is_read);

	*ret = TYPE_UNKNOWN;
	if (!err && is_read)
		err = expander_type(x, descriptor, false, ret);
	if (!err && *ret == TYPE_UNKNOWN)
		*ret = met_elem_type(x->walk, addr);
	return err;
}

static struct error *refine_elem(struct expander *x, type_id sudog, type_id elem, type_id *ret)
{
	struct go_types *types = x->walk->input.types;
	const struct go_type *type = go_type_at(types, sudog), *field;
	uint32_t i = 0;
	type_id refined;
	struct error *err = go_types_pointer_to(types, elem, &refined);

	while (i < type->field_count && strcmp(type->fields[i].name, "elem") != 0)
		i++;
	if (err || i == type->field_count)
		return err;
	/* Since go1.26 it is a struct of the pointer and the same as a number. */
	field = go_type_at(types, type->fields[i].type);
	if (field->kind == GO_KIND_STRUCT)
		err = go_types_refined(types, type->fields[i].type, 0, refined, &refined);
	if (!err && refined != TYPE_UNKNOWN)
		err = go_types_refined(types, sudog, i, refined, &refined);
	if (!err && refined != TYPE_UNKNOWN)
		*ret = refined;
	return err;
}

struct error *sudog_type(struct expander *x, struct item_state *state, uint64_t offset,
			 type_id sudog, type_id *ret)
{
	const struct layout *layout = x->walk->input.layout;
	type_id elem = TYPE_UNKNOWN;
	uint64_t channel;
	bool is_read;
	struct error *err = expander_word(x, state->addr + offset + layout->sudog_channel.offset,
					  &channel, &is_read);

	*ret = sudog;
	if (!err && channel)
		err = elem_type(x, channel, &elem);
	return err || elem == TYPE_UNKNOWN ? err : refine_elem(x, sudog, elem, ret);
}
