/*
 * Memusage as metrics. A family holds either parts that add up or one total, never both, so that a
 * sum over it means something. docs/metrics.md lists them all.
 */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/label_query.h"
#include "daemon/label_series.h"
#include "daemon/metric_writer.h"
#include "daemon/render.h"
#include "daemon/render_text_common.h"

#define BYTES   "bytes"
#define SECONDS "seconds"

/* ---- samples ---- */

static void gauge(struct metric_writer *writer, const char *name, const char *unit,
		  const char *help, bool has, uint64_t value)
{
	const struct metric_family family = { .name = name, .unit = unit, .help = help };

	if (!has)
		return;
	metric_family_begin(writer, &family);
	metric_begin(writer);
	metric_end(writer, value);
}

static void seconds(struct metric_writer *writer, const char *name, const char *help,
		    uint64_t value, unsigned decimals)
{
	const struct metric_family family = { .name = name, .unit = SECONDS, .help = help };

	metric_family_begin(writer, &family);
	metric_begin(writer);
	metric_end_decimal(writer, value, decimals);
}

/* A sample of the family under way, told apart by one label. */
static void part(struct metric_writer *writer, const char *key, const char *name, bool has,
		 uint64_t value)
{
	if (!has)
		return;
	metric_begin(writer);
	metric_label(writer, key, text_bytes(name));
	metric_end(writer, value);
}

/* ---- process and scan ---- */

static void info_label(struct metric_writer *writer, const char *key, bool has,
		       ProtobufCBinaryData value)
{
	metric_label(writer, key, has ? value : (ProtobufCBinaryData){ 0 });
}

static void write_identity(struct metric_writer *writer, const Goheapd__Identity *identity)
{
	static const struct metric_family family = { .name = "goheapd_process",
						     .help = "Which process this is.",
						     .is_info = true };
	const Goheapd__Build *build = identity->build;
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, identity->pid);
	metric_family_begin(writer, &family);
	metric_begin(writer);
	metric_label(writer, "pid", text_bytes(pid));
	metric_label(writer, "comm", identity->comm);
	metric_label(writer, "exe", identity->exe);
	metric_label(writer, "go_version", identity->go_version);
	info_label(writer, "module", build->has_module, build->module);
	info_label(writer, "version", build->has_version, build->version);
	info_label(writer, "vcs_revision", build->has_vcs_revision, build->vcs_revision);
	metric_end(writer, 1);
	seconds(writer, "goheapd_process_start_time_seconds",
		"When the process started, since the epoch.", identity->start_time_ns, 9);
}

static void write_scan(struct metric_writer *writer, const Goheapd__ScanInfo *scan)
{
	seconds(writer, "goheapd_scan_timestamp_seconds",
		"When the process was stopped for these figures, since the epoch.",
		scan->started_at_ns, 9);
	seconds(writer, "goheapd_scan_pause_seconds",
		"How long the process was stopped for these figures.", scan->pause_us, 6);
	seconds(writer, "goheapd_scan_duration_seconds", "How long these figures took.",
		scan->total_us, 6);
}

/* ---- memory ---- */

static void write_parts(struct metric_writer *writer, const Goheapd__MemoryNode *root)
{
	static const struct metric_family mapped = {
		.name = "goheapd_memory_mapped_part_bytes",
		.unit = BYTES,
		.help = "Address space in use, by what it is for; sums to "
			"goheapd_memory_mapped_bytes."
	};
	static const struct metric_family resident = {
		.name = "goheapd_memory_resident_part_bytes",
		.unit = BYTES,
		.help = "Memory in RAM, by what it is for; sums to goheapd_memory_resident_bytes."
	};

	metric_family_begin(writer, &mapped);
	for (size_t i = 0; i < root->n_children; i++)
		part(writer, "part", root->children[i]->id, true, root->children[i]->bytes);
	metric_family_begin(writer, &resident);
	for (size_t i = 0; i < root->n_children; i++)
		part(writer, "part", root->children[i]->id, true,
		     root->children[i]->resident_bytes);
}

static void write_memory(struct metric_writer *writer, const Goheapd__ScanResult *result)
{
	const Goheapd__MemoryNode *root = result->memory;

	if (root) {
		gauge(writer, "goheapd_memory_mapped_bytes", BYTES, "Address space in use.", true,
		      root->bytes);
		gauge(writer, "goheapd_memory_resident_bytes", BYTES,
		      "Memory in RAM, as the page tables have it.", true, root->resident_bytes);
		write_parts(writer, root);
	}
	gauge(writer, "goheapd_memory_rss_bytes", BYTES, "Memory in RAM, as the kernel counts it.",
	      result->has_rss_bytes, result->rss_bytes);
}

static void write_allocated(struct metric_writer *writer, const Goheapd__HeapTotals *heap)
{
	static const struct metric_family bytes = {
		.name = "goheapd_heap_allocated_part_bytes",
		.unit = BYTES,
		.help = "Allocated heap, by whether the collector would keep it."
	};
	static const struct metric_family objects = {
		.name = "goheapd_heap_allocated_part_objects",
		.help = "Allocated objects, by whether the collector would keep them."
	};

	metric_family_begin(writer, &bytes);
	part(writer, "part", "live", heap->has_live_bytes, heap->live_bytes);
	part(writer, "part", "finalizable", heap->has_finalizable_bytes, heap->finalizable_bytes);
	part(writer, "part", "garbage", heap->has_garbage_bytes, heap->garbage_bytes);
	metric_family_begin(writer, &objects);
	part(writer, "part", "live", heap->has_live_objects, heap->live_objects);
	part(writer, "part", "finalizable", heap->has_finalizable_objects,
	     heap->finalizable_objects);
	part(writer, "part", "garbage", heap->has_garbage_objects, heap->garbage_objects);
}

static void write_heap(struct metric_writer *writer, const Goheapd__HeapTotals *heap)
{
	gauge(writer, "goheapd_heap_allocated_bytes", BYTES,
	      "Heap that is allocated, as the runtime counts it.", true, heap->allocated_bytes);
	gauge(writer, "goheapd_heap_allocated_objects", NULL,
	      "Objects that are allocated, as the runtime counts them.", true,
	      heap->allocated_objects);
	write_allocated(writer, heap);
	gauge(writer, "goheapd_heap_free_bytes", BYTES, "Free slots in spans that are in use.",
	      true, heap->free_bytes);
	gauge(writer, "goheapd_heap_round_bytes", BYTES,
	      "Ends of spans that are too short for a slot.", true, heap->round_bytes);
	gauge(writer, "goheapd_heap_goal_bytes", BYTES,
	      "The heap's size at which the collector wants to be done.", heap->has_goal_bytes,
	      heap->goal_bytes);
	gauge(writer, "goheapd_heap_marked_last_gc_bytes", BYTES,
	      "What the last collection found live.", heap->has_marked_bytes_last_gc,
	      heap->marked_bytes_last_gc);
}

static void write_stacks(struct metric_writer *writer, const Goheapd__StackTotals *stacks)
{
	gauge(writer, "goheapd_goroutines", NULL, "Goroutines, without dead ones.", true,
	      stacks->goroutines);
	gauge(writer, "goheapd_goroutine_stack_bytes", BYTES, "Stacks of goroutines.", true,
	      stacks->bytes);
	gauge(writer, "goheapd_goroutine_stack_in_use_bytes", BYTES,
	      "The part of these stacks between stack pointer and top.", true,
	      stacks->in_use_bytes);
}

/* ---- labels ---- */

typedef uint64_t figure(const struct label_sum *sum);

static uint64_t goroutines_of(const struct label_sum *sum)
{
	return sum->goroutines;
}

static uint64_t stack_bytes_of(const struct label_sum *sum)
{
	return sum->stack_bytes;
}

static uint64_t share_bytes_of(const struct label_sum *sum)
{
	return sum->share_bytes;
}

static uint64_t exclusive_bytes_of(const struct label_sum *sum)
{
	return sum->exclusive_bytes;
}

/* The families with a series for each holder. Globals have no goroutines and no stacks. */
static const struct label_family {
	struct metric_family family;
	figure *figure;
	bool needs_bytes, has_global;
} label_families[] = {
	{ { .name = "goheapd_label_goroutines", .help = "Goroutines by label set." },
	  goroutines_of,
	  false,
	  false },
	{ { .name = "goheapd_label_stack_bytes",
	    .unit = BYTES,
	    .help = "Stacks of goroutines by label set." },
	  stack_bytes_of,
	  false,
	  false },
	{ { .name = "goheapd_label_share_bytes",
	    .unit = BYTES,
	    .help = "Live heap by who reaches it, shared equally; sums to the live heap." },
	  share_bytes_of,
	  true,
	  true },
	{ { .name = "goheapd_label_exclusive_bytes",
	    .unit = BYTES,
	    .help = "Live heap that only one label set reaches, added up over the sets of a "
		    "series." },
	  exclusive_bytes_of,
	  true,
	  true },
};

/* What one row of a family says, told apart by who holds it and the allowed labels. */
static void write_holder(struct metric_writer *writer, const struct label_family *family,
			 const char *holder, const struct label_series *series)
{
	if (family->needs_bytes && !series->sum.has_bytes)
		return;
	metric_begin(writer);
	metric_label(writer, "holder", text_bytes(holder));
	metric_raw_labels(writer, series->labels, series->labels_size);
	metric_end(writer, family->figure(&series->sum));
}

static struct label_series global_series(const Goheapd__GlobalUsage *global)
{
	return (struct label_series){ .sum = { .share_bytes = global->share_bytes,
					       .exclusive_bytes = global->exclusive_bytes,
					       .has_bytes = global->has_share_bytes &&
							    global->has_exclusive_bytes } };
}

static void write_label_family(struct metric_writer *writer, const struct label_family *family,
			       const Goheapd__LabelReport *report,
			       const struct label_series_list *list)
{
	const struct label_series other = { .sum = list->other };
	const struct label_series unlabelled = { .sum = label_sum_of(report->unlabelled) };
	const struct label_series system = { .sum = label_sum_of(report->system) };
	const struct label_series global = global_series(report->global);

	metric_family_begin(writer, &family->family);
	for (size_t i = 0; i < list->count; i++)
		write_holder(writer, family, "labels", &list->series[i]);
	if (list->folded)
		write_holder(writer, family, "other", &other);
	write_holder(writer, family, "unlabelled", &unlabelled);
	write_holder(writer, family, "system", &system);
	if (family->has_global)
		write_holder(writer, family, "global", &global);
}

static void write_label_status(struct metric_writer *writer, const Goheapd__LabelStatus *status)
{
	static const struct metric_family family = {
		.name = "goheapd_label_status_goroutines",
		.help = "Goroutines by whether their labels could be read."
	};

	metric_family_begin(writer, &family);
	part(writer, "status", "decoded", true, status->decoded);
	part(writer, "status", "no_labels", true, status->no_labels);
	part(writer, "status", "unsupported_runtime", true, status->unsupported_runtime);
	part(writer, "status", "g_object_missing", true, status->g_object_missing);
	part(writer, "status", "labels_object_missing", true, status->labels_object_missing);
	part(writer, "status", "label_array_missing", true, status->label_array_missing);
	part(writer, "status", "string_missing", true, status->string_missing);
	part(writer, "status", "malformed", true, status->malformed);
}

static void write_labels(struct metric_writer *writer, const Goheapd__LabelReport *report,
			 const struct metric_settings *settings)
{
	struct label_series_list list;
	struct error *err = label_series_init(&list, report, settings);

	if (err) {
		text_fail(writer->text, err);
	} else {
		gauge(writer, "goheapd_label_sets", NULL, "Different label sets.", true,
		      report->n_sets);
		gauge(writer, "goheapd_label_series_folded", NULL,
		      "Series that are summed up as one, whose holder is other.", true,
		      list.folded);
		for (size_t i = 0; i < sizeof(label_families) / sizeof(*label_families); i++)
			write_label_family(writer, &label_families[i], report, &list);
		write_label_status(writer, report->status);
	}
	label_series_fini(&list);
}

static void write_selection(struct metric_writer *writer, const Goheapd__LabelUsage *usage)
{
	gauge(writer, "goheapd_selection_goroutines", NULL, "Goroutines that were selected.", true,
	      usage->goroutines);
	gauge(writer, "goheapd_selection_stack_bytes", BYTES, "Their stacks.", true,
	      usage->stack_bytes);
	gauge(writer, "goheapd_selection_reachable_bytes", BYTES, "Live heap that they reach.",
	      usage->has_reachable_bytes, usage->reachable_bytes);
	gauge(writer, "goheapd_selection_exclusive_bytes", BYTES,
	      "Live heap that nothing else reaches.", usage->has_exclusive_bytes,
	      usage->exclusive_bytes);
	gauge(writer, "goheapd_selection_share_bytes", BYTES,
	      "Their part of the live heap, where what several reach is shared equally.",
	      usage->has_share_bytes, usage->share_bytes);
}

/* ---- the page ---- */

static void write_page(struct text *text, const struct scan_view *view, bool is_open_metrics)
{
	const Goheapd__ScanResult *result = view->result;
	struct metric_writer writer;

	metric_writer_init(&writer, text, is_open_metrics);
	write_identity(&writer, result->identity);
	write_scan(&writer, result->scan);
	write_memory(&writer, result);
	if (result->heap)
		write_heap(&writer, result->heap);
	if (result->stacks)
		write_stacks(&writer, result->stacks);
	if (result->labels)
		write_labels(&writer, result->labels, view->metrics);
	if (result->labels && result->labels->selection && view->labels &&
	    view->labels->select_count)
		write_selection(&writer, result->labels->selection);
	metric_writer_finish(&writer);
}

void render_prometheus_memusage(struct text *text, const struct scan_view *view)
{
	write_page(text, view, false);
}

void render_openmetrics_memusage(struct text *text, const struct scan_view *view)
{
	write_page(text, view, true);
}
