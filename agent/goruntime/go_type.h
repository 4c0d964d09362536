/*
 * Go types of the target, from whatever tells of them: the runtime's own descriptors (every type
 * that was ever allocated or put in an interface has one, also in stripped programs) and DWARF
 * (types of variables, names of captured ones). A type that both know is one type here.
 *
 * The table grows while it is asked, by several threads at a time; what it gave out stays where it
 * is. Its memory is bounded: beyond that many types, all further ones are TYPE_UNKNOWN.
 *
 * runtime/type.go, internal/abi/type.go, reflect/type.go; internal/abi/map_swiss.go,
 * map_noswiss.go.
 */
#ifndef AGENT_GORUNTIME_GO_TYPE_H
#define AGENT_GORUNTIME_GO_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct module_table;
struct type_index;

typedef uint32_t type_id;

enum { TYPE_UNKNOWN = 0 };

/* internal/abi/type.go, Kind; the same numbers since go1.15. */
enum go_kind {
	GO_KIND_INVALID,
	GO_KIND_BOOL,
	GO_KIND_INT,
	GO_KIND_INT8,
	GO_KIND_INT16,
	GO_KIND_INT32,
	GO_KIND_INT64,
	GO_KIND_UINT,
	GO_KIND_UINT8,
	GO_KIND_UINT16,
	GO_KIND_UINT32,
	GO_KIND_UINT64,
	GO_KIND_UINTPTR,
	GO_KIND_FLOAT32,
	GO_KIND_FLOAT64,
	GO_KIND_COMPLEX64,
	GO_KIND_COMPLEX128,
	GO_KIND_ARRAY,
	GO_KIND_CHAN,
	GO_KIND_FUNC,
	GO_KIND_INTERFACE,
	GO_KIND_MAP,
	GO_KIND_POINTER,
	GO_KIND_SLICE,
	GO_KIND_STRING,
	GO_KIND_STRUCT,
	GO_KIND_UNSAFE_POINTER,
};

struct go_field {
	const char *name; /* of an embedded one its type's */
	uint64_t offset;
	type_id type;
};

struct go_type {
	/* As Go prints it, with the whole package path: "main.Order", "map[string]*shop/cart.Item".
	 */
	const char *name;
	uint64_t size;                 /* bytes */
	uint64_t ptr_bytes;            /* of the prefix that holds all pointers */
	uint64_t length;               /* of an array: elements */
	taddr descriptor;              /* 0: none known */
	const struct go_field *fields; /* of a struct, by offset */
	uint32_t field_count;
	type_id elem;          /* of an array, channel, map (its values), pointer or slice */
	type_id key;           /* of a map */
	type_id bucket;        /* of a map: a bucket, or since go1.24 a group of slots: a struct */
	uint8_t kind;          /* enum go_kind */
	bool has_methods;      /* of an interface: its first word is an itab, not a type */
	bool indirect_key;     /* of a map: the slot holds a pointer to the key, */
	bool indirect_elem;    /* to the value */
	bool direct_interface; /* an interface's data word is the value itself, a pointer */
};

struct go_types;

/*
 * index is NULL where there is no DWARF. bias is what must be added to the index's link-time
 * addresses. memory is read past its cache, until go_types_let_go. All arguments are borrowed for
 * the table's life.
 */
must_check struct error *go_types_new(struct memory *memory, const struct layout *layout,
				      const struct module_table *modules,
				      const struct type_index *index, uint64_t bias,
				      struct go_types **ret);
void go_types_free(struct go_types *types);
DEFINE_FREEP(go_types, go_types_free)

/*
 * From now on memory is gone. What the modules' types and the itabs need is copied first, so that
 * they may be met later, too; so are the names that reflect made. Types that reflect made are read
 * from instead, a copy of the heap; where it is NULL or has them not they are TYPE_UNKNOWN, if they
 * were not met so far.
 */
must_check struct error *go_types_let_go(struct go_types *types, struct memory *instead);

/*
 * Belongs to the table. TYPE_UNKNOWN has the kind GO_KIND_INVALID, size 0 and the name "?". Fields
 * lie inside of their struct and elements fill their array, whatever the target says; parts of
 * which nothing is known are TYPE_UNKNOWN. Several types may have one name: local ones of
 * functions, and what a plugin and the program both have.
 */
const struct go_type *go_type_at(const struct go_types *types, type_id id);

/*
 * By the address of a descriptor, by its number in the index, and the dynamic type of an itab.
 * *ret is TYPE_UNKNOWN for what is none; the error is that memory ran out or the target is gone.
 */
must_check struct error *go_types_by_descriptor(struct go_types *types, taddr descriptor,
						type_id *ret);
must_check struct error *go_types_by_index(struct go_types *types, uint32_t number, type_id *ret);
must_check struct error *go_types_by_itab(struct go_types *types, taddr itab, type_id *ret);

/*
 * The struct that a closure of the function at this entry is: the code pointer F, then what is
 * captured, by its name (since go1.22 DWARF alone knows that: else X0, X1 ...), or what a method
 * value (-fm) is of, R. Where nobody tells what is captured: a struct of the code pointer alone.
 */
must_check struct error *go_types_by_closure(struct go_types *types, taddr code, type_id *ret);

/*
 * The first parameter, a receiver included, of the function at this entry; TYPE_UNKNOWN where there
 * is none, or DWARF tells no more than a generic function's shape.
 */
must_check struct error *go_types_first_param(struct go_types *types, taddr code, type_id *ret);

/* The same struct, with another type for one of its fields. */
must_check struct error *go_types_refined(struct go_types *types, type_id type, uint32_t field,
					  type_id of_field, type_id *ret);

/* The type of pointers to a type, which need not exist in the target; a slice's array. */
must_check struct error *go_types_pointer_to(struct go_types *types, type_id elem, type_id *ret);

/*
 * The runtime's own structs by the index or what the layout knows of them: hmap or maps.Map, hchan,
 * sudog and so on ("runtime.hchan"); TYPE_UNKNOWN where only DWARF would tell and there is none.
 * And "func()", whatever the program has.
 */
must_check struct error *go_types_by_name(struct go_types *types, const char *name, type_id *ret);

#endif
