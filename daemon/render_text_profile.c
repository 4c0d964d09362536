#include "daemon/render_text_profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/name_sums.h"
#include "daemon/render_text_common.h"

enum { ROWS_DEFAULT = 10, FRAMES_HEAD = 2, FRAMES_TAIL = 4, FRAME_COLUMNS = 200 };

/* All tables are in one unit. */
struct table {
	struct text *text;
	struct size_unit unit;
	bool is_change;
	uint64_t total; /* what percentages are of; 0: there are none */
};

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static void append_figures(const struct table *table, int64_t objects, int64_t bytes)
{
	struct text count;

	text_init(&count);
	text_string(&count, objects < 0 ? "-" : table->is_change && objects ? "+" : "");
	text_count(&count, magnitude(objects));
	text_append(&count, "", 1);
	text_printf(table->text, table->is_change ? "%+10.*f" : "%10.*f",
		    table->unit.bytes > 1 ? 2 : 0, (double)bytes / table->unit.bytes);
	if (table->total)
		text_printf(table->text, "%5.0f%%", 100.0 * (double)bytes / (double)table->total);
	text_printf(table->text, "%13s  ", count.err ? "" : (const char *)count.bytes.data);
	text_fail(table->text, text_finish(&count));
	text_fini(&count);
}

static void append_heading(const struct table *table, const char *name, size_t more)
{
	text_printf(table->text, "%-6s%4s%s%13s", name, table->unit.name,
		    table->total ? "      " : "", "objects");
	if (more)
		text_printf(table->text, "  the largest of %zu", more);
	text_string(table->text, "\n");
}

/* Those that there is something to say of. */
static size_t count_sums(const struct name_sums *sums)
{
	size_t count = 0;

	for (size_t i = 0; i < sums->count; i++)
		count += sums->sums[i].objects || sums->sums[i].bytes;
	return count;
}

static void append_sums(const struct table *table, const char *name, const struct name_sums *sums,
			size_t row_count)
{
	size_t count = count_sums(sums), shown = 0;

	if (count)
		append_heading(table, name, count > row_count ? count : 0);
	for (size_t i = 0; i < sums->count && shown < row_count; i++) {
		if (!sums->sums[i].objects && !sums->sums[i].bytes)
			continue;
		append_figures(table, sums->sums[i].objects, sums->sums[i].bytes);
		text_escaped(table->text, sums->sums[i].name, FRAME_COLUMNS);
		text_end_line(table->text);
		shown++;
	}
}

typedef struct error *sum_maker(struct name_sums *sums, const struct chain_tree *tree);

static void append_table(const struct table *table, const char *name, sum_maker *make,
			 const struct chain_page *page)
{
	struct name_sums sums;
	struct error *err;

	name_sums_init(&sums);
	err = make(&sums, page->tree);
	if (err) {
		text_fail(table->text, err);
	} else {
		name_sums_sort(&sums);
		append_sums(table, name, &sums, page->row_count);
	}
	name_sums_fini(&sums);
}

/* ---- single chains ---- */

static void append_frame(struct text *text, const struct chain_tree *tree, uint32_t node)
{
	text_escaped(text, tree->frames[tree->nodes[node].frame].name, FRAME_COLUMNS);
}

/* From the root; of a long chain the middle is left out. */
static void append_chain(struct text *text, const struct chain_tree *tree, uint32_t leaf)
{
	uint32_t path[FRAMES_HEAD + FRAMES_TAIL]; /* the first and the last of them */
	size_t depth = 0, place;

	for (uint32_t node = leaf; node != ID_NONE; node = tree->nodes[node].parent)
		depth++;
	place = depth;
	for (uint32_t node = leaf; node != ID_NONE; node = tree->nodes[node].parent) {
		place--;
		if (place < FRAMES_HEAD)
			path[place] = node;
		else if (depth - place <= FRAMES_TAIL)
			path[FRAMES_HEAD + FRAMES_TAIL - (depth - place)] = node;
	}
	for (size_t i = 0; i < FRAMES_HEAD + FRAMES_TAIL; i++) {
		bool is_head = i < FRAMES_HEAD;
		size_t from_end = FRAMES_HEAD + FRAMES_TAIL - i;

		if (is_head ? i >= depth : depth < from_end || depth - from_end < FRAMES_HEAD)
			continue;
		text_string(text, i ? " > " : "");
		if (i == FRAMES_HEAD && depth > FRAMES_HEAD + FRAMES_TAIL)
			text_string(text, "... > ");
		append_frame(text, tree, path[i]);
	}
}

static struct error *append_leaves(const struct table *table, const struct chain_page *page)
{
	uint32_t *leaves scoped(freep) = NULL;
	size_t all = 0, count = 0;
	struct error *err = chain_tree_leaves(page->tree, &leaves, &all);

	if (err)
		return err;
	for (size_t i = 0; i < all; i++) {
		if (!page->marks || page->marks[leaves[i]])
			leaves[count++] = leaves[i];
	}
	if (count)
		append_heading(table, "CHAINS", count > page->row_count ? count : 0);
	for (size_t i = 0; i < count && i < page->row_count; i++) {
		const struct chain_node *node = &page->tree->nodes[leaves[i]];

		append_figures(table, node->objects, node->bytes);
		append_chain(table->text, page->tree, leaves[i]);
		text_end_line(table->text);
	}
	return NULL;
}

/* ---- the page ---- */

static void sum_up(const struct chain_tree *tree, int64_t *objects, int64_t *bytes,
		   uint64_t *largest)
{
	*objects = *bytes = 0;
	*largest = 0;
	for (size_t i = 0; i < tree->node_count; i++) {
		*objects += tree->nodes[i].objects;
		*bytes += tree->nodes[i].bytes;
		if (magnitude(tree->nodes[i].bytes) > *largest)
			*largest = magnitude(tree->nodes[i].bytes);
	}
}

void text_chains(struct text *text, const struct chain_page *given)
{
	struct chain_page page = *given;
	struct table table = { .text = text, .is_change = page.is_change };
	int64_t objects, bytes;
	uint64_t largest;

	if (!page.row_count)
		page.row_count = ROWS_DEFAULT;
	sum_up(page.tree, &objects, &bytes, &largest);
	if (!page.is_change)
		largest = table.total = (uint64_t)bytes;
	table.unit = size_unit_for(largest);
	if (!page.marks) {
		append_table(&table, "ROOTS", name_sums_roots, &page);
		if (page.types)
			append_sums(&table, "TYPES", page.types, page.row_count);
		else
			append_table(&table, "TYPES", name_sums_types, &page);
	}
	text_fail(text, append_leaves(&table, &page));
}

void render_text_profile(struct text *text, const struct scan_view *view)
{
	struct chain_page page = { 0 };
	struct chain_tree tree;
	struct error *err;

	chain_tree_init(&tree);
	page.tree = &tree;
	err = chain_tree_add(&tree, view->result->profile, CHAIN_PLUS,
			     view->analysis->profile->max_depth);
	text_scan_head(text, view);
	if (err)
		text_fail(text, err);
	else
		text_chains(text, &page);
	text_warnings(text, view->result->scan->warnings, view->result->scan->n_warnings);
	chain_tree_fini(&tree);
}
