/*
 * Type descriptors of the target whole: what each kind of type has after the common part, its name,
 * and its parts as addresses of further descriptors. runtime/type.go, internal/abi/type.go.
 */
#ifndef AGENT_GORUNTIME_RTYPE_H
#define AGENT_GORUNTIME_RTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct module_table;
struct reflect_offsets;
struct type_memory;

enum {
	RTYPE_NAME_MAX = 64 << 10,   /* bytes of a name; generics' have been seen with thousands */
	RTYPE_FIELDS_MAX = 64 << 10, /* of a struct, methods of an interface */
	RTYPE_PARAMETERS_MAX = 64 << 10,
};

/* Where descriptors are read from; all borrowed. */
struct rtype_source {
	struct type_memory *memory;
	const struct layout *layout;
	const struct module_table *modules;
	struct reflect_offsets *reflect_offsets;
};

enum rtype_direction { RTYPE_RECEIVE = 1, RTYPE_SEND = 2, RTYPE_BOTH = 3 };

/* A descriptor; what a kind does not have is 0. */
struct rtype {
	taddr addr;
	uint64_t size, ptr_bytes;
	uint64_t length; /* of an array */
	taddr elem, key, bucket;
	taddr name, package; /* encoded names; 0: none, or not to be found */
	taddr items;         /* a struct's fields, an interface's methods, a func's parameters */
	uint32_t item_count; /* of a func: of its in-parameters */
	uint32_t out_count;
	uint32_t hash;
	uint8_t kind;
	uint8_t direction; /* of a channel */
	bool named, extra_star, direct_interface, variadic;
	bool indirect_key, indirect_elem; /* of a map */
};

/* ERROR_FORMAT and ERROR_FAULT for what is no descriptor, ERROR_LIMIT for one that is too large. */
must_check struct error *rtype_read(const struct rtype_source *source, taddr addr,
				    struct rtype *ret);

struct rtype_field {
	taddr name; /* encoded */
	taddr type;
	uint64_t offset;
	bool embedded;
};

/* The i-th field of a struct, parameter of a func (results after the others), and method. */
must_check struct error *rtype_field(const struct rtype_source *source, const struct rtype *type,
				     uint32_t i, struct rtype_field *ret);
must_check struct error *rtype_parameter(const struct rtype_source *source,
					 const struct rtype *type, uint32_t i, taddr *ret);
must_check struct error *rtype_method(const struct rtype_source *source, const struct rtype *type,
				      uint32_t i, taddr *ret_name, taddr *ret_type);

/*
 * The text of an encoded name, NUL-terminated, which the caller frees; ERROR_FORMAT for what is no
 * text. *ret_tag, if asked for, is a field's tag or NULL.
 */
must_check struct error *rtype_text(const struct rtype_source *source, taddr name, char **ret,
				    char **ret_tag);

/* Does a field's encoded name say that it is embedded? Not before go1.19. */
must_check struct error *rtype_name_is_embedded(const struct rtype_source *source, taddr name,
						bool *ret);

/* A type's name as its descriptor has it, without what the compiler puts before it. */
must_check struct error *rtype_string(const struct rtype_source *source, const struct rtype *type,
				      char **ret);

/*
 * What a nameOff or typeOff of the descriptor at base means: an offset into its module's types, or
 * for one that reflect made its number among the runtime's offsets. 0 if there is none.
 */
must_check struct error *rtype_resolve(const struct rtype_source *source, taddr base,
				       int32_t offset, taddr *ret);

#endif
