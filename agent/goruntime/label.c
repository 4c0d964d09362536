#include "agent/goruntime/label.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/label_raw.h"
#include "agent/goruntime/label_text.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

/* What one value of g.labels led to. */
struct found_set {
	struct label_set set;
	struct label *labels;
	char *error;
	struct found_set *next;
};

struct label_table {
	struct label_texts texts;
	struct found_set *all;
	struct found_set none; /* of goroutines without labels */
	uint32_t found_count;
	const struct label_set **of; /* by goroutine; NULL: it is not alive */
	const struct label_set **sets;
	uint32_t set_count;
	uint64_t status[LABEL_STATUS_COUNT];
};

/* A label and where it stood. */
struct placed_label {
	struct label label;
	uint32_t place;
};

struct reader {
	struct memory *memory;
	const struct layout *layout;
	struct label_table *table;
	struct addr_map by_addr; /* found sets by g.labels */
	struct raw_labels raw;
	struct placed_label sorted[LABELS_MAX];
};

/* ---- texts and pairs ---- */

int label_text_compare(struct label_text a, struct label_text b)
{
	uint64_t size = a.size < b.size ? a.size : b.size;
	int order = 0;

	if (label_text_known(a) != label_text_known(b))
		return label_text_known(a) ? 1 : -1;
	if (a.bytes && b.bytes && size)
		order = memcmp(a.bytes, b.bytes, size);
	return order ? order : (a.size > b.size) - (a.size < b.size);
}

const struct label_text *label_set_find(const struct label_set *set, struct label_text key)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (label_text_known(set->labels[i].key) &&
		    !label_text_compare(set->labels[i].key, key))
			return &set->labels[i].value;
	return NULL;
}

/* Of a text that was not read, its size may be known. */
static bool might_equal(struct label_text text, struct label_text other)
{
	if (!label_text_known(text))
		return text.size == other.size;
	return !label_text_compare(text, other);
}

bool label_set_might_have(const struct label_set *set, const struct label *label)
{
	const struct label_text *value = label_set_find(set, label->key);

	if (value)
		return might_equal(*value, label->value);
	if (!set->complete)
		return true;
	for (uint32_t i = 0; i < set->count; i++)
		if (!label_text_known(set->labels[i].key) &&
		    might_equal(set->labels[i].key, label->key) &&
		    might_equal(set->labels[i].value, label->value))
			return true;
	return false;
}

/* ---- one set ---- */

struct error *raw_labels_add(struct raw_labels *labels, const uint8_t *key, const uint8_t *value)
{
	if (labels->count == LABELS_MAX)
		return error_new(ERROR_LIMIT, "more than %d labels", LABELS_MAX);
	labels->labels[labels->count++] = (struct raw_label){
		.key = { load_u64le(key), load_u64le(key + 8) },
		.value = { load_u64le(value), load_u64le(value + 8) },
	};
	return NULL;
}

/* What a bad target may cost is one set of labels; the rest ends the scan. */
static bool is_fatal(const struct error *err)
{
	switch (error_code(err)) {
	case ERROR_FAULT:
	case ERROR_FORMAT:
	case ERROR_LIMIT:
	case ERROR_UNSUPPORTED:
	case ERROR_CORRUPT_TARGET:
		return false;
	default:
		return true;
	}
}

/* Notes the first thing that is wrong with a set. */
static struct error *note(struct found_set *found, enum label_status missing, struct error *err)
{
	if (!err || is_fatal(err))
		return err;
	if (!found->error) {
		found->set.status = error_code(err) == ERROR_FAULT ? missing : LABEL_MALFORMED;
		found->error = strdup(error_message(err));
		if (!found->error) {
			error_free(err);
			return &error_nomem;
		}
	}
	error_free(err);
	return NULL;
}

static struct error *read_raw(struct reader *reader, taddr addr)
{
	reader->raw.count = 0;
	if (label_list_known(reader->layout))
		return label_list_read(reader->memory, reader->layout, addr, &reader->raw);
	return label_map_read(reader->memory, reader->layout, addr, &reader->raw);
}

static struct error *read_text(struct reader *reader, struct found_set *found, struct raw_text raw,
			       struct label_text *ret)
{
	struct error *err = label_texts_read(&reader->table->texts, reader->memory, raw, ret);

	return note(found, LABEL_TEXT_MISSING, err);
}

static struct error *read_texts(struct reader *reader, struct found_set *found)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < reader->raw.count && !err; i++) {
		err = read_text(reader, found, reader->raw.labels[i].key, &found->labels[i].key);
		if (!err)
			err = read_text(reader, found, reader->raw.labels[i].value,
					&found->labels[i].value);
	}
	return err;
}

static int by_key(const void *a, const void *b)
{
	const struct placed_label *left = a, *right = b;
	int order = label_text_compare(left->label.key, right->label.key);

	return order ? order : (left->place > right->place) - (left->place < right->place);
}

/* Equal keys stay in their order. */
static void sort_labels(struct reader *reader, struct label *labels, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		reader->sorted[i] = (struct placed_label){ labels[i], i };
	qsort(reader->sorted, count, sizeof(*reader->sorted), by_key);
	for (uint32_t i = 0; i < count; i++)
		labels[i] = reader->sorted[i].label;
}

/* Of labels with the same key the last counts (runtime/pprof/label.go, WithLabels). */
static uint32_t drop_overwritten(struct label *labels, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (kept && label_text_known(labels[i].key) &&
		    !label_text_compare(labels[kept - 1].key, labels[i].key))
			kept--;
		labels[kept++] = labels[i];
	}
	return kept;
}

static struct error *read_set(struct reader *reader, taddr addr, struct found_set *found)
{
	struct error *err = read_raw(reader, addr);

	found->set.complete = !err;
	err = note(found, reader->raw.step, err);
	if (err)
		return err;
	found->labels = calloc(reader->raw.count + (size_t)1, sizeof(*found->labels));
	if (!found->labels)
		return &error_nomem;
	err = read_texts(reader, found);
	if (err)
		return err;
	sort_labels(reader, found->labels, reader->raw.count);
	found->set.labels = found->labels;
	found->set.count = drop_overwritten(found->labels, reader->raw.count);
	found->set.error = found->error;
	if (found->set.status == LABEL_DECODED && !found->set.count)
		found->set.status = LABEL_NONE;
	return NULL;
}

/* The form of labels is not known: they are there, and that is all. */
static struct error *set_unsupported(struct found_set *found)
{
	found->set.status = LABEL_UNSUPPORTED;
	found->set.error = found->error =
	    strdup("this Go runtime keeps labels in a form that is not known");
	return found->error ? NULL : &error_nomem;
}

static struct error *find_set(struct reader *reader, taddr addr, const struct label_set **ret)
{
	struct found_set *found = addr_map_get(&reader->by_addr, addr);
	bool known = label_list_known(reader->layout) || label_map_known(reader->layout);
	struct error *err = NULL;

	if (!found) {
		found = calloc(1, sizeof(*found));
		if (!found)
			return &error_nomem;
		found->set.set = LABEL_SET_NONE;
		found->next = reader->table->all;
		reader->table->all = found;
		reader->table->found_count++;
		err = known ? read_set(reader, addr, found) : set_unsupported(found);
		if (!err)
			err = addr_map_put(&reader->by_addr, addr, found);
	}
	*ret = &found->set;
	return err;
}

/* ---- the table ---- */

static int compare_sets(const struct label_set *a, const struct label_set *b)
{
	uint32_t count = a->count < b->count ? a->count : b->count;

	for (uint32_t i = 0; i < count; i++) {
		int order = label_text_compare(a->labels[i].key, b->labels[i].key);

		if (!order)
			order = label_text_compare(a->labels[i].value, b->labels[i].value);
		if (order)
			return order;
	}
	return (a->count > b->count) - (a->count < b->count);
}

static int by_content(const void *a, const void *b)
{
	return compare_sets(&(*(struct found_set *const *)a)->set,
			    &(*(struct found_set *const *)b)->set);
}

/* Sets of the same content, found at different places, get the same number. */
static struct error *number_sets(struct label_table *table)
{
	struct found_set **sorted scoped(freep) =
	    calloc(table->found_count + (size_t)1, sizeof(struct found_set *));
	uint32_t count = 0;

	table->sets = calloc(table->found_count + (size_t)1, sizeof(struct label_set *));
	if (!sorted || !table->sets)
		return &error_nomem;
	for (struct found_set *found = table->all; found; found = found->next)
		if (found->set.status == LABEL_DECODED)
			sorted[count++] = found;
	qsort(sorted, count, sizeof(struct found_set *), by_content);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || compare_sets(&sorted[i - 1]->set, &sorted[i]->set))
			table->sets[table->set_count++] = &sorted[i]->set;
		sorted[i]->set.set = table->set_count - 1;
	}
	return NULL;
}

static struct error *read_all(struct reader *reader, const struct goroutine_table *goroutines)
{
	struct label_table *table = reader->table;
	struct error *err = NULL;

	for (uint32_t i = 0; i < goroutine_table_count(goroutines) && !err; i++) {
		const struct goroutine *g = goroutine_table_at(goroutines, i);

		if (!goroutine_is_alive(g))
			continue;
		table->of[i] = &table->none.set;
		if (g->labels)
			err = find_set(reader, g->labels, &table->of[i]);
		if (!err)
			table->status[table->of[i]->status]++;
	}
	table->status[LABEL_G_MISSING] = goroutine_table_unreadable(goroutines);
	return err ? err : number_sets(table);
}

/* A runtime whose g has no labels that we know of: nothing can be said of any goroutine. */
static struct error *init_none(struct label_table *table, const struct layout *layout)
{
	table->none.set.set = LABEL_SET_NONE;
	if (!layout_has(layout, g_labels))
		return set_unsupported(&table->none);
	table->none.set.status = LABEL_NONE;
	table->none.set.complete = true;
	return NULL;
}

struct error *label_table_read(struct memory *memory, const struct layout *layout,
			       const struct goroutine_table *goroutines, struct label_table **ret)
{
	struct label_table *table scoped(label_table_freep) = calloc(1, sizeof(*table));
	struct reader *reader scoped(freep) = calloc(1, sizeof(*reader));
	struct error *err;

	if (!table || !reader)
		return &error_nomem;
	table->of = calloc(goroutine_table_count(goroutines) + (size_t)1, sizeof(*table->of));
	if (!table->of)
		return &error_nomem;
	reader->memory = memory;
	reader->layout = layout;
	reader->table = table;
	err = init_none(table, layout);
	if (!err)
		err = read_all(reader, goroutines);
	addr_map_fini(&reader->by_addr);
	if (err)
		return error_context(err, "labels of goroutines");
	*ret = take(table);
	return NULL;
}

static void free_found(struct found_set *found)
{
	free(found->labels);
	free(found->error);
}

void label_table_free(struct label_table *table)
{
	struct found_set *next;

	if (!table)
		return;
	for (struct found_set *found = table->all; found; found = next) {
		next = found->next;
		free_found(found);
		free(found);
	}
	free_found(&table->none);
	label_texts_fini(&table->texts);
	free(table->of);
	free(table->sets);
	free(table);
}

const struct label_set *label_table_of(const struct label_table *table, uint32_t goroutine)
{
	return table->of[goroutine];
}

uint32_t label_table_count(const struct label_table *table)
{
	return table->set_count;
}

const struct label_set *label_table_at(const struct label_table *table, uint32_t set)
{
	return table->sets[set];
}

uint64_t label_table_status(const struct label_table *table, enum label_status status)
{
	return table->status[status];
}
