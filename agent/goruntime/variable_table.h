/*
 * Which variable holds a root: global variables by address, and the variables of every frame of
 * every goroutine's stack, at the pc where the frame stands. What has no variable of its own (the
 * compiler's temporaries, nameless data) has a name that says so, so that every root has one.
 */
#ifndef AGENT_GORUNTIME_VARIABLE_TABLE_H
#define AGENT_GORUNTIME_VARIABLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/go_type.h"
#include "agent/goruntime/root.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct elf_symbols;
struct goroutine_table;
struct module_table;
struct stack_walker;
struct type_index;
struct variable_table;

enum variable_kind {
	VARIABLE_GLOBAL,
	VARIABLE_LOCAL,     /* of a function, arguments and results included */
	VARIABLE_TEMPORARY, /* a word of a frame that no variable names */
	VARIABLE_NAMELESS,  /* data that no symbol names */
	VARIABLE_RUNTIME, /* what the runtime keeps: queues, specials, a g's own words, registers */
};

enum { VARIABLE_BEFORE = 1, VARIABLE_AROUND = 4 }; /* words */

/* Where a word of a variable is; addr is 0 if it is in no memory. */
struct variable_word {
	taddr addr;
	uint64_t value; /* in a register of a thread */
	bool in_register;
};

/* Equal variables (the same local in many frames) have the same name, by address, too. */
struct variable {
	/*
	 * "shop/cart.cache", "shop/cart.(*Cart).Add.item"; "main.main.(temporary)",
	 * "main.main.(defer)",
	 * "(nameless data)", "finalizer", "finalizer queue, blocked by main.wait" and the like.
	 */
	const char *name;
	const char *package; /* import path; "": the runtime's own doing, or not known */
	const char *file;    /* of a local's function, or NULL */
	uint32_t line;
	uint8_t kind;    /* enum variable_kind */
	taddr addr;      /* where it begins; 0: in no one place */
	bool has_offset; /* of a variable in no one place: the root's word is at offset in it */
	uint64_t offset;
	uint64_t size; /* 0: not known */
	type_id type;
	bool is_array; /* as many of the type, one after the other, as there is room for */
	/*
	 * Of a local, which may be in pieces: where its words are, from the one before the root's
	 * on. Of others they are side by side.
	 */
	bool in_pieces;
	struct variable_word around[VARIABLE_AROUND];
};

/* Where in a variable the word of a root at slot is; false: that is not known. */
static inline bool variable_offset(const struct variable *variable, taddr slot, uint64_t *ret)
{
	*ret = variable->has_offset ? variable->offset : slot - variable->addr;
	return variable->has_offset || (variable->addr && slot >= variable->addr);
}

/*
 * Walks all stacks once more. Borrows all arguments for the call but types and modules, for its
 * life. index is NULL without DWARF: globals are then named by symbols alone, which know no types,
 * and locals after their function. symbols are NULL, or none, where the program is stripped: then
 * globals have no names. bias is what must be added to the addresses of both.
 */
must_check struct error *
variable_table_read(struct go_types *types, const struct module_table *modules,
		    const struct goroutine_table *goroutines, struct stack_walker *walker,
		    const struct type_index *index, const struct elf_symbols *symbols,
		    uint64_t bias, struct variable_table **ret);
void variable_table_free(struct variable_table *table);
DEFINE_FREEP(variable_table, variable_table_free)

/* The variable that a root of this kind and goroutine at slot is a word of. Any thread may ask. */
void variable_table_find(const struct variable_table *table, enum root_kind kind,
			 uint32_t goroutine, taddr slot, struct variable *ret);

#endif
