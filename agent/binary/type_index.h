/*
 * What the DWARF of a Go executable says of the program's own types, variables and closures, parsed
 * once for each binary and kept in a file beside the index of its layout: numbers, offsets and
 * names in tables that are used where they lie. Addresses are link-time. The bytes may be foreign
 * or damaged: every number in them is checked when it is used.
 *
 * A program has one index, and a plugin of its own one more, which joins the program's as another
 * part of it: numbers go on, and addresses are told as if the program had been linked with it.
 *
 * DWARF 4 and 5; cmd/link/internal/ld/dwarf.go and cmd/internal/dwarf/dwarf.go say what Go writes
 * (DW_AT_go_kind, _key, _elem, _runtime_type, _closure_offset ...).
 */
#ifndef AGENT_BINARY_TYPE_INDEX_H
#define AGENT_BINARY_TYPE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct bytes;
struct elf_file;
struct type_index;

enum { TYPE_INDEX_PARTS_MAX = 17 };

struct type_index_files {
	const struct elf_file *executable; /* or plugin */
	const struct elf_file *debug;      /* its debug file; NULL: it has its DWARF itself */
	/* Where its descriptors lie, link-time; 0: the executable itself says so. */
	taddr descriptors, descriptors_end;
};

/*
 * Parses the DWARF entry by entry, so that memory is bounded by the sections and the result.
 * ERROR_NO_DEBUG_INFO, ERROR_FORMAT, ERROR_LIMIT beyond out's limit. Appends to out.
 */
must_check struct error *type_index_build(const struct type_index_files *files, struct bytes *out);

/* ERROR_FORMAT for bytes that are no index. They are borrowed for its life. */
must_check struct error *type_index_open(const void *bytes, size_t size, struct type_index **ret);
/* Another part, to whose addresses shift is added. */
must_check struct error *type_index_add(struct type_index *index, const void *bytes, size_t size,
					uint64_t shift);
void type_index_free(struct type_index *index);
DEFINE_FREEP(type_index, type_index_free)

/*
 * A type by its number; 0 is none. Names lie in the bytes; they are DWARF's, with the whole package
 * path: "main.Order", "map[string]*gopkg.in/yaml.v3.Node", "noalg.struct { F uintptr; X0 int }". A
 * named type and what it is defined as are one type, by that name.
 */
struct indexed_type {
	const char *name;
	uint64_t size, length;
	taddr descriptor; /* 0: none */
	uint32_t elem, key;
	/*
	 * Of a map or channel: the pointer that it is to the runtime, to a struct that DWARF has
	 * for just these types ("hash<string,int>", "map<string,int>", "hchan<int>").
	 */
	uint32_t representation;
	uint32_t first_field, field_count; /* of a struct */
	uint8_t kind; /* of agent/goruntime/go_type.h's numbers; 0: of C, or not known */
	bool has_methods;
};

struct indexed_field {
	const char *name;
	uint64_t offset;
	uint32_t type;
};

uint32_t type_index_type_count(const struct type_index *index); /* highest number + 1 */
must_check struct error *type_index_type(const struct type_index *index, uint32_t number,
					 struct indexed_type *ret);
must_check struct error *type_index_field(const struct type_index *index, uint32_t number,
					  struct indexed_field *ret);
/* 0 if there is none. */
uint32_t type_index_find_name(const struct type_index *index, const char *name);
uint32_t type_index_find_descriptor(const struct type_index *index, taddr descriptor);

/* Global variables ("main.cache"), by address. */
struct indexed_global {
	const char *name;
	taddr addr;
	uint32_t type;
};

uint32_t type_index_global_count(const struct type_index *index);
must_check struct error *type_index_global(const struct type_index *index, uint32_t i,
					   struct indexed_global *ret);

/*
 * Where a variable of a function, or a piece of one, lies while pc is in [start, end): offset is
 * from the frame's CFA (just above the return address), or it is in a general register. Variables
 * that hold no pointers are not told, nor are pieces of others unless they hold one or a word that
 * may say how long something is; and of those that share a place for the same time only the
 * outermost: an inlined function's variable often is one of its caller's.
 *
 * A variable that escaped is told by where its address lies; name and type are its own all the same
 * ("x" and T, where the program has a variable "&x" of type *T).
 */
struct indexed_local {
	const char *name;
	const char *function; /* that declares it: the one that runs, or one inlined into it */
	taddr start, end;
	int64_t offset;        /* in a register: its number, as DWARF counts them */
	uint64_t size;         /* of the piece */
	uint64_t piece_offset; /* in the variable */
	uint32_t type; /* of the whole variable; 0: which piece of it this is cannot be told */
	bool is_heap_address; /* what lies there is the address of the variable, which escaped */
	bool is_spilled;      /* came in registers: that is where the compiler would put it */
	bool is_register;
};

/* Locals of the function at this entry are [*ret_first, *ret_first + *ret_count). */
must_check struct error *type_index_locals(const struct type_index *index, taddr entry,
					   uint32_t *ret_first, uint32_t *ret_count);
must_check struct error *type_index_local(const struct type_index *index, uint32_t i,
					  struct indexed_local *ret);

/* The type of the first parameter, a receiver included, of the function at this entry; 0: none. */
uint32_t type_index_first_param(const struct type_index *index, taddr entry);

/*
 * What a closure of the function at this entry holds after its code pointer, by offset, with the
 * names of the variables. DWARF tells it since go1.23, before that it is seen from the code;
 * neither has what is not used, or never copied out of the closure. The type is that of the field:
 * *T if a T was captured by reference. Of a last field it may be *T where it is a T of more than a
 * word that the compiler does not take apart: the descriptor of the closure, where there is one,
 * knows better.
 */
must_check struct error *type_index_captures(const struct type_index *index, taddr entry,
					     uint32_t *ret_first, uint32_t *ret_count);
uint32_t type_index_capture_count(const struct type_index *index); /* of all functions */
must_check struct error *type_index_capture(const struct type_index *index, uint32_t i,
					    struct indexed_field *ret);

#endif
