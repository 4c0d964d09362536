/*
 * The inside of the table of types, for the files that implement it. A type is met, which gives it
 * a number and puts it on a list; then the list is worked off, which may meet further types; when
 * it is empty, everything that was met has its facts, and what needs the facts of others (names
 * that are made of names, pointers of structs that only DWARF knows) is worked out. Nothing here
 * recurses into types, since they lead in circles and may come from anywhere.
 */
#ifndef AGENT_GORUNTIME_GO_TYPE_TABLE_H
#define AGENT_GORUNTIME_GO_TYPE_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/go_type.h"
#include "agent/goruntime/reflect_offsets.h"
#include "agent/goruntime/rtype.h"
#include "agent/goruntime/text_pool.h"
#include "agent/goruntime/type_memory.h"
#include "proto/base/error.h"

struct closure_sites;
struct type_index;

enum {
	GO_TYPES_SEGMENT = 4096,
	GO_TYPES_SEGMENTS = 256,       /* a million types; the largest programs have 100,000 */
	GO_TYPES_BITS = 20,            /* of their numbers */
	GO_TYPES_POOL_MAX = 512 << 20, /* bytes of names and fields */
	GO_TYPES_FIELDS_MAX = 1 << 22, /* of all types */
	GO_TYPES_PARTS_MAX = 1 << 23,  /* of all types worked out at a time */
	GO_TYPES_RUNTIME_STRUCTS = 8,
};

/* How far a type is: its name and pointers may have to wait for those of others. */
enum type_state { TYPE_MET, TYPE_BEGUN, TYPE_DONE };

struct type_entry {
	struct go_type type;
	uint8_t state;
	bool is_plain; /* its name is the descriptor's: no package path is longer than its name */
	uint32_t details; /* of types being worked out: place in go_types.details, + 1 */
};

/* Who tells of a type. */
enum type_origin {
	TYPE_OF_DESCRIPTOR,
	TYPE_OF_INDEX,
	TYPE_MADE, /* by us, with all facts but its pointers */
};

/* What a type consists of, while it is worked out. */
struct type_details {
	type_id id;
	uint8_t origin;
	uint32_t number;           /* in the index */
	struct rtype rtype;        /* of a descriptor */
	const struct go_type *map; /* of a bucket made for it */
	char *string;              /* the descriptor's own name */
	type_id *parts;            /* whose names or pointers are needed */
	uint32_t part_count;
};

struct go_types {
	pthread_rwlock_t lock;
	struct type_memory memory;
	struct rtype_source source;
	struct reflect_offsets reflect_offsets;
	const struct layout *layout;
	const struct module_table *modules;
	const struct type_index *index; /* NULL: no DWARF */
	uint64_t bias;
	struct text_pool pool; /* names, fields */
	struct type_entry *segments[GO_TYPES_SEGMENTS];
	uint32_t count;
	uint64_t field_count;
	/* Numbers + 1 of types, as pointers. */
	struct addr_map by_descriptor, by_itab, by_closure, pointers_to, refined;
	uint32_t *by_number; /* likewise, by number in the index */
	uint32_t number_count;
	type_id basic[GO_KIND_UNSAFE_POINTER + 1]; /* by kind; 0: not made yet */
	type_id runtime_structs[GO_TYPES_RUNTIME_STRUCTS];
	struct type_details *details;
	uint32_t detail_count, detail_capacity, details_done;
	uint64_t part_count;         /* of all details */
	struct closure_sites *sites; /* NULL: nobody has asked, or memory was gone by then */
};

struct type_entry *go_types_entry(const struct go_types *types, type_id id);

/* A new type that nothing is known of; TYPE_UNKNOWN where the table is full. */
must_check struct error *go_types_add(struct go_types *types, type_id *ret);

/* The same, with details to be worked out. */
must_check struct error *go_types_add_details(struct go_types *types, type_id *ret,
					      struct type_details **ret_details);

/* A type found by an address that one of the maps knows; false if it was not met. */
bool go_types_known(const struct addr_map *map, taddr addr, type_id *ret);
must_check struct error *go_types_remember(struct addr_map *map, taddr addr, type_id id);

/* Errors that are about the bytes read, not about reading them: the type is unknown. */
bool go_types_is_final(const struct error *err);

/* Meets a type: its number, before its facts are there. What is none is TYPE_UNKNOWN. */
must_check struct error *go_types_meet_descriptor(struct go_types *types, taddr descriptor,
						  type_id *ret);
must_check struct error *go_types_meet_number(struct go_types *types, uint32_t number,
					      type_id *ret);

must_check struct error *go_types_meet_closure(struct go_types *types, taddr code, type_id *ret);
/* Reads the code of all modules for what closures are allocated as, if that is still to be had. */
must_check struct error *go_types_read_sites(struct go_types *types);
must_check struct error *go_types_meet_name(struct go_types *types, const char *name, type_id *ret);

/* Struct, field and type of field in one number, + 1; 0 if they are too large. */
static inline uint64_t go_types_refined_key(type_id type, uint32_t field, type_id of_field)
{
	const unsigned bits = GO_TYPES_BITS;

	if (type >> bits || field >> bits || of_field >> bits)
		return 0;
	return ((uint64_t)type << 2 * bits | (uint64_t)field << bits | of_field) + 1;
}

must_check struct error *go_types_meet_refined(struct go_types *types, uint64_t key, type_id *ret);

/* The pointer type to elem; key is elem + 1. */
must_check struct error *go_types_meet_pointer(struct go_types *types, uint64_t key, type_id *ret);

/*
 * The struct of a map's slots where nobody describes it, for a map whose keys and values are met:
 * the map's bucket stays unknown where that cannot be told.
 */
must_check struct error *go_types_make_bucket(struct go_types *types, struct go_type *map);

/* A type without parts, as the universe has it: uintptr, unsafe.Pointer ... */
must_check struct error *go_types_basic(struct go_types *types, enum go_kind kind, type_id *ret);

/* A name made of two pieces, in the pool. */
must_check struct error *go_types_join(struct go_types *types, const char *before,
				       const char *after, const char **ret);

/* Notes a part of a type under way; capacity is how many it will have at most. */
must_check struct error *go_types_add_part(struct go_types *types, uint32_t place,
					   uint32_t capacity, type_id part);

/* Works off what was met. */
must_check struct error *go_types_work_off(struct go_types *types);

/* The facts of one type, whose parts are met. */
must_check struct error *go_types_fill_descriptor(struct go_types *types, uint32_t place);
must_check struct error *go_types_fill_number(struct go_types *types, uint32_t place);

/* What needs the facts of others. */
must_check struct error *go_types_finish(struct go_types *types, struct type_entry *entry,
					 const struct type_details *details);

/* The name of a type that a descriptor tells of; parts that have none yet are as they call
 * themselves. */
must_check struct error *go_types_name(struct go_types *types, const struct type_details *details,
				       const char **ret, bool *ret_is_plain);

/* Room for fields within the limits; NULL in *ret beyond them. */
must_check struct error *go_types_fields(struct go_types *types, uint32_t count,
					 struct go_field **ret);

#endif
