#include "agent/report/label_grouping.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/goroutine.h"
#include "agent/report/decoded.h"
#include "agent/report/goroutine_origin.h"

/* A goroutine and the value it is grouped by. */
struct valued {
	struct label_text value;
	uint32_t goroutine;
};

void label_grouping_fini(struct label_grouping *grouping)
{
	free(grouping->group_of);
	free(grouping->values);
	*grouping = (struct label_grouping){ 0 };
}

static bool is_grouped(const struct decoded *d, uint32_t i)
{
	const struct goroutine *g = goroutine_table_at(d->goroutines, i);
	const struct label_selection *selection = &d->request->selection;

	if (!goroutine_is_alive(g) || g->system)
		return false;
	return !selection->count ||
	       label_selection_matches(selection, label_table_of(d->labels, i));
}

static bool find_origin_kind(struct label_text key, enum origin_kind *ret)
{
	static const char *const names[] = {
		[ORIGIN_CREATED_BY] = "@created_by",
		[ORIGIN_ENTRY] = "@entry",
		[ORIGIN_MODULE] = "@module",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (key.size == strlen(names[i]) && !memcmp(key.bytes, names[i], key.size)) {
			*ret = (enum origin_kind)i;
			return true;
		}
	}
	return false;
}

/* *ret stays unset where the label or place is not known. */
static struct error *value_of(const struct decoded *d, struct label_text key, bool by_label,
			      enum origin_kind kind, uint32_t i, struct label_text *ret,
			      bool *found)
{
	const struct goroutine *g = goroutine_table_at(d->goroutines, i);
	const struct label_set *set = label_table_of(d->labels, i);
	const struct label_text *value;
	struct error *err;

	*found = false;
	if (by_label) {
		value = set->status == LABEL_DECODED ? label_set_find(set, key) : NULL;
		*found = value != NULL;
		if (value)
			*ret = *value;
		return NULL;
	}
	err = origin_of(d->origins, g, kind, ret);
	*found = !err && ret->size;
	return err;
}

static int by_value(const void *a, const void *b)
{
	return label_text_compare(((const struct valued *)a)->value,
				  ((const struct valued *)b)->value);
}

/* Goroutines with the same value get the same number, from 1 on. */
static void number_values(struct label_grouping *grouping, struct valued *valued, uint32_t count)
{
	qsort(valued, count, sizeof(*valued), by_value);
	grouping->count = 1;
	for (uint32_t i = 0; i < count; i++) {
		if (!i || by_value(&valued[i - 1], &valued[i]))
			grouping->values[grouping->count++] = valued[i].value;
		grouping->group_of[valued[i].goroutine] = grouping->count - 1;
	}
}

static struct error *group(struct label_grouping *grouping, const struct decoded *d,
			   struct label_text key, enum origin_kind kind)
{
	uint32_t goroutines = goroutine_table_count(d->goroutines), count = 0;
	struct valued *valued scoped(freep) = calloc(goroutines + (size_t)1, sizeof(*valued));
	struct error *err = NULL;

	grouping->group_of = calloc(goroutines + (size_t)1, sizeof(*grouping->group_of));
	grouping->values = calloc(goroutines + (size_t)1, sizeof(*grouping->values));
	if (!valued || !grouping->group_of || !grouping->values)
		return &error_nomem;
	for (uint32_t i = 0; i < goroutines && !err; i++) {
		bool found = false;

		if (is_grouped(d, i))
			err = value_of(d, key, grouping->by_label, kind, i, &valued[count].value,
				       &found);
		else
			grouping->group_of[i] = GROUPING_NONE;
		if (found)
			valued[count++].goroutine = i;
	}
	if (!err)
		number_values(grouping, valued, count);
	return err;
}

struct error *label_grouping_init(struct label_grouping *grouping, const struct decoded *decoded,
				  struct label_text key)
{
	enum origin_kind kind = ORIGIN_ENTRY;
	struct error *err;

	*grouping = (struct label_grouping){ .by_label = !key.size || key.bytes[0] != '@' };
	if (!grouping->by_label && !find_origin_kind(key, &kind))
		return error_new(ERROR_BAD_REQUEST,
				 "by: @created_by, @entry and @module are known");
	err = group(grouping, decoded, key, kind);
	if (err)
		label_grouping_fini(grouping);
	return err;
}
