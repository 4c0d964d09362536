/*
 * Made-up type descriptors in a made-up program's memory, in its module's types or, as reflect
 * makes them, elsewhere. For tests of what reads them.
 */
#ifndef TESTS_SUPPORT_FAKE_TYPES_H
#define TESTS_SUPPORT_FAKE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/go_type.h"
#include "tests/support/fake_program.h"

enum {
	FAKE_TYPES = 0x10000000,
	FAKE_TYPES_SIZE = 0x100000,
	FAKE_MADE = 0x20000000, /* what reflect made */
	FAKE_MADE_SIZE = 0x100000,
	FAKE_OFFSETS_MAX = 8, /* names that reflect made */

	FAKE_TFLAG_UNCOMMON = 1,
	FAKE_TFLAG_EXTRA_STAR = 2,
	FAKE_TFLAG_NAMED = 4,
	FAKE_TFLAG_DIRECT = 32,
};

struct fake_types {
	struct fake_program *program;
	struct layout *layout; /* the program's */
	taddr next, next_made;
	bool two_byte_lengths; /* of names: to go1.16 */
	bool has_buckets;      /* of maps: to go1.23 */
	taddr slots;           /* of the map of those: a group or bucket */
	unsigned offset_count; /* of names that reflect made */
};

struct fake_type_field {
	const char *name, *tag;
	taddr type;
	uint64_t offset;
	bool embedded;
};

struct fake_type_method {
	const char *name;
	taddr type;
};

struct fake_descriptor {
	const char *name;    /* as it stands there */
	const char *package; /* of one that has a name */
	uint64_t size, ptr_bytes, length;
	uint32_t hash;
	uint8_t kind, tflag, direction;
	taddr elem, key, bucket;
	uint32_t map_flags;
	const struct fake_type_field *fields;
	const struct fake_type_method *methods;
	const taddr *parameters; /* in, then out */
	uint32_t count;          /* of fields, methods or in-parameters */
	uint32_t out_count;      /* with the bit that says variadic */
	bool made;               /* by reflect */
};

/*
 * Lays out types with swiss maps, maps memory for them and gives the program's module the range.
 * The program is borrowed.
 */
void fake_types_init(struct fake_types *types, struct fake_program *program);

/* Maps have buckets instead. */
void fake_types_use_buckets(struct fake_types *types);

/* Zeroed room among the module's types, or what reflect makes. */
taddr fake_types_room(struct fake_types *types, size_t size, bool made);

taddr fake_types_name(struct fake_types *types, const char *text, const char *tag, uint8_t flags,
		      bool made);

taddr fake_types_add(struct fake_types *types, const struct fake_descriptor *descriptor);

/* The usual: int, a type without a name, a named struct of no fields, a pointer. */
taddr fake_types_int(struct fake_types *types);
taddr fake_types_named(struct fake_types *types, const char *name, const char *package);
taddr fake_types_pointer(struct fake_types *types, const char *name, taddr elem);

/* Changes what a descriptor leads to: for circles. */
void fake_types_set(struct fake_types *types, taddr addr, struct layout_field field,
		    uint64_t value);

/* An itab of a type for an interface. */
taddr fake_types_itab(struct fake_types *types, taddr interface, taddr type, uint32_t hash);

#endif
