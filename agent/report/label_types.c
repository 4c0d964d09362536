/*
 * Colours say which party holds an object alone, the reference walk says what it is: what both know
 * is counted by pairs of party and type.
 */
#include "agent/report/label_types.h"

#include <stdlib.h>

#include "agent/analysis/graph.h"
#include "agent/analysis/label_holder.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/label.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/decoded.h"
#include "agent/report/label_grouping.h"
#include "agent/report/message.h"
#include "agent/report/party_types.h"

static struct error *count_span(const struct analysed *a, const struct label_holders *holders,
				const struct span *span, struct party_types *types)
{
	struct error *err = NULL;

	if (span->state != SPAN_IN_USE)
		return NULL;
	for (uint32_t slot = 0; !err && slot < span->elem_count; slot++) {
		uint32_t object = span->first_object + slot, party;
		struct object_type type;

		if (!mark_is_live(a->mark, object))
			continue;
		party = label_holder(holders, object);
		if (party == LABEL_NO_HOLDER)
			continue;
		err = object_type(a, object, &type);
		if (!err)
			err = party_types_add(types, party, type, span->elem_size);
	}
	return err;
}

static struct error *count(const struct decoded *decoded, const struct analysed *a,
			   const struct label_usage *usage, struct party_types *types)
{
	const struct span_table *spans = graph_spans(a->graph);
	const struct label_attribution input = label_usage_attribution(usage, decoded);
	struct label_holders *holders scoped(label_holders_freep) = NULL;
	struct error *err = label_holders_find(&input, &holders);

	for (uint32_t i = 0; !err && i < span_table_count(spans); i++)
		err = count_span(a, holders, span_table_at(spans, i), types);
	return err;
}

/* ---- messages ---- */

/* What each party of a partition holds. */
struct list {
	Goheapd__TypeRow **rows; /* of all parties, for their names */
	size_t row_count;
	struct party_type *pairs;
	size_t pair_count;
};

static void list_fini(struct list *list)
{
	for (size_t i = 0; i < list->row_count; i++)
		goheapd__type_row__free_unpacked(list->rows[i], NULL);
	free(list->rows);
	free(list->pairs);
}

static struct error *add_row(const struct list *list, const struct party_type *pair,
			     Goheapd__LabelUsage *usage)
{
	ProtobufCBinaryData name = list->rows[pair->row]->type;
	Goheapd__TypeRow *row;
	struct error *err = message_reserve((void ***)&usage->top_types, usage->n_top_types);

	if (err)
		return err;
	row = malloc(sizeof(*row));
	if (!row)
		return &error_nomem;
	goheapd__type_row__init(row);
	row->objects = pair->count.objects;
	row->bytes = pair->count.bytes;
	usage->top_types[usage->n_top_types++] = row;
	return message_bytes(name.data, name.len, &row->type);
}

/* The first of a party's pairs, which stand in order. */
static size_t find_party(const struct list *list, uint32_t party)
{
	size_t low = 0, high = list->pair_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->pairs[middle].party < party)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct error *fill_usage(const struct list *list, uint32_t party, Goheapd__LabelUsage *usage)
{
	size_t i = find_party(list, party);
	struct error *err = NULL;

	usage->has_types_known = usage->types_known = true;
	for (; !err && i < list->pair_count && list->pairs[i].party == party &&
	       usage->n_top_types < LABEL_TYPES_MAX;
	     i++)
		err = add_row(list, &list->pairs[i], usage);
	return err;
}

static struct error *read_list(const struct decoded *decoded, const struct analysed *analysed,
			       const struct label_usage *usage, struct list *list)
{
	struct party_types types scoped(party_types_fini) = { .used = 0 };
	struct error *err = count(decoded, analysed, usage, &types);

	if (!err)
		err = type_tally_rows(&types.all, analysed->types, &list->rows, &list->row_count);
	return err ? err
		   : party_types_list(&types, analysed->types, list->rows, list->row_count,
				      &list->pairs, &list->pair_count);
}

/* ---- the partitions ---- */

/* Sets are in the order of their parties; those that only system goroutines have were left out. */
static struct error *fill_sets(const struct decoded *decoded, const struct analysed *analysed,
			       Goheapd__LabelReport *report)
{
	uint32_t count = label_table_count(decoded->labels);
	struct list list scoped(list_fini) = { .row_count = 0 };
	struct error *err = read_list(decoded, analysed, &decoded->sets, &list);
	size_t set = 0;

	for (uint32_t i = 0; !err && i < count && set < report->n_sets; i++)
		if (decoded->sets.goroutines[i].count)
			err = fill_usage(&list, i, report->sets[set++]->usage);
	if (!err)
		err = fill_usage(&list, count, report->unlabelled);
	return err ? err : fill_usage(&list, count + 1, report->system);
}

static struct error *fill_selection(const struct decoded *decoded, const struct analysed *analysed,
				    Goheapd__LabelUsage *selection)
{
	struct label_usage usage scoped(label_usage_fini) = { .party_count = 0 };
	struct list list scoped(list_fini) = { .row_count = 0 };
	struct error *err = label_usage_init_selection(&usage, decoded);

	if (!err)
		err = read_list(decoded, analysed, &usage, &list);
	return err ? err : fill_usage(&list, 0, selection);
}

static int by_text(const void *key, const void *value)
{
	return label_text_compare(*(const struct label_text *)key,
				  *(const struct label_text *)value);
}

/* The report has groups by size, the grouping by value, with those that have none as the first. */
static uint32_t group_of(const struct label_grouping *grouping, const Goheapd__LabelGroup *group)
{
	const struct label_text key = { .bytes = group->value.data, .size = group->value.len };
	const struct label_text *found = NULL;

	if (group->has_value)
		found =
		    bsearch(&key, grouping->values + 1, grouping->count - 1, sizeof(key), by_text);
	return found ? (uint32_t)(found - grouping->values) : 0;
}

static struct error *fill_by_group(const struct decoded *decoded, const struct analysed *analysed,
				   const struct label_grouping *grouping,
				   Goheapd__LabelReport *report)
{
	struct label_usage usage scoped(label_usage_fini) = { .party_count = 0 };
	struct list list scoped(list_fini) = { .row_count = 0 };
	struct error *err = label_usage_init_groups(&usage, decoded, grouping);

	if (!err)
		err = read_list(decoded, analysed, &usage, &list);
	for (size_t i = 0; !err && i < report->n_groups; i++)
		err = fill_usage(&list, group_of(grouping, report->groups[i]),
				 report->groups[i]->usage);
	return err;
}

static struct error *fill_groups(const struct decoded *decoded, const struct analysed *analysed,
				 Goheapd__LabelReport *report)
{
	struct label_grouping grouping scoped(label_grouping_fini) = { .count = 0 };
	struct error *err = label_grouping_init(&grouping, decoded, decoded->request->group_by);

	return err ? err : fill_by_group(decoded, analysed, &grouping, report);
}

struct error *label_types_fill(const struct decoded *decoded, const struct analysed *analysed,
			       Goheapd__LabelReport *report)
{
	struct error *err = fill_sets(decoded, analysed, report);

	if (!err && report->selection)
		err = fill_selection(decoded, analysed, report->selection);
	if (!err && decoded->request->has_group_by)
		err = fill_groups(decoded, analysed, report);
	return err;
}
