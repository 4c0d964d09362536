/*
 * One process's memory on one screen, for somebody who has just been woken: who it is, what is
 * wrong, how close the limit is, what the memory in RAM is used for, how far to trust it, what
 * to run next. All figures of a page are in one unit, and the rows are resident bytes, which add
 * up to the first column.
 */
#include <inttypes.h>

#include "daemon/render_text_common.h"
#include "daemon/render_text_labels.h"

enum {
	ALARM_PERCENT = 90,
	NS_PER_SECOND = 1000000000,
	COLUMN_ROWS = 16,
	COLUMN_NOTES = 48,
	KEEPS_INDENT = 7,
	GLOBAL_COLUMNS = 40,
};

/* What a page is made from. */
struct page {
	struct text *text;
	const Goheapd__ScanResult *result;
	struct size_unit unit;
	uint64_t resident; /* what the rows add up to */
	uint64_t shown;    /* by the rows so far */
};

/* ---- the tree ---- */

static const Goheapd__MemoryNode *child(const Goheapd__MemoryNode *node, const char *id,
					size_t size)
{
	for (size_t i = 0; i < node->n_children; i++) {
		const char *have = node->children[i]->id;

		if (strlen(have) == size && memcmp(have, id, size) == 0)
			return node->children[i];
	}
	return NULL;
}

/* The node at "heap/free_spans/kept" below the root, or NULL. */
static const Goheapd__MemoryNode *node_at(const struct page *page, const char *path)
{
	const Goheapd__MemoryNode *node = page->result->memory;

	while (node && *path) {
		size_t size = strcspn(path, "/");

		node = child(node, path, size);
		path += size + (path[size] == '/');
	}
	return node;
}

static uint64_t resident_at(const struct page *page, const char *path)
{
	const Goheapd__MemoryNode *node = node_at(page, path);

	return node ? node->resident_bytes : 0;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

/* ---- what is worth waking for ---- */

static void append_limit_alarm(struct page *page, const Goheapd__Cgroup *cgroup)
{
	bool near = cgroup->has_limit_bytes && cgroup->has_current_bytes &&
		    percent(cgroup->current_bytes, cgroup->limit_bytes) >= ALARM_PERCENT;

	if (!near && !(cgroup->has_oom_kills && cgroup->oom_kills))
		return;
	text_string(page->text, "!! ");
	if (near) {
		text_printf(page->text, "%u%% of ",
			    percent(cgroup->current_bytes, cgroup->limit_bytes));
		text_size(page->text, cgroup->limit_bytes);
		text_string(page->text, " limit. ");
	}
	if (cgroup->has_oom_kills)
		text_printf(page->text, "OOM kills %" PRIu64, cgroup->oom_kills);
	text_string(page->text, "\n");
}

static bool self_check_is_ok(const Goheapd__Trust *trust)
{
	return trust->self_check.len == 2 && memcmp(trust->self_check.data, "ok", 2) == 0;
}

static void append_alarms(struct page *page)
{
	const Goheapd__ScanResult *result = page->result;
	const Goheapd__Trust *trust = result->scan->trust;

	if (result->cgroup)
		append_limit_alarm(page, result->cgroup);
	if (result->gc && result->gc->has_limiter_active && result->gc->limiter_active)
		text_string(
		    page->text,
		    "!! the collector's CPU limiter is on: it gives up on the memory limit\n");
	if (trust->has_free_slot_hits && trust->free_slot_hits) {
		text_string(page->text, "!! ");
		text_count(page->text, trust->free_slot_hits);
		text_string(page->text,
			    " exact pointers led to free slots: do not rely on live and garbage\n");
	}
	if (!self_check_is_ok(trust))
		text_note(page->text, "!!", trust->self_check);
}

/* ---- the limit ---- */

static void append_term(struct page *page, const char *sign, const char *name, uint64_t bytes)
{
	text_printf(page->text, " %s %s ", sign, name);
	text_in_unit(page->text, page->unit, 0, bytes);
}

/* What the kernel charges, taken apart; what it does not name is the process's. */
static void append_charges(struct page *page, const Goheapd__Cgroup *cgroup)
{
	uint64_t named = cgroup->file_bytes + cgroup->kernel_bytes + cgroup->others_bytes;

	if (!cgroup->has_file_bytes || !cgroup->has_kernel_bytes || !cgroup->has_others_bytes ||
	    named > cgroup->current_bytes)
		return;
	append_term(page, "=", "process", cgroup->current_bytes - named);
	append_term(page, "+", "page cache", cgroup->file_bytes);
	append_term(page, "+", "kernel", cgroup->kernel_bytes);
	append_term(page, "+", "others", cgroup->others_bytes);
}

static void append_limit(struct page *page)
{
	const Goheapd__Cgroup *cgroup = page->result->cgroup;

	if (!cgroup || !cgroup->has_current_bytes)
		return;
	text_string(page->text, "LIMIT ");
	if (cgroup->has_limit_bytes)
		text_in_unit(page->text, page->unit, 0, cgroup->limit_bytes);
	else
		text_string(page->text, "none");
	text_string(page->text, "  used ");
	text_in_unit(page->text, page->unit, 0, cgroup->current_bytes);
	append_charges(page, cgroup);
	text_printf(page->text, "   (%s)\n", page->unit.name);
}

/* ---- beside the rows ---- */

/* The goal that GOGC alone would set is above the one in force: the limit holds it down. */
static bool is_limit_bound(const Goheapd__GcState *gc)
{
	return gc->has_memory_limit_bytes && gc->has_goal_bytes && gc->has_live_last_gc_bytes &&
	       gc->has_gogc &&
	       (gc->gogc < 0 || (double)gc->live_last_gc_bytes * (1 + (double)gc->gogc / 100) >
				    (double)gc->goal_bytes * 1.01);
}

static void note_gc_settings(struct page *page)
{
	const Goheapd__GcState *gc = page->result->gc;

	if (!gc)
		return;
	text_string(page->text, "GC");
	if (gc->has_gogc && gc->gogc < 0)
		text_string(page->text, " GOGC=off");
	else if (gc->has_gogc)
		text_printf(page->text, " GOGC=%" PRId64, gc->gogc);
	if (gc->has_memory_limit_bytes) {
		text_string(page->text, " GOMEMLIMIT=");
		text_in_unit(page->text, page->unit, 0, gc->memory_limit_bytes);
	}
	if (gc->has_goal_bytes && gc->goal_bytes <= INT64_MAX) {
		text_string(page->text, " goal ");
		text_in_unit(page->text, page->unit, 0, gc->goal_bytes);
	}
	if (is_limit_bound(gc))
		text_string(page->text, " (limit-bound)");
}

static void note_gc_work(struct page *page)
{
	const Goheapd__GcState *gc = page->result->gc;
	const Goheapd__Identity *identity = page->result->identity;
	uint64_t now_ns = page->result->scan->started_at_ns;
	const char *separator = "   ";

	if (!gc)
		return;
	if (gc->has_cycles && now_ns > identity->start_time_ns) {
		double minutes = (double)(now_ns - identity->start_time_ns) / NS_PER_SECOND / 60;

		text_printf(page->text, "%s%.1f cycles/min", separator,
			    (double)gc->cycles / minutes);
		separator = ", ";
	}
	if (gc->has_cpu_fraction) {
		text_printf(page->text, "%s%.1f%% CPU", separator, gc->cpu_fraction * 100);
		separator = ", ";
	}
	if (gc->has_limiter_active)
		text_printf(page->text, "%slimiter %s", separator,
			    gc->limiter_active ? "ON" : "off");
}

static void note_part_full(struct page *page)
{
	text_in_unit(page->text, page->unit, 0,
		     resident_at(page, "heap/in_use_spans/free_slots") +
			 resident_at(page, "heap/in_use_spans/round"));
	text_string(page->text, " of it in part-full spans");
}

static void note_goroutines(struct page *page)
{
	if (!page->result->stacks)
		return;
	text_count(page->text, page->result->stacks->goroutines);
	text_string(page->text, " goroutines");
}

/* ---- the rows ---- */

enum { ROW_PATHS_MAX = 5 };

static const struct row {
	const char *title;
	const char *paths[ROW_PATHS_MAX];
	bool if_any; /* left out where there is nothing */
	void (*note)(struct page *page);
} rows[] = {
	/* a census does not divide what is allocated */
	{ "heap allocated", { "heap/in_use_spans/alloc" }, false, note_gc_settings },
	{ "heap live", { "heap/in_use_spans/alloc/live" }, false, note_gc_settings },
	{ "heap finalizable", { "heap/in_use_spans/alloc/finalizable" }, true, NULL },
	{ "heap garbage", { "heap/in_use_spans/alloc/garbage" }, false, note_gc_work },
	{ "heap free, kept",
	  { "heap/in_use_spans/free_slots", "heap/in_use_spans/round", "heap/free_spans/kept",
	    "heap/free_spans/released" },
	  false,
	  note_part_full },
	{ "stacks", { "heap/manual_spans", "thread_stacks" }, false, note_goroutines },
	{ "C, not Go", { "c_memory" }, false, NULL },
	{ "shared", { "shared" }, true, NULL },
};

/* Which of the rows for allocated slots are there depends on how deep the tree goes. */
static bool row_applies(const struct page *page, const struct row *row)
{
	const Goheapd__MemoryNode *alloc = node_at(page, rows[0].paths[0]);
	bool divided = alloc && alloc->n_children;

	if (row == &rows[0])
		return !divided;
	return divided || strncmp(row->paths[0], rows[0].paths[0], strlen(rows[0].paths[0])) != 0;
}

static void append_row(struct page *page, const struct row *row, const char *first_column)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ROW_PATHS_MAX && row->paths[i]; i++)
		bytes += resident_at(page, row->paths[i]);
	if (row->if_any && !bytes)
		return;
	page->shown += bytes;
	text_string(page->text, first_column);
	text_pad(page->text, COLUMN_ROWS, 1);
	text_printf(page->text, "%-16s ", row->title);
	text_in_unit(page->text, page->unit, 8, bytes);
	text_printf(page->text, " %3u%%", percent(bytes, page->resident));
	if (row->note) {
		text_pad(page->text, COLUMN_NOTES, 2);
		row->note(page);
	}
	text_end_line(page->text);
}

static void append_rest_item(struct page *page, const char *name, uint64_t bytes)
{
	page->shown += bytes;
	text_printf(page->text, "%s ", name);
	text_in_unit(page->text, page->unit, 0, bytes);
	text_string(page->text, "   ");
}

/* The small ones share a line; what no row has named, an id of a newer agent say, is other. */
static void append_rest(struct page *page)
{
	text_pad(page->text, COLUMN_ROWS, 1);
	append_rest_item(page, "runtime", resident_at(page, "heap_metadata"));
	append_rest_item(page, "text and files",
			 resident_at(page, "text") + resident_at(page, "readonly") +
			     resident_at(page, "data") + resident_at(page, "bss") +
			     resident_at(page, "file_maps"));
	append_rest_item(page, "unexplained", resident_at(page, "unexplained"));
	if (page->resident > page->shown)
		append_rest_item(page, "other", page->resident - page->shown);
	text_end_line(page->text);
}

static void append_rows(struct page *page)
{
	struct text first;
	struct error *err;

	text_init(&first);
	text_string(&first, "RSS ");
	text_in_unit(&first, page->unit, 0, page->resident);
	text_printf(&first, " %s%c", page->unit.name, '\0');
	err = text_finish(&first);
	if (err) {
		text_fail(page->text, err);
	} else {
		const char *column = (const char *)first.bytes.data;

		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			if (!row_applies(page, &rows[i]))
				continue;
			append_row(page, &rows[i], column);
			column = "";
		}
		append_rest(page);
	}
	text_fini(&first);
}

/* ---- trust ---- */

static void write_unread_labels(struct text *text, const Goheapd__LabelReport *labels)
{
	uint64_t unread = labels ? text_labels_unread(labels->status) : 0;

	if (!unread)
		return;
	text_string(text, "; labels of ");
	text_count(text, unread);
	text_string(text, unread == 1 ? " goroutine unreadable" : " goroutines unreadable");
}

static void write_trust(struct text *text, const Goheapd__ScanResult *result)
{
	const Goheapd__Trust *trust = result->scan->trust;

	text_count(text, trust->exact_stacks);
	text_string(text, "/");
	text_count(text, trust->goroutines);
	text_string(text, " stacks exact");
	if (trust->skipped_stacks) {
		text_string(text, ", ");
		text_count(text, trust->skipped_stacks);
		text_string(text, " skipped");
	}
	if (trust->has_conservative_only_bytes) {
		text_string(text, "; ");
		text_size(text, trust->conservative_only_bytes);
		text_string(text, " live by conservative words only");
	}
	if (trust->skipped_bytes) {
		text_string(text, "; ");
		text_size(text, trust->skipped_bytes);
		text_string(text, " could not be read");
	}
	write_unread_labels(text, result->labels);
	text_string(text, self_check_is_ok(trust) ? "; self-check ok" : "; self-check FAILED");
}

static void append_trust(struct page *page)
{
	struct text line;

	text_init(&line);
	write_trust(&line, page->result);
	if (line.err)
		text_fail(page->text, text_finish(&line));
	else
		text_note(page->text, "TRUST",
			  (ProtobufCBinaryData){ .data = line.bytes.data, .len = line.bytes.size });
	text_fini(&line);
}

/* ---- what globals keep ---- */

/* A name and how much; how many columns they take. */
static size_t write_global(struct page *page, struct text *text, const Goheapd__GlobalRow *row)
{
	size_t columns = text_escaped(text, row->name, GLOBAL_COLUMNS),
	       name_size = text->bytes.size;

	text_string(text, " ");
	text_in_unit(text, page->unit, 0, row->retained_bytes);
	return columns + text->bytes.size - name_size;
}

/* False: the line has no room for it. */
static bool append_global(struct page *page, const Goheapd__GlobalRow *row, size_t *column)
{
	static const char gap[] = "   ";
	struct text item;
	size_t columns;
	bool fits;

	text_init(&item);
	columns = write_global(page, &item, row) + sizeof(gap) - 1;
	fits = *column + columns <= TEXT_WIDTH;
	if (item.err) {
		text_fail(page->text, text_finish(&item));
	} else if (fits) {
		text_append(page->text, item.bytes.data, item.bytes.size);
		text_string(page->text, gap);
		*column += columns;
	}
	text_fini(&item);
	return fits;
}

/* What would be freed with each of the largest, where it was looked for. */
static void append_keeps(struct page *page)
{
	const Goheapd__ScanResult *result = page->result;
	Goheapd__GlobalRow *const *globals = result->globals;
	size_t count = result->n_globals, column = KEEPS_INDENT;

	if (!count && result->histogram) {
		globals = result->histogram->globals;
		count = result->histogram->n_globals;
	}
	if (!count)
		return;
	text_printf(page->text, "%-*s", KEEPS_INDENT, "KEEPS");
	for (size_t i = 0; i < count && i < RENDER_GLOBALS_MAX; i++)
		if (!append_global(page, globals[i], &column))
			break;
	text_end_line(page->text);
}

/* ---- what to run next ---- */

/* Where nobody sets labels, the module that a goroutine's first function is in tells the most. */
static void append_next(struct text *text, const Goheapd__ScanResult *result)
{
	uint32_t pid = result->identity->pid;

	text_printf(text, "NEXT   goheap goroutines %" PRIu32 " | goheap mappings %" PRIu32, pid,
		    pid);
	if (result->labels && result->labels->n_sets)
		text_printf(text, " | goheap labels %" PRIu32, pid);
	else if (result->labels)
		text_printf(text, " | goheap memusage %" PRIu32 " --by @module", pid);
	text_string(text, "\n");
}

void render_text_memusage(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanResult *result = view->result;
	uint64_t resident = result->memory ? result->memory->resident_bytes : 0;
	struct page page = { .text = text,
			     .result = result,
			     .unit = size_unit_for(resident),
			     .resident = resident };

	text_scan_head(text, view);
	append_alarms(&page);
	append_limit(&page);
	if (result->memory)
		append_rows(&page);
	if (result->labels)
		text_who(text, result->labels, page.unit);
	text_label_answers(text, view);
	append_keeps(&page);
	append_trust(&page);
	text_warnings(text, result->scan->warnings, result->scan->n_warnings);
	append_next(text, result);
}
