#include "daemon/render_diff.h"

#include <inttypes.h>
#include <math.h>

#include "daemon/diff.h"
#include "daemon/label_text.h"
#include "daemon/pprof_size.h"
#include "daemon/render_json_common.h"
#include "daemon/render_json_labels.h"
#include "daemon/render_pprof.h"
#include "daemon/render_text_common.h"
#include "daemon/render_text_profile.h"

enum { TEXT_ROWS = 10, LABEL_COLUMNS = 60, NS_PER_SECOND = 1000000000 };

/* What is written, in whatever form. */
struct diff_view {
	const struct diff *diff;
	const struct diff_scan *from, *to;
	const Goheapd__ProfileQuery *query;
	const struct chain_tree *chains; /* diff's, of which the small ones have been folded */
};

/* ---- JSON ---- */

static void add_signed(struct json_fields *fields, const char *key, int64_t value)
{
	json_add(fields, key, json_integer(value));
}

static void add_real(struct json_fields *fields, const char *key, bool has, double value)
{
	json_add(fields, key, has && isfinite(value) ? json_real(value) : json_null());
}

static void write_head(struct text *text, const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	struct json_fields fields, heap, unknown;

	json_fields_init(&heap);
	add_signed(&heap, "live_bytes", diff->live_bytes);
	add_signed(&heap, "live_objects", diff->live_objects);
	json_fields_init(&unknown);
	add_signed(&unknown, "objects", diff->unknown_objects);
	add_signed(&unknown, "bytes", diff->unknown_bytes);
	json_fields_init(&fields);
	json_add_string(&fields, "from", view->from->view.id);
	json_add_string(&fields, "to", view->to->view.id);
	json_add_u64(&fields, "from_pid", view->from->view.result->identity->pid);
	json_add_time(&fields, "from_started_at", view->from->view.result->scan->started_at_ns);
	add_real(&fields, "seconds", true, diff->seconds);
	json_add_fields(&fields, "heap", &heap);
	add_real(&fields, "slope_bytes_per_second", diff->has_slope, diff->slope);
	add_real(&fields, "seconds_to_limit", diff->has_seconds_to_limit, diff->seconds_to_limit);
	json_add_fields(&fields, "unknown", &unknown);
	json_write_fields(text, &fields);
}

static void write_types(struct text *text, const struct name_sums *types)
{
	json_begin(text, "types", '[');
	for (size_t i = 0; i < types->count; i++) {
		const struct name_sum *sum = &types->sums[i];
		struct json_fields row;

		if (!sum->objects && !sum->bytes)
			continue;
		json_fields_init(&row);
		json_add_bytes(&row, "type", sum->name);
		add_signed(&row, "objects", sum->objects);
		add_signed(&row, "bytes", sum->bytes);
		json_write_element(text, &row);
	}
	json_end(text, ']');
}

static void write_labels(struct text *text, const struct diff *diff)
{
	struct json_fields fields;

	if (!diff->has_labels) {
		json_fields_init(&fields);
		json_add_null(&fields, "labels");
		json_write_fields(text, &fields);
		return;
	}
	json_begin(text, "labels", '[');
	for (size_t i = 0; i < diff->label_count; i++) {
		const struct diff_labels *row = &diff->labels[i];

		json_fields_init(&fields);
		render_json_pairs(&fields, "labels", row->labels.pairs, row->labels.count);
		add_signed(&fields, "goroutines", row->goroutines);
		if (row->has_bytes) {
			add_signed(&fields, "reachable_bytes", row->reachable_bytes);
			add_signed(&fields, "exclusive_bytes", row->exclusive_bytes);
		} else {
			json_add_null(&fields, "reachable_bytes");
			json_add_null(&fields, "exclusive_bytes");
		}
		json_write_element(text, &fields);
	}
	json_end(text, ']');
}

static json_t *chain_list(const struct chain_tree *tree, uint32_t leaf)
{
	json_t *list = json_array();
	bool failed = false;

	for (uint32_t node = leaf; node != ID_NONE; node = tree->nodes[node].parent) {
		json_t *name = json_from_bytes(tree->frames[tree->nodes[node].frame].name);

		failed |= json_array_insert_new(list, 0, name) < 0;
	}
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

static void write_chain(struct text *text, const struct diff_view *view, uint32_t leaf)
{
	const struct chain_node *node = &view->chains->nodes[leaf];
	struct json_fields row;

	json_fields_init(&row);
	json_add(&row, "chain", chain_list(view->chains, leaf));
	if (!view->query->labels) {
		json_add_null(&row, "labels");
	} else {
		const struct chain_labels none = { 0 };
		const struct chain_labels *labels =
		    node->labels == ID_NONE ? &none : &view->chains->labels[node->labels];

		render_json_pairs(&row, "labels", labels->pairs, labels->count);
	}
	add_signed(&row, "objects", node->objects);
	add_signed(&row, "bytes", node->bytes);
	json_write_element(text, &row);
}

static void write_chains(struct text *text, const struct diff_view *view)
{
	uint32_t *leaves scoped(freep) = NULL;
	size_t count = 0;
	struct error *err = chain_tree_leaves(view->chains, &leaves, &count);

	json_begin(text, "references", '[');
	for (size_t i = 0; !err && i < count; i++)
		write_chain(text, view, leaves[i]);
	json_end(text, ']');
	text_fail(text, err);
}

static void write_json(struct text *text, const struct diff_view *view)
{
	json_begin(text, NULL, '{');
	render_json_scan_head(text, &view->to->view);
	json_begin(text, "diff", '{');
	write_head(text, view);
	write_types(text, &view->diff->types);
	write_labels(text, view->diff);
	write_chains(text, view);
	json_end(text, '}');
	json_end(text, '}');
	text_string(text, "\n");
}

/* ---- text ---- */

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static void append_signed_size(struct text *text, int64_t bytes)
{
	text_string(text, bytes < 0 ? "-" : "+");
	text_size(text, magnitude(bytes));
}

static void append_signed_count(struct text *text, int64_t count)
{
	text_string(text, count < 0 ? "-" : "+");
	text_count(text, magnitude(count));
}

/* "CHANGE in 30.0 s: live +11.2 KiB, +120 objects; +384 B/s, limit in 5h12m" */
static void append_change(struct text *text, const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	const Goheapd__Identity *from = view->from->view.result->identity;

	text_printf(text, "CHANGE in %.1f s: live ", diff->seconds);
	append_signed_size(text, diff->live_bytes);
	text_string(text, ", ");
	append_signed_count(text, diff->live_objects);
	text_string(text, " objects");
	if (diff->has_slope && fabs(diff->slope) < (double)INT64_MAX / 2) {
		text_string(text, "; ");
		append_signed_size(text, (int64_t)diff->slope);
		text_string(text, "/s");
	}
	if (diff->has_seconds_to_limit && diff->seconds_to_limit < (double)INT64_MAX / 2) {
		text_string(text, ", limit in ");
		text_duration(text, (uint64_t)diff->seconds_to_limit);
	}
	text_string(text, "\n");
	if (from->pid != view->to->view.result->identity->pid) {
		text_string(text, "FROM   ");
		text_identity(text, from, view->from->view.result->scan->started_at_ns);
		text_string(text, "\n");
	}
}

/* Sizes by themselves: sets differ by orders of magnitude. */
static void append_labels(struct text *text, const struct diff *diff)
{
	if (!diff->label_count)
		return;
	text_string(text, "LABELS       alone       reach  goroutines\n");
	for (size_t i = 0; i < diff->label_count && i < TEXT_ROWS; i++) {
		const struct diff_labels *row = &diff->labels[i];
		size_t column = 6;

		text_pad(text, column, 0);
		append_signed_size(text, row->exclusive_bytes);
		text_pad(text, column + 12, 1);
		append_signed_size(text, row->reachable_bytes);
		text_pad(text, column + 24, 1);
		append_signed_count(text, row->goroutines);
		text_pad(text, column + 34, 2);
		if (row->labels.count)
			text_labels(text, row->labels.pairs, row->labels.count, LABEL_COLUMNS);
		else
			text_string(text, "no label");
		text_end_line(text);
	}
}

static void write_text(struct text *text, const struct diff_view *view)
{
	const struct chain_page page = { .tree = view->chains,
					 .is_change = true,
					 .row_count = TEXT_ROWS,
					 .types = &view->diff->types };
	const Goheapd__ScanInfo *scan = view->to->view.result->scan;

	text_scan_head(text, &view->to->view);
	append_change(text, view);
	text_chains(text, &page);
	append_labels(text, view->diff);
	text_warnings(text, scan->warnings, scan->n_warnings);
}

/* ---- pprof ---- */

static void write_pprof(struct text *text, const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	struct pprof_about about = { .retained = view->query->retained };
	struct text comments;
	struct error *err;

	text_init(&comments);
	text_printf(&comments, "change since scan %s of pid %" PRIu32 "\n", view->from->view.id,
		    view->from->view.result->identity->pid);
	err = text_finish(&comments);
	if (diff->seconds > 0)
		about.duration_ns = (uint64_t)(diff->seconds * NS_PER_SECOND);
	about.comments =
	    (ProtobufCBinaryData){ .len = comments.bytes.size, .data = comments.bytes.data };
	if (err)
		text_fail(text, err);
	else
		render_pprof(text, view->chains, view->to->view.result, &about,
			     view->query->max_samples);
	text_fini(&comments);
}

/* ---- comparing ---- */

typedef void diff_writer(struct text *text, const struct diff_view *view);

static struct error *fold(const struct chain_tree *tree, const Goheapd__ProfileQuery *query,
			  struct chain_tree *ret)
{
	const struct pprof_limits limits = { .samples = query->max_samples, .bytes = SIZE_MAX };
	uint64_t *weights scoped(freep) = NULL;
	struct chain_tree large;
	struct error *err = chain_tree_weights(tree, &weights);

	if (!err)
		err = chain_tree_fold(tree, weights, query->min_bytes, &large);
	if (err)
		return err;
	err = pprof_fit(&large, &limits, ret);
	chain_tree_fini(&large);
	return err;
}

static struct error *write_diff(struct text *text, const struct diff_question *question,
				const struct diff *diff, diff_writer *write)
{
	struct diff_view view = {
		.diff = diff,
		.from = &question->from,
		.to = &question->to,
		.query = question->query,
	};
	struct chain_tree folded;
	struct error *err = fold(&diff->chains, question->query, &folded);

	if (err)
		return err;
	view.chains = &folded;
	write(text, &view);
	chain_tree_fini(&folded);
	return NULL;
}

static void compare(struct text *text, const struct diff_question *question, diff_writer *write)
{
	const struct diff_side from = { question->from.view.result, question->from.objects };
	const struct diff_side to = { question->to.view.result, question->to.objects };
	struct diff diff;
	struct error *err = diff_init(&diff, &from, &to, question->query->max_depth);

	if (!err)
		err = write_diff(text, question, &diff, write);
	text_fail(text, err);
	diff_fini(&diff);
}

void render_json_diff(struct text *text, const struct diff_question *question)
{
	compare(text, question, write_json);
}

void render_text_diff(struct text *text, const struct diff_question *question)
{
	compare(text, question, write_text);
}

void render_pprof_diff(struct text *text, const struct diff_question *question)
{
	compare(text, question, write_pprof);
}
