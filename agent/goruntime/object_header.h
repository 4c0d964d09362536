/*
 * What an object of the heap says of itself: the type in front of it or in its span, since go1.22
 * and of objects with pointers alone. The header is part of the slot, but not of the object: what
 * the program calls the object's address lies behind it. runtime/mbitmap.go, heapSetType*.
 */
#ifndef AGENT_GORUNTIME_OBJECT_HEADER_H
#define AGENT_GORUNTIME_OBJECT_HEADER_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct span;

/* Bytes in front of each of the span's objects, within its slot: 0 or 8. */
uint64_t object_header_bytes(const struct layout *layout, const struct span *span);

/*
 * The descriptor of what the object was allocated as, or of its elements; 0: it does not say.
 * memory is read past its cache.
 */
must_check struct error *object_header_type(struct memory *memory, const struct layout *layout,
					    const struct span *span, uint32_t object, taddr *ret);

#endif
