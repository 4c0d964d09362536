/*
 * Type descriptors of the target (abi.Type, _type before go1.21), as far as the collector needs
 * them: size, pointer mask, and what arrays and structs are made of. Reads go past the memory's
 * cache, so that several threads may do it at once.
 */
#ifndef AGENT_GORUNTIME_GTYPE_H
#define AGENT_GORUNTIME_GTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

/* internal/abi/type.go, Kind; the same numbers since go1.15. */
enum { GTYPE_KIND_ARRAY = 17, GTYPE_KIND_STRUCT = 25 };

enum gtype_mask_form {
	GTYPE_MASK_PLAIN,     /* gc_data is the mask's address */
	GTYPE_MASK_PROGRAM,   /* of a length and a GC program; to go1.23 */
	GTYPE_MASK_ON_DEMAND, /* of a slot for the mask's address; since go1.24 */
};

struct gtype {
	taddr addr;
	uint64_t size;
	uint64_t ptr_bytes; /* of the prefix that holds all pointers; a multiple of 8 */
	taddr gc_data;
	uint8_t kind; /* without flags */
	uint8_t mask_form;
};

/* ERROR_FORMAT for what cannot be a descriptor. */
must_check struct error *gtype_read(struct memory *memory, const struct layout *layout, taddr addr,
				    struct gtype *ret);

/*
 * The pointer mask of a type: one bit for each word of ptr_bytes, in bitmap_words(ptr_bytes / 8)
 * words. Where the runtime has not built the mask yet (GTYPE_MASK_ON_DEMAND) it is built from the
 * type's parts. The caller has made sure that ptr_bytes is a size it can afford.
 */
must_check struct error *gtype_mask_read(struct memory *memory, const struct layout *layout,
					 const struct gtype *type, uint64_t *mask);

/* An array's element type and length. */
must_check struct error *gtype_array(struct memory *memory, const struct layout *layout,
				     const struct gtype *type, taddr *ret_elem, uint64_t *ret_len);

struct gtype_field {
	taddr type;
	uint64_t offset;
};

/* A struct's fields, at most GTYPE_FIELDS_MAX; the caller frees *ret with free(). */
enum { GTYPE_FIELDS_MAX = 1 << 20 };
must_check struct error *gtype_fields(struct memory *memory, const struct layout *layout,
				      const struct gtype *type, struct gtype_field **ret,
				      uint32_t *ret_count);

#endif
