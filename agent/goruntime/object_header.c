#include "agent/goruntime/object_header.h"

#include "agent/goruntime/layout.h"
#include "agent/goruntime/span.h"
#include "proto/base/bytes.h"

static bool is_large(const struct span *span)
{
	return span->span_class >> 1 == 0;
}

uint64_t object_header_bytes(const struct layout *layout, const struct span *span)
{
	const struct layout_constant *size = &layout->const_malloc_header_size;
	const struct layout_constant *least = &layout->const_min_size_for_malloc_header;

	if (span->noscan || is_large(span) || !size->known || !least->known ||
	    span->elem_size <= (uint64_t)least->value)
		return 0;
	return (uint64_t)size->value;
}

struct error *object_header_type(struct memory *memory, const struct layout *layout,
				 const struct span *span, uint32_t object, taddr *ret)
{
	uint8_t word[8];
	struct error *err;

	*ret = span->noscan || span->user_arena ? 0 : span->large_type;
	if (!object_header_bytes(layout, span))
		return NULL;
	err = memory_read_bulk(memory, span_object_addr(span, object), word, sizeof(word));
	if (!err)
		*ret = load_u64le(word);
	return err;
}
