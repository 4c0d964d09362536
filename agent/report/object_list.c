#include "agent/report/object_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/message.h"
#include "agent/report/object_type.h"
#include "agent/report/retained.h"

struct listing {
	const struct analysed *analysed;
	const Goheapd__ObjectsQuery *query;
	Goheapd__ObjectPage *page;
	bool full; /* and there is more */
	/* Whether a type has the wanted name, by type, twice: as such, and arrays of it. */
	uint8_t *verdicts;
	size_t verdict_count;
};

/* Types are few and objects many: names are compared once for each type. */
enum verdict { VERDICT_NONE, VERDICT_YES, VERDICT_NO };

static void listing_fini(struct listing *listing)
{
	free(listing->verdicts);
}

static struct error *make_room(struct listing *listing, size_t place)
{
	size_t count = listing->verdict_count ? listing->verdict_count : 1024;
	uint8_t *grown;

	while (count <= place)
		count *= 2;
	grown = realloc(listing->verdicts, count);
	if (!grown)
		return &error_nomem;
	memset(grown + listing->verdict_count, VERDICT_NONE, count - listing->verdict_count);
	listing->verdicts = grown;
	listing->verdict_count = count;
	return NULL;
}

static struct error *is_wanted(struct listing *listing, struct object_type type, bool *ret)
{
	size_t place = 2 * (size_t)type.type + type.is_array;
	struct error *err = NULL;

	*ret = true;
	if (!listing->query->has_type)
		return NULL;
	if (place >= listing->verdict_count)
		err = make_room(listing, place);
	if (err)
		return err;
	if (listing->verdicts[place] == VERDICT_NONE)
		listing->verdicts[place] =
		    object_type_has_name(listing->analysed->types, type, listing->query->type)
			? VERDICT_YES
			: VERDICT_NO;
	*ret = listing->verdicts[place] == VERDICT_YES;
	return NULL;
}

static struct error *row_new(const struct listing *listing, const struct span *span,
			     uint32_t object, struct object_type type, Goheapd__ObjectRow **ret)
{
	const struct analysed *a = listing->analysed;
	Goheapd__ObjectRow *row = malloc(sizeof(*row));
	struct error *err = NULL;

	if (!row)
		return &error_nomem;
	goheapd__object_row__init(row);
	row->address = span_object_addr(span, object) + object_header_bytes(a->layout, span);
	row->bytes = span->elem_size;
	row->has_retained_bytes = a->retained != NULL;
	if (a->retained)
		row->retained_bytes = dominators_retained(retained_dominators(a->retained), object);
	row->has_type = type.type != TYPE_UNKNOWN;
	if (row->has_type)
		err = object_type_name(a->types, type, &row->type);
	if (err)
		free(row);
	else
		*ret = row;
	return err;
}

static struct error *add_row(struct listing *listing, const struct span *span, uint32_t object,
			     struct object_type type)
{
	Goheapd__ObjectPage *page = listing->page;
	struct error *err;

	if (page->n_objects == listing->query->limit) {
		listing->full = true;
		return NULL;
	}
	err = message_reserve((void ***)&page->objects, page->n_objects);
	if (!err)
		err = row_new(listing, span, object, type, &page->objects[page->n_objects]);
	page->n_objects += !err;
	return err;
}

static struct error *list_object(struct listing *listing, const struct span *span, uint32_t object)
{
	const struct analysed *a = listing->analysed;
	struct object_type type;
	bool wanted = false;
	struct error *err;

	if (!mark_is_live(a->mark, object))
		return NULL;
	err = object_type(a, object, &type);
	if (!err)
		err = is_wanted(listing, type, &wanted);
	if (err || !wanted)
		return err;
	return add_row(listing, span, object, type);
}

/* The first slot that lies behind the page before. */
static uint32_t first_slot(const struct span *span, const Goheapd__ObjectsQuery *query)
{
	uint64_t skipped;

	if (!query->has_after || query->after < span->base)
		return 0;
	skipped = (query->after - span->base) / span->elem_size + 1;
	return skipped < span->elem_count ? (uint32_t)skipped : span->elem_count;
}

static struct error *list_span(struct listing *listing, const struct span *span)
{
	const struct span_table *spans = graph_spans(listing->analysed->graph);
	struct error *err = NULL;

	if (span->state != SPAN_IN_USE || span->elem_size < listing->query->min_bytes)
		return NULL;
	for (uint32_t slot = first_slot(span, listing->query);
	     !err && !listing->full && slot < span->elem_count; slot++)
		if (span_slot_allocated(spans, span, slot))
			err = list_object(listing, span, span->first_object + slot);
	return err;
}

static struct error *list(struct listing *listing)
{
	const struct span_table *spans = graph_spans(listing->analysed->graph);
	Goheapd__ObjectPage *page = listing->page;
	struct error *err = NULL;

	for (uint32_t i = 0; !err && !listing->full && i < span_table_count(spans); i++)
		err = list_span(listing, span_table_at(spans, i));
	page->has_next_after = listing->full;
	if (listing->full)
		page->next_after = page->objects[page->n_objects - 1]->address;
	return err;
}

struct error *object_list_fill(const struct analysed *analysed, const Goheapd__ObjectsQuery *query,
			       Goheapd__ScanResult *result)
{
	struct listing listing scoped(listing_fini) = { .analysed = analysed, .query = query };

	if (query->limit == 0 || query->limit > OBJECT_LIST_MAX)
		return error_new(ERROR_BAD_REQUEST, "a page of %u objects: 1 to %d are possible",
				 (unsigned)query->limit, OBJECT_LIST_MAX);
	listing.page = malloc(sizeof(*listing.page));
	if (!listing.page)
		return &error_nomem;
	goheapd__object_page__init(listing.page);
	result->objects = listing.page;
	return list(&listing);
}
