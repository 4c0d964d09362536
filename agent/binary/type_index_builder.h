/*
 * What is gathered from DWARF until it becomes an index: records as in the index, but with types
 * told by the offset of their entry in debug_info, since entries refer forward, too. Private to
 * type_index_*.c.
 */
#ifndef AGENT_BINARY_TYPE_INDEX_BUILDER_H
#define AGENT_BINARY_TYPE_INDEX_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/dwarf_facts.h"
#include "agent/binary/dwarf_lists.h"
#include "agent/binary/string_pool.h"
#include "agent/binary/type_index_format.h"
#include "proto/base/bytes.h"

struct elf_file;

struct built_type {
	uint32_t die;
	struct type_record record; /* elem, key and representation are entries */
};

/* An entry that stands for a type that is described elsewhere. */
struct built_alias {
	uint32_t die, target;
};

/* A variable or function that others are instances of. */
struct built_origin {
	uint32_t die, name, type;
	bool is_result;
};

/* A function, or one that was inlined into it: whose variables there are. */
struct built_scope {
	uint32_t name;   /* 0: */
	uint32_t origin; /* the origin has it */
};

struct built_function {
	uint64_t entry, end;
	uint32_t first_local, local_count, first_capture, capture_count, first_param, param_count;
	uint32_t scope;
};

/* A parameter of the function itself, in the order of declaration. */
struct built_param {
	uint32_t name, origin, type;
	int32_t entry; /* as of a register_param */
	bool is_result;
};

/* A piece of a variable, whose place in the variable the types will tell. */
struct built_piece {
	const uint8_t *expression; /* in the sections; NULL: it is all of the variable */
	uint16_t expression_size;
	uint16_t number;
};

struct built_local {
	uint64_t start, end;
	uint32_t name, origin; /* as of a scope */
	uint32_t scope, type;
	int32_t offset;
	uint32_t size; /* 0: all of the variable */
	struct built_piece piece;
	bool is_address, is_register;
	bool is_split; /* a part that is a variable of its own: its type is the part's, */
	bool is_data;  /* but that of what an interface holds nobody knows */
};

struct built_capture {
	struct built_piece piece;
	uint32_t name, origin, type;
	uint32_t offset; /* of the piece, in the closure */
	uint32_t line;   /* of its declaration */
	enum capture_form {
		CAPTURE_TOLD,     /* DWARF says so, and that "&x" is captured for a variable x */
		CAPTURE_VALUE,    /* the code loads it */
		CAPTURE_IN_PLACE, /* the code takes its address: "&x" is where x is in the closure
				   */
	} form;
};

/* Records one behind the other. */
struct built_list {
	struct bytes bytes;
	size_t record_size;
};

struct type_index_builder {
	const struct dwarf_object *object;
	const struct elf_file *executable;
	uint64_t descriptors, descriptors_end; /* 0: to be found */
	struct dwarf_lists lists;
	struct string_pool strings;
	struct built_list types, aliases, origins, scopes, functions, locals, captures, params;
	struct built_list fields, globals; /* field_record, global_record */
};

must_check struct error *type_index_builder_init(struct type_index_builder *b, size_t limit);
void type_index_builder_fini(struct type_index_builder *b);

must_check struct error *built_list_add(struct built_list *list, const void *record);
static inline uint32_t built_list_count(const struct built_list *list)
{
	return (uint32_t)(list->bytes.size / list->record_size);
}
static inline void *built_list_at(const struct built_list *list, uint32_t i)
{
	return list->bytes.data + list->record_size * i;
}

/* A name of DWARF's as Go prints it: symbols have "%2e" for some points. */
must_check struct error *builder_name(struct type_index_builder *b, const char *name,
				      uint32_t *ret);

/* Reads all of debug_info. */
must_check struct error *type_index_collect(struct type_index_builder *b);

/* Adds what one entry says; what is no type adds nothing. */
must_check struct error *builder_add_type(struct type_index_builder *b,
					  const struct dwarf_facts *facts);
/* To the type that was added last. */
must_check struct error *builder_add_field(struct type_index_builder *b,
					   const struct dwarf_facts *facts);
void builder_set_length(struct type_index_builder *b, uint64_t length);

/* Types by value, once elements and fields are numbers. */
struct type_shapes {
	const struct built_list *types, *fields;
};

enum piece_place {
	PIECE_NOWHERE, /* it is not of such a variable, or holds no pointer if one was wanted */
	PIECE_KNOWN,
	PIECE_AMBIGUOUS,
};

/*
 * Where a piece lies in a variable of that type, in *ret if that is known; if it is known to hold a
 * pointer, only pointers are considered.
 */
enum piece_place type_index_piece_offset(const struct type_shapes *shapes, uint32_t type,
					 const struct built_piece *piece, bool is_pointer,
					 uint64_t *ret);

/* Joins what was gathered to an index, which is appended to out. */
must_check struct error *type_index_finish(struct type_index_builder *b, struct bytes *out);

#endif
