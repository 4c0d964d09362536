/*
 * Who keeps what alive, and what it is: a walk over all live objects from the named roots, level by
 * level, so that each object is met by a shortest chain, in an order that depends on nothing but
 * the target (same snapshot, same answer). Types come from the roots' variables, from what leads to
 * an object, and from what the object says itself (its allocation header, an interface's type word,
 * a closure's code pointer); objects whose type nothing tells are followed last, when no typed
 * chain can reach further.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_WALK_H
#define AGENT_ANALYSIS_REFERENCE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/go_type.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct graph;
struct layout;
struct mark;
struct root_set;
struct special_table;
struct variable_table;
struct reference_walk;

/* All borrowed for the walk's life, but memory for the call. */
struct reference_input {
	struct memory *memory; /* of the snapshot: variables are read */
	const struct layout *layout;
	const struct graph *graph;
	const struct root_set *roots;
	const struct special_table *specials;
	const struct variable_table *variables;
	struct go_types *types;
	bool types_only; /* there will be no places, which take more memory than anything else */
	bool anonymous;  /* places are not asked for their objects */
	unsigned thread_count;
	uint64_t memory_limit; /* bytes; 0: none. ERROR_OUT_OF_MEMORY says what it would need. */
};

/* Makes ready for a walk: what the roots' variables lead to. The caller frees *ret. */
must_check struct error *reference_walk_new(const struct reference_input *input,
					    struct reference_walk **ret);

/*
 * Walks, once, over what mark says is live. memory is the snapshot, or what was copied of it:
 * objects that hold pointers are read. Both are borrowed for the call.
 */
must_check struct error *reference_walk_run(struct reference_walk *walk, const struct mark *mark,
					    struct memory *memory);
void reference_walk_free(struct reference_walk *walk);
DEFINE_FREEP(reference_walk, reference_walk_free)

/*
 * The type of a live object: what it was allocated as if that is known, else what lies at its
 * start; of an array of unknown length its element (*ret_is_array). TYPE_UNKNOWN: nobody could
 * tell.
 */
type_id reference_walk_type(const struct reference_walk *walk, uint32_t object, bool *ret_is_array);

/*
 * How many objects from one on, and before end, were taken for the same as the first; they are live
 * if *ret_is_live. The other two are as above, and mean nothing where it is false.
 */
uint32_t reference_walk_run_of(const struct reference_walk *walk, uint32_t object, uint32_t end,
			       bool *ret_is_live, type_id *ret_type, bool *ret_is_array);

/* Live objects in the order of the walk, each after what it was met from: 0 to count - 1. */
uint32_t reference_walk_count(const struct reference_walk *walk);
uint32_t reference_walk_object(const struct reference_walk *walk,
			       uint32_t place); /* not anonymous */

enum { REFERENCE_ROOT = UINT32_MAX };

/* How the object at a place was met. */
struct reference {
	uint32_t parent;     /* a place, or REFERENCE_ROOT */
	uint32_t root;       /* of a root: its number in reference_walk_root; else 0 */
	uint32_t step;       /* of reference_walk_step_frames */
	uint64_t bytes;      /* of the object */
	uint64_t used_bytes; /* of a string's or slice's block: the part in use; else the object's
				size */
};

/* Of count places from first on. */
void reference_walk_read(const struct reference_walk *walk, uint32_t first, uint32_t count,
			 struct reference *ret);

/*
 * What every place holds with all that was met from it, by place, in words (8 bytes), at most
 * UINT32_MAX; words has room for it. Returns what all of them hold together, in bytes.
 */
uint64_t reference_walk_add_up(const struct reference_walk *walk, uint32_t *words);

static inline struct reference reference_walk_at(const struct reference_walk *walk, uint32_t place)
{
	struct reference reference;

	reference_walk_read(walk, place, 1, &reference);
	return reference;
}

/* The root with this number: its variable, and the goroutine or ROOT_NO_GOROUTINE. */
struct reference_root {
	const char *name, *package, *file;
	uint32_t line;
	uint32_t goroutine;
	uint8_t variable_kind;
};

uint32_t reference_walk_root_count(const struct reference_walk *walk);
struct reference_root reference_walk_root(const struct reference_walk *walk, uint32_t number);

/* The frames of a step, outermost first ("items. ([]main.Item)", "[3]. (main.Item)"). */
uint32_t reference_walk_step_frames(const struct reference_walk *walk, uint32_t step,
				    const char *const **ret);

#endif
