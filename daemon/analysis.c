#include "daemon/analysis.h"

#include <string.h>

/* The message as it is on the wire, where what means the same is the same. NULL without memory. */
static uint8_t *pack(const ProtobufCMessage *message, size_t *ret_size)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = malloc(size + 1);

	if (packed)
		*ret_size = protobuf_c_message_pack(message, packed);
	return packed;
}

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t size_a = 0, size_b = 0;
	uint8_t *packed_a scoped(freep) = pack(a, &size_a);
	uint8_t *packed_b scoped(freep) = pack(b, &size_b);

	return packed_a && packed_b && size_a == size_b && memcmp(packed_a, packed_b, size_a) == 0;
}

bool analysis_equal(const Goheapd__Analysis *a, const Goheapd__Analysis *b)
{
	return a && b ? same_message(&a->base, &b->base) : a == b;
}

static bool part_answers(const void *had, const void *wanted)
{
	return !wanted || (had && same_message(had, wanted));
}

bool analysis_answers(const Goheapd__Analysis *had, const Goheapd__Analysis *wanted)
{
	if (!had || !wanted)
		return !wanted;
	return part_answers(had->profile, wanted->profile) &&
	       part_answers(had->histogram, wanted->histogram) &&
	       part_answers(had->objects, wanted->objects) &&
	       part_answers(had->object, wanted->object) &&
	       part_answers(had->dominators, wanted->dominators) &&
	       (had->goroutine_retained || !wanted->goroutine_retained) &&
	       (had->label_types || !wanted->label_types) &&
	       (!wanted->has_globals || (had->has_globals && had->globals >= wanted->globals));
}

struct error *analysis_copy(const Goheapd__Analysis *analysis, Goheapd__Analysis **ret,
			    size_t *ret_size)
{
	size_t size = 0;
	uint8_t *packed scoped(freep) = pack(&analysis->base, &size);
	Goheapd__Analysis *copy = packed ? goheapd__analysis__unpack(NULL, size, packed) : NULL;

	if (!copy)
		return &error_nomem;
	*ret = copy;
	*ret_size = size;
	return NULL;
}

void analysis_free(Goheapd__Analysis *analysis)
{
	if (analysis)
		goheapd__analysis__free_unpacked(analysis, NULL);
}
