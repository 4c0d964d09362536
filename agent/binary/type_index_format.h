/*
 * How a type index lies in its bytes: a header, then tables of fixed-width records one behind the
 * other, then the text of all names. Everything is little-endian and may lie at any alignment, so
 * that records are copied out. Private to type_index*.c.
 */
#ifndef AGENT_BINARY_TYPE_INDEX_FORMAT_H
#define AGENT_BINARY_TYPE_INDEX_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are copied as they lie");

#define TYPE_INDEX_MAGIC "goheapty"

enum { TYPE_INDEX_VERSION = 4 }; /* raise it when the meaning of the bytes changes */

enum type_index_table {
	TABLE_TYPES,         /* type_record, by number; number 0 is none */
	TABLE_FIELDS,        /* field_record */
	TABLE_BY_NAME,       /* uint32_t, a type's number; by name */
	TABLE_BY_DESCRIPTOR, /* uint32_t, a type's number; by descriptor, those that have one */
	TABLE_GLOBALS,       /* global_record, by address */
	TABLE_FUNCTIONS,     /* function_record, by entry */
	TABLE_LOCALS,        /* local_record, by function and start */
	TABLE_CAPTURES,      /* field_record, by function and offset */
	TABLE_STRINGS,       /* char; names end in a NUL, the first is empty */
	TABLE_COUNT
};

struct type_index_header {
	uint8_t magic[8];
	uint32_t version, zero;
	uint64_t text_base; /* what starts and ends of locals are told from */
	uint32_t counts[TABLE_COUNT];
	uint32_t zero_too;
};

_Static_assert(sizeof(struct type_index_header) == 64, "no padding");

enum { TYPE_HAS_METHODS = 1 };

struct type_record {
	uint64_t size, length, descriptor;
	uint32_t name, elem, key, representation, first_field, field_count;
	uint8_t kind, flags, zero[6];
};

_Static_assert(sizeof(struct type_record) == 56, "no padding");

struct field_record {
	uint32_t name, type;
	uint64_t offset;
};

_Static_assert(sizeof(struct field_record) == 16, "no padding");

struct global_record {
	uint32_t name, type;
	uint64_t addr;
};

_Static_assert(sizeof(struct global_record) == 16, "no padding");

struct function_record {
	uint64_t entry;
	uint32_t first_local, local_count, first_capture, capture_count;
	uint32_t first_param; /* its type */
	uint32_t zero;
};

_Static_assert(sizeof(struct function_record) == 32, "no padding");

enum {
	LOCAL_IS_HEAP_ADDRESS = 1,
	LOCAL_IS_SPILLED = 2,
	LOCAL_IS_REGISTER = 4, /* offset is the register's number */
};

struct local_record {
	uint32_t name, function, type, start, end;
	int32_t offset;
	uint32_t size, piece_offset, flags;
};

_Static_assert(sizeof(struct local_record) == 36, "no padding");

#endif
