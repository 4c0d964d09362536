#include "agent/report/analysis.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/heap_copy.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/pages.h"
#include "agent/analysis/reference_walk.h"
#include "agent/goruntime/go_type.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/variable_table.h"
#include "agent/report/analysed.h"
#include "agent/report/analysis_report.h"
#include "agent/report/decoded.h"
#include "agent/report/goroutine_list.h"
#include "agent/report/label_types.h"
#include "agent/report/retained.h"

struct analysis {
	struct decoded *decoded;
	struct memory *copy; /* NULL: none was made */
	struct go_types *types;
	struct variable_table *variables;
	struct reference_walk *walk;
	struct retained *retained; /* NULL until it is asked for */
	uint64_t copy_bytes;       /* of the copy, also before it is made */
	bool has_walked;
	bool memory_is_gone;
};

void analysis_free(struct analysis *analysis)
{
	if (!analysis)
		return;
	retained_free(analysis->retained);
	reference_walk_free(analysis->walk);
	variable_table_free(analysis->variables);
	go_types_free(analysis->types);
	memory_free(analysis->copy);
	free(analysis);
}

static bool wants_chains(const struct analysis *analysis)
{
	const struct decode_request *r = analysis->decoded->request;

	return r->keeps || analysis_wants_chains(r->analysis);
}

/* A profile alone asks for no object. */
static bool wants_objects(const struct analysis *analysis)
{
	const struct decode_request *r = analysis->decoded->request;

	return r->keeps || analysis_wants_objects(r->analysis);
}

/* What is held for the objects beside graph and marking. */
static uint64_t memory_taken(const struct analysis *a)
{
	const struct decoded *d = a->decoded;

	if (!a->has_walked)
		return a->copy_bytes;
	return a->copy_bytes + memory_need_walked(span_table_object_end(d->spans),
						  mark_totals(d->mark)->live_objects,
						  wants_chains(a));
}

/* What the limit leaves, at least 1; 0: there is none. */
static uint64_t memory_left(const struct analysis *analysis)
{
	uint64_t left = graph_memory_left(analysis->decoded->graph);
	uint64_t taken = memory_taken(analysis);

	if (!left)
		return 0;
	return left > taken ? left - taken : 1;
}

static struct error *read_types(struct analysis *a)
{
	const struct decoded *d = a->decoded;
	const struct decode_request *r = d->request;
	struct error *err =
	    go_types_new(r->memory, r->layout, d->modules, r->type_index, r->type_bias, &a->types);

	return err ? err
		   : variable_table_read(a->types, d->modules, d->goroutines, d->walker,
					 r->type_index, r->symbols, r->type_bias, &a->variables);
}

static struct error *prepare_walk(struct analysis *a)
{
	const struct decoded *d = a->decoded;
	const struct reference_input input = {
		.memory = d->request->memory,
		.layout = d->request->layout,
		.graph = d->graph,
		.roots = d->roots,
		.specials = d->specials,
		.variables = a->variables,
		.types = a->types,
		.types_only = !wants_chains(a),
		.anonymous = !wants_objects(a),
		.thread_count = d->request->worker_count,
		.memory_limit = memory_left(a),
	};

	return reference_walk_new(&input, &a->walk);
}

static struct error *copy_heap(struct analysis *a)
{
	const struct decoded *d = a->decoded;

	return heap_copy_new(d->request->memory, d->spans, d->request->worker_count,
			     graph_memory_left(d->graph), &a->copy);
}

struct error *analysis_read(struct decoded *decoded, const struct analysis_means *means,
			    struct analysis **ret)
{
	struct analysis *a scoped(analysis_freep) = calloc(1, sizeof(*a));
	bool copies_heap = means->walks && means->copies_heap;
	struct error *err = NULL;

	if (!a)
		return &error_nomem;
	a->decoded = decoded;
	a->copy_bytes = copies_heap ? heap_copy_need(decoded->spans) : 0;
	if (means->names)
		err = read_types(a);
	if (!err && means->walks)
		err = prepare_walk(a);
	if (!err && copies_heap)
		err = copy_heap(a);
	if (err)
		return error_context(err, "analysis");
	*ret = take(a);
	return NULL;
}

struct error *analysis_let_go(struct analysis *analysis)
{
	analysis->memory_is_gone = true;
	if (!analysis->types)
		return NULL;
	return go_types_let_go(analysis->types, analysis->copy);
}

static struct memory *memory_of(const struct analysis *a)
{
	if (a->copy)
		return a->copy;
	return a->memory_is_gone ? NULL : a->decoded->request->memory;
}

static struct error *walk(struct analysis *a)
{
	struct memory *memory = memory_of(a);
	struct error *err;

	if (a->has_walked)
		return NULL;
	if (!memory || !a->walk)
		return error_new(ERROR_UNSUPPORTED, "objects were not kept with the scan");
	err = reference_walk_run(a->walk, a->decoded->mark, memory);
	graph_drop_notes(a->decoded->graph);
	a->has_walked = !err;
	return err;
}

static struct error *find_retained(struct analysis *a)
{
	const struct decoded *d = a->decoded;
	const struct retained_input input = {
		.graph = d->graph,
		.mark = d->mark,
		.roots = d->roots,
		.specials = d->specials,
		.owners = &d->owners,
		.goroutines = d->goroutines,
		.variables = a->variables,
		.thread_count = d->request->worker_count,
		.memory_limit = memory_left(a),
	};

	return a->retained ? NULL : retained_find(&input, &a->retained);
}

struct error *analysis_answer(struct analysis *analysis, const Goheapd__Analysis *query,
			      Goheapd__ScanResult *result)
{
	const struct decoded *d = analysis->decoded;
	struct analysed analysed = {
		.memory = memory_of(analysis),
		.layout = d->request->layout,
		.graph = d->graph,
		.mark = d->mark,
		.roots = d->roots,
		.specials = d->specials,
		.variables = analysis->variables,
		.types = analysis->types,
		.walk = analysis->walk,
		.goroutines = d->goroutines,
		.labels = d->labels,
		.build = d->request->build,
		.thread_count = d->request->worker_count,
	};
	struct error *err = NULL;

	if (analysis_wants_walk(query))
		err = walk(analysis);
	if (!err && analysis_wants_retained(query))
		err = find_retained(analysis);
	if (!err && query->goroutine_retained && d->list)
		goroutine_list_fill_retained(d->list, analysis->retained, result);
	analysed.memory_limit = memory_left(analysis);
	/* what an earlier question had found is no part of this answer */
	analysed.retained = analysis_wants_retained(query) ? analysis->retained : NULL;
	if (!err)
		err = analysis_report_fill(&analysed, query, result);
	if (!err && query->label_types && result->labels)
		err = label_types_fill(d, &analysed, result->labels);
	pages_drop_spares();
	return err;
}
