#include "cli/chains.h"

#include <string.h>

#include "daemon/json_fields.h"
#include "daemon/name_sums.h"
#include "daemon/pprof_decode.h"
#include "daemon/render_text_common.h"
#include "daemon/render_text_profile.h"
#include "proto/base/checked.h"

enum { ROWS_DEFAULT = 10, COMMENTS_MAX = 100, NAME_COLUMNS = 1000 };

static size_t row_count(const struct options *options)
{
	return options->params.top ? options->params.top : ROWS_DEFAULT;
}

/* Of what the profile says of itself, which process it is and how it was looked at. */
static void append_head(struct text *text, const struct pprof_decoded *profile)
{
	static const char *const heads[] = { "target ", "scan at ", "warning " };

	for (size_t i = 0; i < COMMENTS_MAX; i++) {
		ProtobufCBinaryData comment = pprof_comment(profile, i);

		for (size_t j = 0; j < sizeof(heads) / sizeof(*heads); j++) {
			if (comment.len < strlen(heads[j]) ||
			    memcmp(comment.data, heads[j], strlen(heads[j])) != 0)
				continue;
			text_escaped(text, comment, NAME_COLUMNS);
			text_end_line(text);
		}
	}
}

struct totals {
	int64_t objects, bytes;
};

static struct totals all_of(const struct chain_tree *tree)
{
	struct totals totals = { 0 };

	for (size_t i = 0; i < tree->node_count; i++) {
		totals.objects = bounded_add(totals.objects, tree->nodes[i].objects);
		totals.bytes = bounded_add(totals.bytes, tree->nodes[i].bytes);
	}
	return totals;
}

/* ---- why ---- */

/* "main.Session: 2.25 GiB in 2,001,101 objects, 43% of what is live" */
static void append_subject(struct text *text, const struct options *options,
			   const struct chain_tree *tree, struct totals through)
{
	struct totals all = all_of(tree);

	text_escaped(text, text_bytes(options->subject), NAME_COLUMNS);
	if (!through.objects && !through.bytes) {
		text_string(text, ": no chain of references leads through it; goheap top shows "
				  "some that there are\n");
		return;
	}
	text_string(text, ": ");
	text_size(text, (uint64_t)through.bytes);
	text_string(text, " in ");
	text_count(text, (uint64_t)through.objects);
	text_printf(text, " objects, %.0f%% of what is live, through it\n",
		    all.bytes ? 100.0 * (double)through.bytes / (double)all.bytes : 0);
}

static struct error *sum_marked(const struct chain_tree *tree, const uint8_t *marks,
				struct totals *ret)
{
	*ret = (struct totals){ 0 };
	for (size_t i = 0; i < tree->node_count; i++) {
		if (!marks[i])
			continue;
		ret->objects = bounded_add(ret->objects, tree->nodes[i].objects);
		ret->bytes = bounded_add(ret->bytes, tree->nodes[i].bytes);
	}
	return ret->objects < 0 || ret->bytes < 0
		   ? error_new(ERROR_FORMAT, "the profile's values are negative")
		   : NULL;
}

/* ---- JSON ---- */

static void write_sums(struct text *text, const char *key, const struct name_sums *sums,
		       size_t count)
{
	json_begin(text, key, '[');
	for (size_t i = 0; i < sums->count && i < count; i++) {
		struct json_fields row;

		json_fields_init(&row);
		json_add_bytes(&row, "name", sums->sums[i].name);
		json_add(&row, "objects", json_integer(sums->sums[i].objects));
		json_add(&row, "bytes", json_integer(sums->sums[i].bytes));
		json_write_element(text, &row);
	}
	json_end(text, ']');
}

typedef struct error *sum_maker(struct name_sums *sums, const struct chain_tree *tree);

static struct error *write_table(struct text *text, const char *key, sum_maker *make,
				 const struct chain_tree *tree, size_t count)
{
	struct name_sums sums;
	struct error *err;

	name_sums_init(&sums);
	err = make(&sums, tree);
	if (!err) {
		name_sums_sort(&sums);
		write_sums(text, key, &sums, count);
	}
	name_sums_fini(&sums);
	return err;
}

static void write_chain(struct text *text, const struct chain_tree *tree, uint32_t leaf)
{
	json_t *names = json_array();
	struct json_fields row;

	json_fields_init(&row);
	for (uint32_t node = leaf; node != ID_NONE; node = tree->nodes[node].parent) {
		if (json_array_insert_new(
			names, 0, json_from_bytes(tree->frames[tree->nodes[node].frame].name)) < 0)
			row.failed = true;
	}
	json_add(&row, "chain", names);
	json_add(&row, "objects", json_integer(tree->nodes[leaf].objects));
	json_add(&row, "bytes", json_integer(tree->nodes[leaf].bytes));
	json_write_element(text, &row);
}

/* Those that are marked; all of them without marks. */
static struct error *write_chains(struct text *text, const struct chain_tree *tree,
				  const uint8_t *marks, size_t most)
{
	uint32_t *leaves scoped(freep) = NULL;
	size_t count = 0, written = 0;
	struct error *err = chain_tree_leaves(tree, &leaves, &count);

	if (err)
		return err;
	json_begin(text, "chains", '[');
	for (size_t i = 0; i < count && written < most; i++) {
		if (marks && !marks[leaves[i]])
			continue;
		write_chain(text, tree, leaves[i]);
		written++;
	}
	json_end(text, ']');
	return NULL;
}

static void write_totals(struct text *text, const char *subject, struct totals totals)
{
	struct json_fields fields;

	json_fields_init(&fields);
	if (subject)
		json_add_string(&fields, "name", subject);
	json_add(&fields, "objects", json_integer(totals.objects));
	json_add(&fields, "bytes", json_integer(totals.bytes));
	json_write_fields(text, &fields);
}

static struct error *write_json(const struct options *options, const struct chain_tree *tree,
				const uint8_t *marks, struct totals totals, struct text *text)
{
	size_t count = row_count(options);
	struct error *err = NULL;

	json_begin(text, NULL, '{');
	write_totals(text, options->subject, totals);
	if (!marks)
		err = write_table(text, "roots", name_sums_roots, tree, count);
	if (!err && !marks)
		err = write_table(text, "types", name_sums_types, tree, count);
	if (!err)
		err = write_chains(text, tree, marks, count);
	json_end(text, '}');
	text_string(text, "\n");
	return err;
}

/* ---- both ---- */

static struct error *show_top(const struct options *options, const struct pprof_decoded *profile,
			      struct text *ret)
{
	const struct chain_page page = { .tree = &profile->tree, .row_count = row_count(options) };

	if (options->json)
		return write_json(options, &profile->tree, NULL, all_of(&profile->tree), ret);
	append_head(ret, profile);
	text_chains(ret, &page);
	return NULL;
}

static struct error *show_why(const struct options *options, const struct pprof_decoded *profile,
			      struct text *ret)
{
	const struct chain_tree *tree = &profile->tree;
	struct chain_page page = { .tree = tree, .row_count = row_count(options) };
	uint8_t *marks scoped(freep) = NULL;
	struct totals through;
	struct error *err = chain_tree_through(tree, text_bytes(options->subject), &marks);

	if (!err)
		err = sum_marked(tree, marks, &through);
	if (err)
		return err;
	if (options->json)
		return write_json(options, tree, marks, through, ret);
	page.marks = marks;
	append_head(ret, profile);
	append_subject(ret, options, tree, through);
	text_chains(ret, &page);
	return NULL;
}

struct error *chains_show(const struct options *options, const struct text *profile,
			  struct text *ret)
{
	struct pprof_decoded decoded;
	struct error *err = pprof_decode(profile->bytes.data, profile->bytes.size, &decoded);

	if (!err && options->command->form == FORM_WHY)
		err = show_why(options, &decoded, ret);
	else if (!err)
		err = show_top(options, &decoded, ret);
	if (!err)
		err = text_finish(ret);
	pprof_decoded_fini(&decoded);
	return err;
}
