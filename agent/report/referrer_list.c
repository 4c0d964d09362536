/*
 * The graph knows which objects point to which; in which of its words one does is read from its
 * memory, and what that word is called is told by its type.
 */
#include "agent/report/referrer_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/variable_table.h"
#include "agent/report/analysed.h"
#include "agent/report/field_path.h"
#include "agent/report/message.h"
#include "proto/base/bytes.h"

enum { WORD = 8, CHUNK_WORDS = 4096 };

struct search {
	const struct analysed *analysed;
	Goheapd__Object *message;
	uint32_t object;
	taddr start, end; /* of its slot */
	bool is_live;
	uint8_t chunk[CHUNK_WORDS * WORD];
};

/* NULL in *ret: there are too many already. */
static struct error *add_referrer(struct search *search, Goheapd__Referrer **ret)
{
	Goheapd__Object *message = search->message;
	Goheapd__Referrer *referrer;
	struct error *err;

	*ret = NULL;
	if (message->n_referrers == REFERRER_LIST_MAX) {
		message->referrers_cut = true;
		return NULL;
	}
	err = message_reserve((void ***)&message->referrers, message->n_referrers);
	if (err)
		return err;
	referrer = malloc(sizeof(*referrer));
	if (!referrer)
		return &error_nomem;
	goheapd__referrer__init(referrer);
	message->referrers[message->n_referrers++] = referrer;
	*ret = referrer;
	return NULL;
}

/* ---- roots ---- */

static struct error *name_of_root(const struct variable *variable, const struct go_types *types,
				  taddr slot, ProtobufCBinaryData *ret)
{
	struct field_path path = { .size = 0 };
	uint64_t offset;

	field_path_add_field(&path, variable->name);
	if (variable_offset(variable, slot, &offset)) {
		struct object_type type = { .type = variable->type };

		field_path_find(&path, types, type, offset);
	}
	return message_bytes(path.text, path.size, ret);
}

/* The same variable of many frames is told once. */
static bool is_listed(const struct search *search, ProtobufCBinaryData name)
{
	for (size_t i = 0; i < search->message->n_referrers; i++) {
		const Goheapd__Referrer *listed = search->message->referrers[i];

		if (!listed->has_address && listed->field.len == name.len &&
		    (!name.len || memcmp(listed->field.data, name.data, name.len) == 0))
			return true;
	}
	return false;
}

static struct error *fill_root(struct search *search, const struct variable *variable,
			       ProtobufCBinaryData name)
{
	const struct go_types *types = search->analysed->types;
	Goheapd__Referrer *referrer;
	struct error *err = add_referrer(search, &referrer);

	if (err || !referrer) {
		free(name.data);
		return err;
	}
	referrer->has_field = true;
	referrer->field = name;
	referrer->has_type = variable->type != TYPE_UNKNOWN;
	if (!referrer->has_type)
		return NULL;
	err = message_text(go_type_at(types, variable->type)->name, &referrer->type);
	referrer->has_type = !err;
	return err;
}

static struct error *list_root(struct search *search, const struct heap_root *root)
{
	const struct analysed *a = search->analysed;
	struct variable variable;
	ProtobufCBinaryData name = { 0 };
	struct error *err;

	variable_table_find(a->variables, (enum root_kind)root->kind, root->goroutine, root->slot,
			    &variable);
	err = name_of_root(&variable, a->types, root->slot, &name);
	if (err)
		return err;
	if (is_listed(search, name)) {
		free(name.data);
		return NULL;
	}
	return fill_root(search, &variable, name);
}

static struct error *list_roots(struct search *search)
{
	const struct root_set *roots = search->analysed->roots;
	struct error *err = NULL;

	for (uint64_t i = 0; !err && i < root_set_count(roots); i++) {
		const struct heap_root *root = root_set_at(roots, i);

		if (root->object == search->object)
			err = list_root(search, root);
	}
	return err;
}

/* ---- objects ---- */

static struct error *list_word(struct search *search, taddr address, struct object_type type,
			       const struct field_path *path)
{
	Goheapd__Referrer *referrer;
	struct error *err = add_referrer(search, &referrer);

	if (err || !referrer)
		return err;
	referrer->has_address = true;
	referrer->address = address;
	if (type.type != TYPE_UNKNOWN) {
		err = object_type_name(search->analysed->types, type, &referrer->type);
		referrer->has_type = !err;
	}
	if (!err && path && path->size) {
		err = message_bytes(path->text, path->size, &referrer->field);
		referrer->has_field = !err;
	}
	return err;
}

/* A word that leads to the object, unless its type says that it is no pointer. */
static struct error *look_at_word(struct search *search, taddr address, struct object_type type,
				  uint64_t offset, uint32_t *found)
{
	struct field_path path = { .size = 0 };
	type_id field = field_path_find(&path, search->analysed->types, type, offset);

	if (!field_type_may_point(search->analysed->types, field))
		return NULL;
	++*found;
	return list_word(search, address, type, &path);
}

/* That the bytes were not kept is no error. */
static struct error *read_chunk(struct search *search, taddr addr, size_t size, bool *ret_there)
{
	struct memory *memory = search->analysed->memory;
	struct error *err = memory ? memory_read_bulk(memory, addr, search->chunk, size) : NULL;

	*ret_there = memory && !err;
	if (!err || error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	return NULL;
}

static struct error *look_through(struct search *search, taddr address, uint64_t size,
				  struct object_type type, uint32_t wanted)
{
	uint32_t found = 0;
	bool there = true;
	struct error *err = NULL;

	for (uint64_t at = 0; !err && there && at < size && found < wanted;
	     at += sizeof(search->chunk)) {
		uint64_t left = size - at;
		size_t part = left < sizeof(search->chunk) ? (size_t)left : sizeof(search->chunk);

		err = read_chunk(search, address + at, part, &there);
		for (size_t i = 0; !err && there && i + WORD <= part && found < wanted; i += WORD) {
			taddr word = load_u64le(search->chunk + i);

			if (word >= search->start && word < search->end)
				err = look_at_word(search, address, type, at + i, &found);
		}
	}
	if (err || found)
		return err;
	return list_word(search, address, type, NULL);
}

static struct error *list_object(struct search *search, const struct span *span, uint32_t from,
				 uint32_t wanted)
{
	const struct analysed *a = search->analysed;
	uint64_t header = object_header_bytes(a->layout, span);
	taddr address = span_object_addr(span, from) + header;
	struct object_type type;
	struct error *err = object_type(a, from, &type);

	return err ? err : look_through(search, address, span->elem_size - header, type, wanted);
}

static bool has_finalizer(const struct special_table *specials, uint32_t object)
{
	for (uint32_t i = 0; i < special_table_count(specials); i++) {
		const struct special *special = special_table_at(specials, i);

		if (special->object == object && special->kind == SPECIAL_FINALIZER)
			return true;
	}
	return false;
}

/* How many pointers to the object it holds. */
static uint32_t count_edges(const struct search *search, uint32_t from)
{
	uint32_t count, found = 0;
	const uint32_t *edges = graph_edges(search->analysed->graph, from, &count);

	for (uint32_t i = 0; i < count; i++)
		found += edges[i] == search->object;
	return found;
}

static struct error *look_at_object(struct search *search, const struct span *span, uint32_t from)
{
	const struct analysed *a = search->analysed;
	uint32_t edges = count_edges(search, from);

	if (!edges ||
	    (search->is_live && !mark_is_live(a->mark, from) && !has_finalizer(a->specials, from)))
		return NULL;
	return list_object(search, span, from, edges);
}

static struct error *list_objects(struct search *search)
{
	const struct span_table *spans = graph_spans(search->analysed->graph);
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < span_table_count(spans); i++) {
		const struct span *span = span_table_at(spans, i);

		if (span->state != SPAN_IN_USE || span->noscan)
			continue;
		for (uint32_t slot = 0; !err && slot < span->elem_count; slot++)
			if (span_slot_allocated(spans, span, slot))
				err = look_at_object(search, span, span->first_object + slot);
		if (search->message->referrers_cut)
			break;
	}
	return err;
}

struct error *referrer_list_fill(const struct analysed *analysed, uint32_t object,
				 Goheapd__Object *message)
{
	const struct span *span = span_table_span_of(graph_spans(analysed->graph), object);
	struct search *search scoped(freep) = calloc(1, sizeof(*search));
	struct error *err;

	if (!search)
		return &error_nomem;
	search->analysed = analysed;
	search->message = message;
	search->object = object;
	search->start = span_object_addr(span, object);
	search->end = search->start + span->elem_size;
	search->is_live = mark_is_live(analysed->mark, object);
	message->has_referrers_cut = true;
	err = list_roots(search);
	return err ? err : list_objects(search);
}
