/*
 * A fake heap together with all that the report rooms for objects want to know of one. Objects are
 * linked and typed by the test; what the roots reach is marked by the real marker.
 */
#ifndef TESTS_SUPPORT_ANALYSED_HEAP_H
#define TESTS_SUPPORT_ANALYSED_HEAP_H

#include "agent/goruntime/root.h"
#include "agent/report/analysed.h"
#include "tests/support/fake_analysis.h"
#include "tests/support/fake_heap.h"

struct layout;

enum { ANALYSED_HEADER_ABOVE = 512 }; /* larger objects have a header */

struct analysed_heap {
	struct fake_heap *heap;
	struct go_types *types;
	struct reference_walk *walk;
	struct variable_table *variables;
	struct retained *retained; /* NULL, unless the test sets it */
	struct layout *layout;
	struct root_set *roots;
	struct graph *graph;
	struct mark *mark;
	struct analysed analysed; /* set by analysed_heap_mark */
};

/* Spans can be added to heap until analysed_heap_finish. */
void analysed_heap_init(struct analysed_heap *a);
void analysed_heap_finish(struct analysed_heap *a);
void analysed_heap_fini(struct analysed_heap *a);

/* A pointer from a word of one object's slot to the start of the other's, header left out. */
void analysed_heap_point(struct analysed_heap *a, uint32_t from, uint64_t word, uint32_t to);
/* Where the object begins for the program. */
taddr analysed_heap_address(const struct analysed_heap *a, uint32_t object);
/* A word that is no pointer. */
void analysed_heap_store(struct analysed_heap *a, uint32_t object, uint64_t word, uint64_t value);

void analysed_heap_root(struct analysed_heap *a, enum root_kind kind, taddr slot, taddr value);

/* Reads the graph and marks; a->analysed is there from then on. */
void analysed_heap_mark(struct analysed_heap *a);

#endif
