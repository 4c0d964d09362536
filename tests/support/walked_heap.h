/*
 * A fake heap with types and variables that the test makes up, and the real reference walk over it.
 * After every walk it is checked that each live object has its one place, behind what it was met
 * from, and that what it was met from leads to it.
 */
#ifndef TESTS_SUPPORT_WALKED_HEAP_H
#define TESTS_SUPPORT_WALKED_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/analysis/reference_walk.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/root.h"
#include "tests/support/fake_go_types.h"
#include "tests/support/fake_heap.h"
#include "tests/support/fake_memory.h"

enum {
	WALKED_DATA = 0x500000, /* where variables lie, and what else the test puts there */
	WALKED_DATA_SIZE = 0x10000,
	WALKED_RECORDS = WALKED_DATA + 0x8000,
	WALKED_HEADER_ABOVE = 512, /* larger objects have a header */
};

/* How it is walked. Change it before walked_heap_run. */
struct walked_way {
	unsigned threads;
	uint64_t memory_limit;
	bool types_only;
	bool noted;     /* over a graph with notes of its edges */
	bool from_copy; /* of what holds pointers, as for a stopped process */
	taddr hole;     /* what overlaps [hole, hole + hole_size) cannot be read */
	uint64_t hole_size;
	uint64_t lies; /* not 0: every other word is something else, as this number says */
};

struct walked_heap {
	struct fake_heap *heap;
	struct go_types *types;
	struct variable_table *variables;
	struct fake_memory *data;
	struct layout layout; /* all zero but for the header and finalizers */
	taddr next_variable;
	struct root_set *roots;
	struct graph *graph, *noted;
	struct mark *mark;
	struct walked_way way;
	struct reference_walk *walk;
	uint32_t *places; /* by object: its place + 1 */
};

/* Spans and types can be added until walked_heap_finish, and variables from then on. */
void walked_heap_init(struct walked_heap *w);
void walked_heap_finish(struct walked_heap *w);
void walked_heap_fini(struct walked_heap *w);

/* Where an object begins for the program, behind its header. */
taddr walked_heap_address(const struct walked_heap *w, uint32_t object);
/* Puts a pointer to the start of an object into a word of another one, header left out. */
void walked_heap_point(struct walked_heap *w, uint32_t from, uint64_t word, uint32_t to);
/* A word that is no pointer, counted likewise. */
void walked_heap_store(struct walked_heap *w, uint32_t object, uint64_t word, uint64_t value);

/*
 * Adds a variable whose words are these; each that leads into the heap is a root of the kind. Those
 * of ROOT_DATA are global, others locals. Names are borrowed. Returns where the variable lies.
 */
taddr walked_heap_variable(struct walked_heap *w, enum root_kind kind, uint32_t goroutine,
			   const char *name, type_id type, const uint64_t *words, uint32_t count);
/* The same of one word, a pointer to an object. */
void walked_heap_root(struct walked_heap *w, enum root_kind kind, uint32_t goroutine,
		      const char *name, type_id type, uint32_t object);
/* A global of up to three words, as many as the type has. */
void walked_heap_words(struct walked_heap *w, const char *name, type_id type, uint64_t first,
		       uint64_t second, uint64_t third);
/* And of a global. */
void walked_heap_global(struct walked_heap *w, const char *name, type_id type, uint32_t object);
/* A root's word read at a slot, which the test has put there. */
void walked_heap_root_at(struct walked_heap *w, enum root_kind kind, uint32_t goroutine, taddr slot,
			 uint64_t value);
/* The record of a finalizer: the type that it takes and that of pointers to its object. */
taddr walked_heap_finalizer(struct walked_heap *w, taddr taken, taddr pointer);

/* Reads the graph and marks, the first time, then walks in the way that is set. */
void walked_heap_run(struct walked_heap *w);
/* The same, with notes and without: both must say the same. */
void walked_heap_run_both(struct walked_heap *w);
/* One walk if it may fail. */
must_check struct error *walked_heap_try(struct walked_heap *w);

/* "main.cache / items. ([]main.Item) / [3]. (main.Item)", until the next call. */
const char *walked_heap_chain(const struct walked_heap *w, uint32_t object);
/* "[]main.Item" for an array, "main.Item" for a value, "?": unknown. */
const char *walked_heap_type(const struct walked_heap *w, uint32_t object);
uint64_t walked_heap_used(const struct walked_heap *w, uint32_t object);
/* The object that one was met from; OBJECT_NONE: a root. */
uint32_t walked_heap_parent(const struct walked_heap *w, uint32_t object);

/* What is live, and of what the type is known. */
struct walked_totals {
	uint64_t objects, bytes, typed_objects, typed_bytes;
};
struct walked_totals walked_heap_totals(const struct walked_heap *w);

#define assert_chain(w, object, expected)                                                          \
	assert_string_equal(walked_heap_chain(w, object), expected)
#define assert_type(w, object, expected) assert_string_equal(walked_heap_type(w, object), expected)
#define assert_used(w, object, expected) assert_int_equal(walked_heap_used(w, object), expected)

/* Everything that a walk says, to compare it with another one's: the caller frees it. */
struct walked_answer {
	char *text;
	size_t size;
};
struct walked_answer walked_heap_answer(const struct walked_heap *w);
/* It is the same that this walk says. */
void walked_heap_check_answer(const struct walked_heap *w, const struct walked_answer *expected);

#endif
