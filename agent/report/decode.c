#include "agent/report/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/heap_copy.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/heap_extent.h"
#include "agent/goruntime/label.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/metadata.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/page_alloc.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special.h"
#include "agent/goruntime/stack.h"
#include "agent/report/analysis.h"
#include "agent/report/analysis_report.h"
#include "agent/report/decoded.h"
#include "agent/report/goroutine_list.h"
#include "agent/report/goroutine_origin.h"
#include "agent/report/label_report.h"
#include "agent/report/resident.h"
#include "agent/report/scan_report.h"
#include "agent/target/maps.h"

enum { STATUS_SIZE = 16 << 10 };

void decoded_trim(struct decoded *decoded)
{
	resident_free(take(decoded->resident));
	maps_free(take(decoded->maps));
	page_alloc_free(take(decoded->pages));
	goroutine_list_free(take(decoded->list));
	stack_walker_free(take(decoded->walker));
	free(take(decoded->scans));
	range_list_fini(&decoded->metadata);
	range_list_fini(&decoded->stacks);
}

void decoded_fini(struct decoded *decoded)
{
	analysis_free(decoded->analysis);
	label_usage_fini(&decoded->sets);
	label_owners_fini(&decoded->owners);
	origin_table_free(decoded->origins);
	mark_free(decoded->mark);
	graph_free(decoded->graph);
	root_set_free(decoded->roots);
	special_table_free(decoded->specials);
	goroutine_list_free(decoded->list);
	label_table_free(decoded->labels);
	free(decoded->scans);
	stack_walker_free(decoded->walker);
	goroutine_table_free(decoded->goroutines);
	module_table_free(decoded->modules);
	page_alloc_free(decoded->pages);
	span_table_free(decoded->spans);
	range_list_fini(&decoded->metadata);
	range_list_fini(&decoded->stacks);
	resident_free(decoded->resident);
	maps_free(decoded->maps);
}

/* VmRSS of /proc/PID/status, 0 if it is not there; it is only for comparison. */
static uint64_t read_rss(int status_fd)
{
	char text[STATUS_SIZE];
	ssize_t size = status_fd < 0 ? -1 : pread(status_fd, text, sizeof(text) - 1, 0);
	const char *line;

	if (size <= 0)
		return 0;
	text[size] = '\0';
	line = strstr(text, "\nVmRSS:");
	return line ? strtoull(line + strlen("\nVmRSS:"), NULL, 10) << 10 : 0;
}

/* Which pages are in RAM, of the target itself: a snapshot lacks its file mappings. */
static struct error *read_resident(struct decoded *d)
{
	struct error *err = resident_read(d->request->pagemap_fd, d->maps, &d->resident);

	if (!err)
		d->kernel_rss_bytes = read_rss(d->request->status_fd);
	return err;
}

static struct error *read_tables(struct decoded *d)
{
	const struct decode_request *r = d->request;
	struct error *err = span_table_read(r->memory, r->layout, &d->spans);

	if (!err)
		err = module_table_read(r->memory, r->layout, &d->modules);
	if (!err)
		err = goroutine_table_read(r->memory, r->layout, d->modules, r->threads,
					   r->thread_count, &d->goroutines);
	if (!err)
		err = stack_walker_new(r->memory, r->layout, d->modules, d->goroutines, &d->walker);
	if (!err)
		err = page_alloc_read(r->memory, r->layout, d->spans, &d->pages);
	if (!err)
		err = special_table_read(r->memory, r->layout, d->spans, &d->specials);
	return err;
}

/* Chains of goroutines are told apart by their labels. */
static bool wants_labels(const Goheapd__Analysis *analysis)
{
	return analysis && analysis->profile && analysis->profile->labels;
}

static struct error *read_labels(struct decoded *d)
{
	const struct decode_request *r = d->request;
	struct error *err = NULL;

	if (r->want_labels || r->want_goroutines || wants_labels(r->analysis) || r->keeps)
		err = label_table_read(r->memory, r->layout, d->goroutines, &d->labels);
	if (err || !r->want_labels)
		return err;
	err = label_selection_check(&r->selection, d->goroutines, d->labels);
	return err ? err : origin_table_new(d->modules, r->build, &d->origins);
}

/* A census looks at stacks too, for how deep they are, but at no object. */
static struct error *drop_root(struct root_sink *sink, const struct root *root)
{
	(void)sink, (void)root;
	return NULL;
}

static struct error *read_stack_roots(struct decoded *d, struct root_sink *sink)
{
	uint32_t count = goroutine_table_count(d->goroutines);
	struct error *err = NULL;

	d->scans = calloc(count + (size_t)1, sizeof(*d->scans));
	if (!d->scans)
		return &error_nomem;
	for (uint32_t i = 0; !err && i < count; i++)
		if (goroutine_is_alive(goroutine_table_at(d->goroutines, i)))
			err = stack_roots(d->walker, i, sink, &d->scans[i]);
	return err;
}

static struct error *read_other_roots(struct decoded *d, struct root_sink *sink)
{
	const struct decode_request *r = d->request;
	struct error *err = module_table_roots(d->modules, r->memory, r->layout, sink);

	if (!err)
		err = stack_system_roots(d->walker, sink);
	if (!err)
		err = special_table_roots(d->specials, r->memory, r->layout, sink);
	if (!err)
		err = special_queue_roots(r->memory, r->layout, sink);
	return err;
}

/* All that is taken before the graph is known now, and so is how large that can become. */
static void find_need(struct decoded *d)
{
	const struct decode_request *r = d->request;
	struct heap_extent extent;
	const struct memory_need_input input = {
		.extent = &extent,
		.base = memory_need_taken(),
		.spans_read = true,
		.labels = r->want_labels,
		.many_parties = d->labels && label_table_count(d->labels) + 3 > MARK_PARTIES_MAX,
		.questions = memory_need_questions(r->analysis, r->keeps, r->stopped),
		.goroutines = goroutine_table_count(d->goroutines),
		.threads = r->worker_count,
	};

	heap_extent_of(d->spans, &extent);
	memory_need_find(&input, &d->need);
}

/* Are types and chains of objects wanted, or may they be? */
static bool walks(const struct decode_request *r)
{
	return r->keeps || (r->analysis && analysis_wants_walk(r->analysis));
}

static struct error *read_objects(struct decoded *d)
{
	const struct decode_request *r = d->request;
	struct error *err = root_set_new(d->spans, &d->roots);

	if (!err)
		err = read_stack_roots(d, root_set_sink(d->roots));
	if (!err)
		err = read_other_roots(d, root_set_sink(d->roots));
	if (err)
		return error_context(err, "roots");
	find_need(d);
	err = (walks(r) ? graph_read_noted
			: graph_read)(r->memory, r->layout, d->spans, r->worker_count,
				      memory_need_left(&d->need, r->memory_limit), &d->graph);
	if (err ||
	    !(r->want_labels || r->keeps || (r->analysis && analysis_wants_retained(r->analysis))))
		return err;
	return label_owners_read(r->memory, r->layout, d->graph, d->goroutines, &d->owners);
}

struct range_sink {
	struct metadata_sink sink;
	struct range_list *ranges;
};

static struct error *add_range(struct metadata_sink *sink, taddr start, uint64_t size)
{
	return range_list_add(((struct range_sink *)sink)->ranges, start, start + size);
}

static struct error *find_metadata(struct decoded *d)
{
	struct range_sink sink = { .sink.add = add_range, .ranges = &d->metadata };
	struct error *err = metadata_find(d->request->memory, d->request->layout,
					  span_table_arenas(d->spans), d->modules, &sink.sink);

	range_list_join(&d->metadata);
	return err;
}

static struct error *list_stacks(struct decoded *d)
{
	const struct machine_table *machines = goroutine_table_machines(d->goroutines);
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < goroutine_table_count(d->goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(d->goroutines, i);

		err = range_list_add(&d->stacks, g->stack_lo, g->stack_hi);
	}
	for (uint32_t i = 0; !err && i < machines->count; i++) {
		const struct machine *m = &machines->machines[i];

		err = range_list_add(&d->stacks, m->g0_stack.lo, m->g0_stack.hi);
		if (!err)
			err = range_list_add(&d->stacks, m->signal_stack.lo, m->signal_stack.hi);
	}
	range_list_join(&d->stacks);
	return err;
}

static struct error *read_list(struct decoded *d)
{
	const struct goroutine_list_input input = {
		.goroutines = d->goroutines,
		.modules = d->modules,
		.walker = d->walker,
		.scans = d->scans,
		.labels = d->labels,
		.want_dead = d->request->want_dead_goroutines,
	};

	return d->request->want_goroutines ? goroutine_list_read(&input, &d->list) : NULL;
}

/* Everything that needs the target's memory. */
static struct error *read_all(struct decoded *d, Goheapd__ScanResult *result)
{
	struct root_sink nowhere = { .add = drop_root };
	struct error *err = read_tables(d);

	if (!err)
		err = read_labels(d);
	if (err)
		return err;
	err = d->request->census ? read_stack_roots(d, &nowhere) : read_objects(d);
	if (!err)
		err = read_list(d);
	if (!err)
		err = find_metadata(d);
	if (!err)
		err = scan_report_read(d, result);
	return err;
}

static struct error *mark(struct decoded *d)
{
	const struct decode_request *r = d->request;

	if (!d->graph)
		return NULL;
	if (r->want_labels)
		return label_usage_mark(&d->sets, d, &d->mark);
	return mark_run(d->graph, d->roots, d->specials, r->worker_count, &d->mark);
}

/* What is left to do once the memory is gone. */
static struct error *finish(struct decoded *d, Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	if (!d->resident)
		err = read_resident(d);
	if (!err)
		err = list_stacks(d);
	if (!err && d->request->want_labels)
		err = label_usage_init_sets(&d->sets, d);
	if (!err)
		err = mark(d);
	if (!err && d->request->want_labels)
		err = label_usage_count(&d->sets, d);
	if (!err)
		err = scan_report_finish(d, result);
	return err;
}

/*
 * The target stands still, or questions come later. Otherwise what has to be read of objects, which
 * is little (agent/analysis/reference_noted.c), is read from the snapshot.
 */
static bool copies_heap(const struct decoded *d)
{
	return d->request->stopped || d->request->keeps;
}

/* Objects are read as chains are followed: the memory has to stay until then. */
static bool reads_on(const struct decoded *d)
{
	return d->analysis && walks(d->request) && !copies_heap(d);
}

static struct error *read_analysis(struct decoded *d)
{
	const struct decode_request *r = d->request;
	const struct analysis_means means = {
		.names = r->keeps || (r->analysis && analysis_wants_names(r->analysis)),
		.walks = walks(r),
		.copies_heap = copies_heap(d),
	};
	struct error *err = NULL;

	if ((!r->analysis && !r->keeps) || r->census)
		return NULL;
	err = analysis_read(d, &means, &d->analysis);
	if (!err && !reads_on(d))
		err = analysis_let_go(d->analysis);
	return err;
}

static struct error *answer(struct decoded *d, Goheapd__ScanResult *result)
{
	if (!d->request->analysis)
		return NULL;
	if (!d->analysis)
		return error_new(ERROR_BAD_REQUEST, "a census knows no objects");
	return analysis_answer(d->analysis, d->request->analysis, result);
}

static struct error *run(struct decoded *d, Goheapd__ScanResult *result)
{
	const struct decode_request *r = d->request;
	struct error *err = maps_read(r->maps_fd, &d->maps);

	if (!err && !r->stopped)
		err = read_resident(d);
	if (!err)
		err = read_all(d, result);
	if (!err)
		err = read_analysis(d);
	if (!err && !reads_on(d))
		err = r->done_reading(r->arg);
	if (!err)
		err = finish(d, result);
	if (!err)
		err = answer(d, result);
	if (!err && reads_on(d))
		err = r->done_reading(r->arg);
	return err;
}

static bool is_want_of_memory(const struct error *err)
{
	return error_code(err) == ERROR_OUT_OF_MEMORY || error_code(err) == ERROR_NOMEM;
}

static struct error *run_into(struct decoded *decoded, Goheapd__ScanResult **ret)
{
	const struct decode_request *request = decoded->request;
	Goheapd__ScanResult *result = NULL;
	struct error *err = scan_report_new(&result);

	if (err)
		return err;
	err = run(decoded, result);
	if (err && decoded->need.enough && is_want_of_memory(err))
		err = memory_need_refuse(&decoded->need, request->memory_limit, err);
	if (err) {
		goheapd__scan_result__free_unpacked(result, NULL);
		return err;
	}
	*ret = result;
	return NULL;
}

struct error *decode_run(const struct decode_request *request, Goheapd__ScanResult **ret)
{
	struct decoded decoded scoped(decoded_fini) = { .request = request };

	return run_into(&decoded, ret);
}

void decoded_free(struct decoded *decoded)
{
	if (!decoded)
		return;
	decoded_fini(decoded);
	free(decoded);
}

struct error *decode_run_kept(const struct decode_request *request, struct decoded **ret_decoded,
			      Goheapd__ScanResult **ret)
{
	struct decoded *decoded = calloc(1, sizeof(*decoded));
	struct error *err;

	if (!decoded)
		return &error_nomem;
	decoded->request = request;
	err = run_into(decoded, ret);
	if (err)
		decoded_free(decoded);
	else
		*ret_decoded = decoded;
	return err;
}

/* The answer has a report of label sets of its own: the first one may have had no detail. */
static struct error *report_labels(struct decoded *decoded, Goheapd__ScanResult *result)
{
	if (!decoded->request->want_labels)
		return error_new(ERROR_UNSUPPORTED, "label sets were not kept with the scan");
	return label_report_fill(decoded, true, result);
}

struct error *decode_answer(struct decoded *decoded, const Goheapd__Analysis *analysis,
			    Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	if (!decoded->analysis)
		return error_new(ERROR_UNSUPPORTED, "a census keeps no objects");
	if (analysis->label_types || analysis->has_globals)
		err = report_labels(decoded, result);
	return err ? err : analysis_answer(decoded->analysis, analysis, result);
}
