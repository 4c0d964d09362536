/*
 * Meeting types and working them off. A descriptor is read when it is met, so that whoever leads to
 * it knows at once whether there is one and how large its values are; its parts are met later.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type_table.h"

static struct error *grow_details(struct go_types *types)
{
	uint32_t capacity = types->detail_capacity ? 2 * types->detail_capacity : 256;
	struct type_details *details =
	    reallocarray(types->details, capacity, sizeof(*types->details));

	if (!details)
		return &error_nomem;
	types->details = details;
	types->detail_capacity = capacity;
	return NULL;
}

struct error *go_types_add_details(struct go_types *types, type_id *ret,
				   struct type_details **ret_details)
{
	struct error *err = NULL;

	*ret_details = NULL;
	if (types->detail_count == types->detail_capacity)
		err = grow_details(types);
	if (!err)
		err = go_types_add(types, ret);
	if (err || *ret == TYPE_UNKNOWN)
		return err;
	*ret_details = &types->details[types->detail_count++];
	**ret_details = (struct type_details){ .id = *ret };
	go_types_entry(types, *ret)->state = TYPE_MET;
	go_types_entry(types, *ret)->details = types->detail_count;
	return NULL;
}

struct error *go_types_add_part(struct go_types *types, uint32_t place, uint32_t capacity,
				type_id part)
{
	struct type_details *details = &types->details[place];

	if (!details->parts) {
		details->parts = malloc(capacity * sizeof(*details->parts));
		if (!details->parts)
			return &error_nomem;
	}
	details->parts[details->part_count++] = part;
	types->part_count++;
	return NULL;
}

/* What is known of a descriptor before its parts are. */
static void set_facts(struct go_type *type, const struct rtype *rtype)
{
	type->size = rtype->size;
	type->ptr_bytes = rtype->ptr_bytes;
	type->length = rtype->length;
	type->descriptor = rtype->addr;
	type->kind = rtype->kind;
	type->has_methods = rtype->kind == GO_KIND_INTERFACE && rtype->item_count;
	type->indirect_key = rtype->indirect_key;
	type->indirect_elem = rtype->indirect_elem;
	type->direct_interface = rtype->direct_interface;
}

static struct error *add_descriptor(struct go_types *types, const struct rtype *rtype,
				    char **string, type_id *ret)
{
	struct type_details *details;
	struct error *err = go_types_add_details(types, ret, &details);

	if (err || !details)
		return err;
	details->rtype = *rtype;
	details->string = take(*string);
	set_facts(&go_types_entry(types, *ret)->type, rtype);
	return NULL;
}

struct error *go_types_meet_descriptor(struct go_types *types, taddr descriptor, type_id *ret)
{
	char *string scoped(freep) = NULL;
	struct rtype rtype;
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (!descriptor || go_types_known(&types->by_descriptor, descriptor, ret))
		return NULL;
	err = rtype_read(&types->source, descriptor, &rtype);
	if (!err)
		err = rtype_string(&types->source, &rtype, &string);
	if (!err)
		err = add_descriptor(types, &rtype, &string, ret);
	if (err && go_types_is_final(err))
		return err;
	error_free(err);
	return go_types_remember(&types->by_descriptor, descriptor, *ret);
}

static struct error *add_number(struct go_types *types, uint32_t number,
				const struct indexed_type *indexed, type_id *ret)
{
	struct type_details *details;
	struct error *err = go_types_add_details(types, ret, &details);
	struct go_type *type;

	if (err || !details)
		return err;
	details->origin = TYPE_OF_INDEX;
	details->number = number;
	type = &go_types_entry(types, *ret)->type;
	type->size = indexed->size;
	type->length = indexed->length;
	type->kind = indexed->kind > GO_KIND_UNSAFE_POINTER ? GO_KIND_INVALID : indexed->kind;
	type->has_methods = indexed->has_methods;
	return NULL;
}

struct error *go_types_meet_number(struct go_types *types, uint32_t number, type_id *ret)
{
	struct indexed_type indexed;
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (!number || number >= types->number_count)
		return NULL;
	if (types->by_number[number]) {
		*ret = types->by_number[number] - 1;
		return NULL;
	}
	err = type_index_type(types->index, number, &indexed);
	if (!err && indexed.descriptor)
		err = go_types_meet_descriptor(types, indexed.descriptor + types->bias, ret);
	if (!err && *ret == TYPE_UNKNOWN)
		err = add_number(types, number, &indexed, ret);
	if (err && go_types_is_final(err))
		return err;
	error_free(err);
	types->by_number[number] = *ret + 1;
	return NULL;
}

/* Ids whose names or pointers are to be worked out first, the next of which is at the end. */
struct order {
	type_id *ids;
	size_t count, capacity;
};

static struct error *push(struct order *order, type_id id)
{
	if (order->count == order->capacity) {
		size_t capacity = order->capacity ? 2 * order->capacity : 64;
		type_id *ids = reallocarray(order->ids, capacity, sizeof(*ids));

		if (!ids)
			return &error_nomem;
		order->ids = ids;
		order->capacity = capacity;
	}
	order->ids[order->count++] = id;
	return NULL;
}

/* A type that has a name needs none of its parts for it. */
static bool needs_parts(const struct type_details *details)
{
	return details->origin != TYPE_OF_DESCRIPTOR || !details->rtype.named;
}

/* Parts first; one that has begun leads back to itself, and has to do without. */
static struct error *push_parts(struct go_types *types, const struct type_details *details,
				struct order *order)
{
	struct error *err = NULL;

	if (!needs_parts(details))
		return NULL;
	for (uint32_t i = 0; i < details->part_count && !err; i++)
		if (go_types_entry(types, details->parts[i])->state == TYPE_MET)
			err = push(order, details->parts[i]);
	return err;
}

static struct error *finish_in_order(struct go_types *types, struct order *order)
{
	struct error *err = NULL;

	while (order->count && !err) {
		struct type_entry *entry = go_types_entry(types, order->ids[order->count - 1]);
		const struct type_details *details = &types->details[entry->details - 1];

		if (entry->state == TYPE_MET) {
			entry->state = TYPE_BEGUN;
			err = push_parts(types, details, order);
			continue;
		}
		if (entry->state == TYPE_BEGUN)
			err = go_types_finish(types, entry, details);
		entry->state = TYPE_DONE;
		order->count--;
	}
	return err;
}

static void drop_details(struct go_types *types)
{
	for (uint32_t i = 0; i < types->detail_count; i++) {
		struct type_entry *entry = go_types_entry(types, types->details[i].id);

		entry->state = TYPE_DONE;
		entry->details = 0;
		free(types->details[i].string);
		free(types->details[i].parts);
	}
	types->detail_count = types->details_done = 0;
	types->part_count = 0;
}

static struct error *fill(struct go_types *types, uint32_t place)
{
	switch (types->details[place].origin) {
	case TYPE_OF_DESCRIPTOR:
		return go_types_fill_descriptor(types, place);
	case TYPE_OF_INDEX:
		return go_types_fill_number(types, place);
	default:
		return NULL;
	}
}

struct error *go_types_work_off(struct go_types *types)
{
	struct order order = { 0 };
	struct error *err = NULL;

	while (types->details_done < types->detail_count && !err)
		err = fill(types, types->details_done++);
	for (uint32_t i = 0; i < types->detail_count && !err; i++) {
		err = push(&order, types->details[i].id);
		if (!err)
			err = finish_in_order(types, &order);
	}
	free(order.ids);
	drop_details(types);
	return err;
}
