/*
 * Plans: which words of a type lead where, worked out once for each type and way to it, so that
 * the walk itself looks at no type. A plan covers one period: a value, an element of an array, a
 * bucket of a map.
 */
#ifndef AGENT_ANALYSIS_REFERENCE_PLAN_H
#define AGENT_ANALYSIS_REFERENCE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/reference_shape.h"
#include "agent/analysis/reference_step.h"
#include "proto/base/error.h"

struct layout;
struct plan_table;

enum slot_kind {
	SLOT_POINTER, /* to an object of the slot's shape */
	SLOT_SLICE,   /* the same; length and capacity are in the two words that follow */
	SLOT_STRING,  /* the same; length in the word that follows */
	SLOT_EFACE,   /* the data word of an interface; its type in the word before */
	SLOT_IFACE,   /* the same with an itab */
	SLOT_MAP,   /* a swiss map's directory, or its only group if the length that follows is 0 */
	SLOT_TIMER, /* the same as SLOT_POINTER, but who waits for time is no part of a chain */
	SLOT_ARRAY, /* an array in the period: what it consists of has plans of its own */
};

struct plan_slot {
	uint32_t word; /* of the period */
	uint32_t step; /* that leads to the object; of an array to it */
	shape_id shape;
	uint8_t kind;
	uint32_t count;     /* elements of an array */
	uint64_t elem_size; /* bytes, of slices and arrays */
};

struct plan {
	uint64_t words;         /* of the period; 0: nothing is known of it */
	const uint8_t *by_word; /* the number of each word's slot, + 1; NULL: it is too long */
	bool reads;             /* some slots need more than an edge's note tells */
	uint32_t slot_count;
	struct plan_slot slots[]; /* by word */
};

/* Does a slot need more than what is noted of an edge (agent/analysis/graph_private.h)? */
static inline bool plan_slot_reads(const struct plan_slot *slot)
{
	return slot->kind == SLOT_EFACE || slot->kind == SLOT_IFACE || slot->kind == SLOT_ARRAY ||
	       (slot->kind == SLOT_POINTER && shape_kind(slot->shape) == SHAPE_ARRAY);
}

enum {
	PLAN_SLOTS_MAX = 4096,        /* of one plan: longer arrays are SLOT_ARRAY */
	PLAN_ALL_SLOTS_MAX = 4 << 20, /* of all plans; beyond it nothing more is known */
	PLAN_ARRAY_INLINE = 16,       /* elements */
	PLAN_DEPTH_MAX = 24,          /* of structs and arrays in each other */
	PLAN_BY_WORD_MAX = 128,       /* words, and slots, of those that can be asked by word */
};

/* All borrowed. */
must_check struct error *plan_table_new(const struct layout *layout, struct go_types *types,
					struct step_table *steps, struct plan_table **ret);
void plan_table_free(struct plan_table *table);
DEFINE_FREEP(plan_table, plan_table_free)

/*
 * The plan of what has a shape; every step in it begins with prefix. A value that is a pointer
 * itself needs a frame ("*") unless prefix names it. The plan belongs to the table. Any thread may
 * ask, but not often: each keeps what it was told.
 */
must_check struct error *plan_table_find(struct plan_table *table, shape_id shape, uint32_t prefix,
					 bool is_named, const struct plan **ret);

/*
 * Which of the frames an element has: its own up to STEP_ELEMENTS, then one for the others within
 * the length, then one for those beyond it.
 */
enum {
	ELEMENT_OTHER = STEP_ELEMENTS,
	ELEMENT_BEYOND,
	ELEMENT_CLASSES,
};

static inline unsigned element_class(uint64_t index, uint64_t length)
{
	if (index >= length)
		return ELEMENT_BEYOND;
	return index < STEP_ELEMENTS ? (unsigned)index : ELEMENT_OTHER;
}

/* The plan of the elements of a class, of an array that prefix leads to. */
must_check struct error *plan_table_element(struct plan_table *table, type_id elem, uint32_t prefix,
					    unsigned class, const struct plan **ret);

#endif
