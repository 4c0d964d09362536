#include "tests/support/analysed_heap.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/object_header.h"
#include "tests/support/assertions.h"

void analysed_heap_init(struct analysed_heap *a)
{
	*a = (struct analysed_heap){
		.heap = fake_heap_new(),
		.types = fake_types_new(),
		.walk = fake_walk_new(),
		.variables = fake_variables_new(),
		.layout = calloc(1, sizeof(struct layout)),
	};
	assert_non_null(a->layout);
	a->layout->const_malloc_header_size = (struct layout_constant){ .value = 8, .known = true };
	a->layout->const_min_size_for_malloc_header =
	    (struct layout_constant){ .value = ANALYSED_HEADER_ABOVE, .known = true };
}

void analysed_heap_finish(struct analysed_heap *a)
{
	fake_heap_finish(a->heap);
	assert_success(root_set_new(fake_heap_spans(a->heap), &a->roots));
}

void analysed_heap_fini(struct analysed_heap *a)
{
	mark_free(a->mark);
	graph_free(a->graph);
	root_set_free(a->roots);
	free(a->layout);
	retained_free(a->retained);
	variable_table_free(a->variables);
	reference_walk_free(a->walk);
	go_types_free(a->types);
	fake_heap_free(a->heap);
}

taddr analysed_heap_address(const struct analysed_heap *a, uint32_t object)
{
	const struct span *span = span_table_span_of(fake_heap_spans(a->heap), object);

	return fake_heap_addr(a->heap, object) + object_header_bytes(a->layout, span);
}

void analysed_heap_point(struct analysed_heap *a, uint32_t from, uint64_t word, uint32_t to)
{
	fake_heap_point(a->heap, from, word, analysed_heap_address(a, to));
}

void analysed_heap_store(struct analysed_heap *a, uint32_t object, uint64_t word, uint64_t value)
{
	fake_heap_store(a->heap, object, word, value);
}

void analysed_heap_root(struct analysed_heap *a, enum root_kind kind, taddr slot, taddr value)
{
	const struct root root = {
		.kind = kind, .goroutine = ROOT_NO_GOROUTINE, .slot = slot, .value = value
	};

	assert_success(root_set_sink(a->roots)->add(root_set_sink(a->roots), &root));
}

void analysed_heap_mark(struct analysed_heap *a)
{
	assert_success(graph_read(fake_heap_memory(a->heap), a->layout, fake_heap_spans(a->heap), 2,
				  0, &a->graph));
	assert_success(mark_run(a->graph, a->roots, fake_heap_specials(a->heap), 2, &a->mark));
	for (uint32_t i = 1; i < span_table_object_end(fake_heap_spans(a->heap)); i++)
		if (mark_is_live(a->mark, i))
			fake_walk_set_live(a->walk, i);
	a->analysed = (struct analysed){
		.memory = fake_heap_memory(a->heap),
		.layout = a->layout,
		.graph = a->graph,
		.mark = a->mark,
		.roots = a->roots,
		.specials = fake_heap_specials(a->heap),
		.variables = a->variables,
		.types = a->types,
		.walk = a->walk,
		.retained = a->retained,
		.thread_count = 2,
	};
}
