#include "daemon/render_text_labels.h"

#include "daemon/label_query.h"
#include "daemon/label_text.h"

enum {
	NAME_COLUMNS = 34,
	WHO_ROWS_MAX = 4,      /* one screen has the rest of the page, too */
	GROUP_ROWS_MAX = 1000, /* who groups wants to see all; the JSON has what is beyond */
};

/* ---- figures ---- */

/* What a row says; absent figures are dashes. */
struct figures {
	bool has_bytes;
	uint64_t alone, shared, reachable; /* shared: of what others reach too */
	bool has_stacks;
	uint64_t stacks, goroutines;
	bool has_parked;
	uint64_t parked;
};

/* A table in one unit. */
struct table {
	struct text *text;
	struct size_unit unit;
	bool reachable, parked; /* has these columns */
};

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct figures figures_of(const Goheapd__LabelUsage *usage)
{
	return (struct figures){
		.has_bytes = usage->has_share_bytes && usage->has_exclusive_bytes,
		.alone = usage->exclusive_bytes,
		.shared = minus(usage->share_bytes, usage->exclusive_bytes),
		.reachable = usage->reachable_bytes,
		.has_stacks = true,
		.stacks = usage->stack_bytes,
		.goroutines = usage->goroutines,
		.has_parked = usage->has_parked_goroutines,
		.parked = usage->parked_goroutines,
	};
}

static void figures_add(struct figures *sum, const struct figures *more)
{
	sum->has_bytes |= more->has_bytes;
	sum->alone += more->alone;
	sum->shared += more->shared;
	sum->reachable += more->reachable;
	sum->has_stacks |= more->has_stacks;
	sum->stacks += more->stacks;
	sum->goroutines += more->goroutines;
	sum->has_parked |= more->has_parked;
	sum->parked += more->parked;
}

static void append_size(const struct table *table, bool has, uint64_t bytes)
{
	if (has)
		text_in_unit(table->text, table->unit, 9, bytes);
	else
		text_printf(table->text, "%9s", "-");
}

static void append_count(const struct table *table, int width, bool has, uint64_t count)
{
	struct text number;
	struct error *err;

	text_init(&number);
	if (has)
		text_count(&number, count);
	else
		text_string(&number, "-");
	text_append(&number, "", 1);
	err = text_finish(&number);
	if (err)
		text_fail(table->text, err);
	else
		text_printf(table->text, "%*s", width, (const char *)number.bytes.data);
	text_fini(&number);
}

/* The name stands at the line's start already. */
static void append_figures(const struct table *table, const struct figures *figures)
{
	text_pad(table->text, NAME_COLUMNS + 2, 1);
	append_size(table, figures->has_bytes, figures->alone);
	append_size(table, figures->has_bytes, figures->shared);
	if (table->reachable)
		append_size(table, figures->has_bytes, figures->reachable);
	append_size(table, figures->has_stacks, figures->stacks);
	append_count(table, 12, figures->has_stacks, figures->goroutines);
	if (table->parked)
		append_count(table, 9, figures->has_parked, figures->parked);
}

static void append_heading(const struct table *table)
{
	text_pad(table->text, NAME_COLUMNS + 2, 1);
	text_printf(table->text, "%9s%9s", "alone", "share");
	if (table->reachable)
		text_printf(table->text, "%9s", "reach");
	text_printf(table->text, "%9s%12s", "stacks", "goroutines");
	if (table->parked)
		text_printf(table->text, "%9s", "parked");
	text_string(table->text, "\n");
}

/* ---- rows by what they hold ---- */

/* A row of a list, before it is known whether it is among the first. */
struct candidate {
	const Goheapd__LabelUsage *usage;
	size_t index;
};

/* Largest share first; without shares most goroutines first; else as they came. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->usage->share_bytes != y->usage->share_bytes)
		return x->usage->share_bytes > y->usage->share_bytes ? -1 : 1;
	if (x->usage->goroutines != y->usage->goroutines)
		return x->usage->goroutines > y->usage->goroutines ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

typedef const Goheapd__LabelUsage *usage_at(const Goheapd__LabelReport *report, size_t index);
typedef void name_at(struct text *text, const struct scan_view *view,
		     const Goheapd__LabelReport *report, size_t index);

/* A list of rows: how many there are, what they hold, and how they are called. */
struct list {
	const struct scan_view *view; /* for the names */
	const Goheapd__LabelReport *report;
	size_t count, rows_max;
	usage_at *usage;
	name_at *name;
};

/* What is left after the first rows, as one. */
static void append_more(const struct table *table, const struct candidate *rest, size_t count)
{
	struct figures sum = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct figures figures = figures_of(rest[i].usage);

		figures_add(&sum, &figures);
	}
	text_string(table->text, "  and ");
	text_count(table->text, count);
	text_string(table->text, " more");
	append_figures(table, &sum);
	text_string(table->text, "\n");
}

/* One row too many is shown rather than summed up. */
static void append_list(const struct table *table, const struct list *list)
{
	struct candidate *rows scoped(freep) = calloc(list->count + 1, sizeof(*rows));
	size_t shown = list->count <= list->rows_max + 1 ? list->count : list->rows_max;

	if (!rows) {
		text_fail(table->text, &error_nomem);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		rows[i] = (struct candidate){ .usage = list->usage(list->report, i), .index = i };
	qsort(rows, list->count, sizeof(*rows), compare_candidates);
	for (size_t i = 0; i < shown; i++) {
		struct figures figures = figures_of(rows[i].usage);

		text_string(table->text, "  ");
		list->name(table->text, list->view, list->report, rows[i].index);
		append_figures(table, &figures);
		text_string(table->text, "\n");
	}
	if (shown < list->count)
		append_more(table, rows + shown, list->count - shown);
}

/* ---- who holds it ---- */

static const Goheapd__LabelUsage *usage_of_set(const Goheapd__LabelReport *report, size_t index)
{
	return report->sets[index]->usage;
}

static void name_of_set(struct text *text, const struct scan_view *view,
			const Goheapd__LabelReport *report, size_t index)
{
	(void)view;
	text_labels(text, report->sets[index]->labels, report->sets[index]->n_labels,
		    NAME_COLUMNS - 1);
}

/* Globals have no stacks, and on their line is room for the runtime's own goroutines. */
static void append_globals(const struct table *table, const Goheapd__LabelReport *report)
{
	const Goheapd__GlobalUsage *global = report->global;
	const struct figures figures = {
		.has_bytes = global->has_share_bytes && global->has_exclusive_bytes,
		.alone = global->exclusive_bytes,
		.shared = minus(global->share_bytes, global->exclusive_bytes),
	};

	text_string(table->text, "  globals");
	append_figures(table, &figures);
	if (report->system->has_share_bytes) {
		text_string(table->text, "  system ");
		text_in_unit(table->text, table->unit, 0, report->system->share_bytes);
	}
	text_string(table->text, "\n");
}

void text_who(struct text *text, const Goheapd__LabelReport *report, struct size_unit unit)
{
	const struct table table = { .text = text, .unit = unit };
	const struct list sets = {
		.report = report,
		.count = report->n_sets,
		.rows_max = WHO_ROWS_MAX,
		.usage = usage_of_set,
		.name = name_of_set,
	};
	struct figures unlabelled = figures_of(report->unlabelled);

	text_string(text, unlabelled.has_bytes ? "WHO (sums to live)" : "WHO");
	append_heading(&table);
	append_list(&table, &sets);
	text_string(text, "  no label");
	append_figures(&table, &unlabelled);
	text_string(text, "\n");
	if (unlabelled.has_bytes)
		append_globals(&table, report);
}

/* ---- what was asked for ---- */

static const Goheapd__LabelUsage *usage_of_group(const Goheapd__LabelReport *report, size_t index)
{
	return report->groups[index]->usage;
}

static void name_of_group(struct text *text, const struct scan_view *view,
			  const Goheapd__LabelReport *report, size_t index)
{
	const Goheapd__LabelGroup *group = report->groups[index];

	if (group->has_value) {
		text_label_part(text, group->value, NAME_COLUMNS - 1);
	} else {
		text_string(text, "no ");
		text_label_part(text, view->labels->by, NAME_COLUMNS - 4);
	}
}

/* What the table's largest figure is like. */
static uint64_t largest_figure(const Goheapd__LabelUsage *usage)
{
	return usage->reachable_bytes > usage->stack_bytes ? usage->reachable_bytes
							   : usage->stack_bytes;
}

/* "SELECTED", and the line of what was. */
static void append_selection(struct text *text, const struct scan_view *view,
			     const Goheapd__LabelUsage *usage)
{
	const struct label_query *query = view->labels;
	const struct table table = { .text = text,
				     .unit = size_unit_for(largest_figure(usage)),
				     .reachable = true,
				     .parked = query->detail };
	Goheapd__LabelPair *pairs[LIMIT_SELECT_LABELS];
	struct figures figures = figures_of(usage);

	for (size_t i = 0; i < query->select_count; i++)
		pairs[i] = (Goheapd__LabelPair *)(uintptr_t)&query->select[i];
	text_printf(text, "SELECTED (%s)", table.unit.name);
	append_heading(&table);
	text_string(text, "  ");
	text_labels(text, pairs, query->select_count, NAME_COLUMNS - 1);
	append_figures(&table, &figures);
	text_string(text, "\n");
}

static void append_groups(struct text *text, const struct scan_view *view,
			  const Goheapd__LabelReport *report)
{
	const struct list groups = {
		.view = view,
		.report = report,
		.count = report->n_groups,
		.rows_max = GROUP_ROWS_MAX,
		.usage = usage_of_group,
		.name = name_of_group,
	};
	struct table table = { .text = text, .reachable = true, .parked = view->labels->detail };
	uint64_t largest = 0;

	for (size_t i = 0; i < report->n_groups; i++) {
		uint64_t figure = largest_figure(report->groups[i]->usage);

		largest = figure > largest ? figure : largest;
	}
	table.unit = size_unit_for(largest);
	text_string(text, "BY ");
	text_label_part(text, view->labels->by, NAME_COLUMNS - 10);
	text_printf(text, " (%s)", table.unit.name);
	append_heading(&table);
	append_list(&table, &groups);
}

void text_label_answers(struct text *text, const struct scan_view *view)
{
	const Goheapd__LabelReport *report = view->result->labels;

	if (!view->labels || !report)
		return;
	if (view->labels->select_count && report->selection)
		append_selection(text, view, report->selection);
	if (view->labels->has_by)
		append_groups(text, view, report);
}

uint64_t text_labels_unread(const Goheapd__LabelStatus *status)
{
	return status->unsupported_runtime + status->g_object_missing +
	       status->labels_object_missing + status->label_array_missing +
	       status->string_missing + status->malformed;
}
