#include "agent/report/object_type.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/reference_walk.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/message.h"

static const char array_prefix[] = "[]";

enum object_state object_state(const struct analysed *analysed, uint32_t object)
{
	if (mark_is_live(analysed->mark, object))
		return OBJECT_LIVE;
	return mark_is_finalizable(analysed->mark, object) ? OBJECT_FINALIZABLE : OBJECT_GARBAGE;
}

const char *object_state_name(enum object_state state)
{
	switch (state) {
	case OBJECT_LIVE:
		return "live";
	case OBJECT_FINALIZABLE:
		return "finalizable";
	default:
		return "garbage";
	}
}

/* A header names the type of elements, too: what fills no more than half the slot is one. */
static bool is_array_of(uint64_t size, uint64_t room)
{
	return size && size <= room / 2;
}

/* That it cannot be read, or is no type, means that nothing is known. */
static struct error *forgive(struct error *err)
{
	switch (err ? error_code(err) : ERROR_FAULT) {
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
		error_free(err);
		return NULL;
	default:
		return err;
	}
}

static struct error *type_by_itself(const struct analysed *analysed, uint32_t object,
				    struct object_type *ret)
{
	const struct span *span = span_table_span_of(graph_spans(analysed->graph), object);
	uint64_t room = span->elem_size - object_header_bytes(analysed->layout, span);
	taddr descriptor = 0;
	type_id type = TYPE_UNKNOWN;
	struct error *err = NULL;

	if (analysed->memory)
		err = object_header_type(analysed->memory, analysed->layout, span, object,
					 &descriptor);
	if (!err && descriptor)
		err = go_types_by_descriptor(analysed->types, descriptor, &type);
	if (err)
		return forgive(err);
	ret->type = type;
	ret->is_array =
	    type != TYPE_UNKNOWN && is_array_of(go_type_at(analysed->types, type)->size, room);
	return NULL;
}

struct error *object_type(const struct analysed *analysed, uint32_t object, struct object_type *ret)
{
	*ret = (struct object_type){ .type = TYPE_UNKNOWN };
	if (!mark_is_live(analysed->mark, object))
		return type_by_itself(analysed, object, ret);
	ret->type = reference_walk_type(analysed->walk, object, &ret->is_array);
	return NULL;
}

struct error *object_type_name(const struct go_types *types, struct object_type type,
			       ProtobufCBinaryData *ret)
{
	const char *name = go_type_at(types, type.type)->name;
	size_t prefix = type.is_array ? strlen(array_prefix) : 0, size = strlen(name);
	uint8_t *text = malloc(prefix + size + 1);

	if (!text)
		return &error_nomem;
	memcpy(text, array_prefix, prefix);
	memcpy(text + prefix, name, size);
	*ret = (ProtobufCBinaryData){ .len = prefix + size, .data = text };
	return NULL;
}

bool object_type_has_name(const struct go_types *types, struct object_type type,
			  ProtobufCBinaryData name)
{
	const char *own = go_type_at(types, type.type)->name;
	size_t prefix = type.is_array ? strlen(array_prefix) : 0, size = strlen(own);

	return type.type != TYPE_UNKNOWN && name.len == prefix + size &&
	       memcmp(name.data, array_prefix, prefix) == 0 &&
	       memcmp(name.data + prefix, own, size) == 0;
}
