#include "agent/report/object_detail.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/field_list.h"
#include "agent/report/message.h"
#include "agent/report/object_path.h"
#include "agent/report/object_type.h"
#include "agent/report/referrer_list.h"
#include "agent/report/retained.h"

struct error *object_detail_find(const struct analysed *analysed, taddr address, uint32_t *ret)
{
	const struct span_table *spans = graph_spans(analysed->graph);
	uint32_t object = span_table_object(spans, address);
	const struct span *span = object == OBJECT_NONE ? NULL : span_table_span_of(spans, object);

	if (!span || !span_slot_allocated(spans, span, object - span->first_object))
		return error_new(ERROR_NOT_FOUND, "no object of the heap is at 0x%" PRIx64,
				 address);
	*ret = object;
	return NULL;
}

static struct error *fill_identity(const struct analysed *a, const struct span *span,
				   uint32_t object, struct object_type type,
				   Goheapd__Object *message)
{
	enum object_state state = object_state(a, object);
	struct error *err = message_string(object_state_name(state), &message->state);

	message->address = span_object_addr(span, object) + object_header_bytes(a->layout, span);
	message->bytes = span->elem_size;
	message->has_retained_bytes = a->retained && state == OBJECT_LIVE;
	if (message->has_retained_bytes)
		message->retained_bytes =
		    dominators_retained(retained_dominators(a->retained), object);
	if (err || type.type == TYPE_UNKNOWN)
		return err;
	err = object_type_name(a->types, type, &message->type);
	message->has_type = !err;
	return err;
}

static struct error *fill_fields(const struct analysed *a, const struct span *span,
				 struct object_type type, bool contents,
				 Goheapd__ScanResult *result)
{
	const struct field_list_input input = {
		.analysed = a,
		.type = type,
		.address = result->object->address,
		.size = span->elem_size - object_header_bytes(a->layout, span),
		.contents = contents,
	};
	bool unread;
	struct error *err = field_list_fill(&input, result->object, &unread);

	if (err || !unread || !result->scan)
		return err;
	return message_warn(result->scan, "fields_not_kept",
			    "some fields have no value: only what has pointers is kept of a "
			    "process's memory");
}

struct error *object_detail_fill(const struct analysed *analysed, const Goheapd__ObjectQuery *query,
				 Goheapd__ScanResult *result)
{
	const struct span *span;
	struct object_type type;
	uint32_t object;
	struct error *err = object_detail_find(analysed, query->address, &object);

	if (!err)
		err = object_type(analysed, object, &type);
	if (err)
		return err;
	span = span_table_span_of(graph_spans(analysed->graph), object);
	result->object = malloc(sizeof(*result->object));
	if (!result->object)
		return &error_nomem;
	goheapd__object__init(result->object);
	err = fill_identity(analysed, span, object, type, result->object);
	if (!err)
		err = fill_fields(analysed, span, type, query->contents, result);
	if (!err)
		err = referrer_list_fill(analysed, object, result->object);
	if (!err)
		err = object_path_fill(analysed, object, result->object);
	return err;
}
