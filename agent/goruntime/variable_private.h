/* The inside of the table of variables, for the files that implement it. */
#ifndef AGENT_GORUNTIME_VARIABLE_PRIVATE_H
#define AGENT_GORUNTIME_VARIABLE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/string_pool.h"
#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/register.h"
#include "agent/goruntime/variable_table.h"

struct elf_symbols;
struct goroutine;
struct layout;
struct module;
struct pclntab_func;

enum {
	VARIABLE_NAMES_MAX = 512 << 20, /* bytes */
	VARIABLE_FRAMES_MAX = 1 << 24,  /* of all goroutines; frames beyond have no names */
	VARIABLE_LOCALS_MAX = 1 << 24,  /* of all places where frames stand */
};

/* Names are offsets in the table's pool until the table is complete. */
typedef uint32_t name_id;

/* A growing array; all zero is empty. */
struct variable_list {
	uint8_t *items;
	size_t count, capacity; /* in items */
};

must_check struct error *variable_list_add(struct variable_list *list, size_t item_size, size_t max,
					   const void *item);
void variable_list_fini(struct variable_list *list);

/* A global variable, from the index or a symbol. */
struct global_place {
	taddr addr;
	uint64_t size;
	uint32_t type; /* number in the index; 0: not known */
	name_id name, package;
	type_id made_type; /* of data that only a variable leads to */
	bool is_array;     /* there may be more than one of made_type */
	bool is_made_up;   /* by the compiler */
};

/* A function with a frame on some stack. */
struct function_place {
	name_id name;
	name_id temporary, defer, registers, context, stack; /* whole names */
	name_id package;
	const char *file;
	uint32_t line;
	taddr entry;
	uint32_t args_size; /* of its arguments, which lie in its caller's frame; 0: not known */
};

/* What lies in a frame that stands at one pc. */
struct frame_site {
	uint32_t function;
	uint32_t first_local, local_count;
};

struct local_place {
	int64_t offset; /* from the frame's fp, of the piece; or the register's number */
	uint64_t size, piece_offset;
	name_id name;
	uint32_t type;
	bool is_heap_address, is_register;
};

/* A frame: it ends so far below the upper end of its stack. */
struct frame_place {
	uint32_t below;
	uint32_t site;
};

/* The registers that one frame had when it was interrupted at no call. */
struct register_set {
	uint32_t frame;             /* of the goroutine's */
	taddr addr[REGISTER_COUNT]; /* where each was saved; 0: nowhere */
	uint64_t value[REGISTER_COUNT];
	bool is_of_thread; /* values are what the thread has in them */
};

struct goroutine_frames {
	uint64_t first;
	uint32_t count;
	uint32_t first_set, set_count;
	uint32_t start; /* the function that it began with, + 1; 0: not known */
	taddr g, stack_lo, stack_hi;
	uint32_t first_defer, defer_count;
	uint32_t last_deferrer; /* the function of the latest record, + 1 */
};

/* Of one goroutine, by address. */
struct defer_place {
	taddr record;
	uint32_t function; /* that deferred, + 1; 0: not known */
	uint32_t next;     /* likewise, of the record that this one leads to */
	uint32_t callee;   /* to go1.16: the site of the deferred function's entry, + 1 */
};

/* A block of the finalizer queue: its entries are [first, first + count) of queued_types. */
struct queue_block {
	taddr addr;
	uint32_t first, count;
};

struct variable_table {
	struct go_types *types;
	const struct module_table *modules;
	struct string_pool names;
	struct variable_list globals;   /* struct global_place, by address */
	struct variable_list functions; /* struct function_place */
	struct variable_list sites;     /* struct frame_site */
	struct variable_list locals;    /* struct local_place */
	struct variable_list frames;    /* struct frame_place */
	struct variable_list defers;    /* struct defer_place */
	struct variable_list sets;      /* struct register_set */
	struct goroutine_frames *goroutines;
	uint32_t goroutine_count;
	name_id finalizer_queue, cleanup_queue; /* with who blocks them */
	struct variable_list queue_blocks;      /* struct queue_block, by address */
	struct variable_list queued_types;      /* taddr: descriptors of what finalizers are for */
	/* Of the layout: where a g and a defer record have what is a root. */
	uint32_t g_size, g_context, defer_fn, defer_link, defer_size;
	uint32_t queue_entries, queue_entry_size, queue_fn, queue_arg;
	uint32_t defer_args; /* bytes that may follow a record */
	type_id func_type, defer_pointer;
};

/* While the table is read. */
struct variable_reader {
	struct variable_table *table;
	const struct goroutine_table *goroutines;
	struct stack_walker *walker;
	const struct type_index *index;
	const struct elf_symbols *symbols;
	uint64_t bias;
	struct addr_map function_of; /* by entry: place in functions, + 1 */
	struct addr_map site_of;     /* by pc, + 1 */
};

/* "main.(*T).m" and "x" make "main.(*T).m.x"; last may be NULL. */
must_check struct error *variable_name(struct variable_table *table, const char *first,
				       const char *last, name_id *ret);

/* The import path that a symbol's name begins with, "" if none. */
must_check struct error *variable_package(struct variable_table *table, const char *symbol,
					  name_id *ret);

static inline const char *variable_text(const struct variable_table *table, name_id name)
{
	return string_pool_at(&table->names, name);
}

/* Each reads its part. */
must_check struct error *variable_globals_read(struct variable_reader *reader);
must_check struct error *variable_statics_read(struct variable_reader *reader);
must_check struct error *variable_frames_read(struct variable_reader *reader);
must_check struct error *variable_queues_read(struct variable_reader *reader);

/* Deferred calls of a goroutine, the latest first. */
must_check struct error *variable_defers_read(struct variable_reader *reader,
					      const struct goroutine *g,
					      struct goroutine_frames *ret);

/* Registers of the frame that comes next: of a running goroutine's innermost one, if it is that. */
must_check struct error *variable_registers_running(struct variable_reader *reader,
						    const struct goroutine *g,
						    struct goroutine_frames *goroutine);
/* Those that a frame of asyncPreempt at sp has saved. */
must_check struct error *variable_registers_preempted(struct variable_reader *reader, taddr sp,
						      struct goroutine_frames *goroutine);

/* The set of a goroutine's frame, NULL for none. */
const struct register_set *variable_registers_of(const struct variable_table *table,
						 const struct goroutine_frames *goroutine,
						 uint32_t frame);

/* The set that the slot of a root is in, and which of the registers it is; NULL: none. */
const struct register_set *variable_registers_at(const struct variable_table *table,
						 const struct goroutine_frames *goroutine,
						 taddr slot, unsigned *ret_number);

/* The function at an entry, *ret is its place. */
must_check struct error *variable_function(struct variable_reader *reader,
					   const struct pclntab_func *func,
					   const struct module *module, uint32_t *ret);

/*
 * The type of what lies at an offset from the fp of a frame at a site, TYPE_UNKNOWN for none;
 * *ret_start is where it begins.
 */
type_id variable_type_at(const struct variable_table *table, uint32_t site, int64_t offset,
			 int64_t *ret_start);

/* The site of a function's entry; *ret is its place + 1, 0 if there is none. */
must_check struct error *variable_entry_site(struct variable_reader *reader, taddr entry,
					     uint32_t *ret);

/* The type of a word of the finalizer queue. */
type_id variable_queued_type(const struct variable_table *table, taddr slot);

/* The function that holds pc; *ret is its place + 1, 0 if there is none. */
must_check struct error *variable_function_at(struct variable_reader *reader, taddr pc,
					      uint32_t *ret);

/* Whether an error ends the reading: others are about the bytes read. */
bool variable_is_final(const struct error *err);

static inline const struct function_place *
variable_function_place(const struct variable_table *table, uint32_t place)
{
	return (const struct function_place *)table->functions.items + place;
}

/* The place that holds addr, of the first count, which are in order; NULL: none does. */
const struct global_place *variable_global_at(const struct variable_table *table, size_t count,
					      taddr addr);

/* Each finds a variable, if it is there. */
bool variable_globals_find(const struct variable_table *table, taddr slot, struct variable *ret);
bool variable_frames_find(const struct variable_table *table, uint32_t goroutine, taddr slot,
			  struct variable *ret);
bool variable_registers_find(const struct variable_table *table, uint32_t goroutine, taddr slot,
			     struct variable *ret);
/* What the runtime keeps for a function, by a name of it. */
void variable_take_function(const struct variable_table *table,
			    const struct function_place *function, name_id name, taddr slot,
			    struct variable *ret);

/* What holds a word that no frame has. */
struct word_owner {
	const struct function_place *function; /* NULL: not known */
	type_id type;                          /* of what begins at addr */
	taddr addr;
};

/* The owner of a word of a goroutine's defer records, or of the latest record if slot is 0. */
struct word_owner variable_deferrer(const struct variable_table *table, uint32_t goroutine,
				    taddr slot);

/* The function whose frame is the innermost, or that a goroutine began with; NULL: not known. */
const struct function_place *variable_innermost(const struct variable_table *table,
						uint32_t goroutine);

#endif
