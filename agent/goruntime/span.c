#include "agent/goruntime/span.h"

#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/span_table.h"

void span_totals_skip(struct span_totals *totals, const struct span *span)
{
	totals->skipped_spans++;
	if (span->page_count < (UINT64_MAX - totals->skipped_bytes) / GO_PAGE_SIZE)
		totals->skipped_bytes += span_bytes(span);
}

/* Not all arenas are listed: the others are found through the spans that say to be there. */
static struct error *add_arenas(struct memory *memory, const struct layout *layout,
				const struct span_candidate *candidates, uint32_t count,
				struct arena_table *arenas)
{
	taddr *addrs scoped(freep) = malloc(count * sizeof(*addrs) + 1);
	size_t unlisted = 0;

	if (!addrs)
		return &error_nomem;
	for (uint32_t i = 0; i < count; i++)
		if (!arena_table_find(arenas, candidates[i].span.base))
			addrs[unlisted++] = candidates[i].span.base;
	return arena_table_add(arenas, memory, layout, addrs, unlisted);
}

/* The spans, without the state of their slots. */
static struct error *read_spans(struct memory *memory, const struct layout *layout,
				struct span_table *table, struct span_source **ret_sources)
{
	struct span_candidate *candidates scoped(freep) = NULL;
	uint32_t count;
	struct error *err = arena_table_read(memory, layout, &table->arenas);

	if (!err)
		err = span_read_candidates(memory, layout, &table->totals, &candidates, &count);
	if (!err)
		err = add_arenas(memory, layout, candidates, count, table->arenas);
	if (!err)
		err = span_table_make_pages(table);
	if (!err)
		err = span_table_confirm(memory, layout, candidates, count, table, ret_sources);
	return err;
}

struct error *span_table_read(struct memory *memory, const struct layout *layout,
			      struct span_table **ret)
{
	struct span_table *table scoped(span_table_freep) = calloc(1, sizeof(*table));
	struct span_source *sources scoped(freep) = NULL;
	struct error *err;

	if (!table)
		return &error_nomem;
	err = layout_read_field(memory, layout->global_mheap.addr, layout->mheap_pages_in_use,
				&table->totals.runtime_in_use_pages);
	if (!err)
		err = read_spans(memory, layout, table, &sources);
	if (!err)
		err = span_table_read_bits(memory, layout, sources, table);
	if (err)
		return error_context(err, "span table");
	*ret = take(table);
	return NULL;
}

void span_table_free(struct span_table *table)
{
	if (!table)
		return;
	arena_table_free(table->arenas);
	free(table->spans);
	free(table->arena_rows);
	free(table->pages);
	free(table->first_objects);
	free(table->hints);
	free(table->slots);
	free(table->allocated);
	free(table->present);
	free(table->conservative);
	free(table);
}

uint32_t span_table_count(const struct span_table *table)
{
	return table->count;
}

const struct span *span_table_at(const struct span_table *table, uint32_t index)
{
	return &table->spans[index];
}

uint32_t span_table_object_end(const struct span_table *table)
{
	return table->lookup.object_end;
}

const struct span_lookup *span_table_lookup(const struct span_table *table)
{
	return &table->lookup;
}

const struct span *span_table_find(const struct span_table *table, taddr addr)
{
	const uint32_t *page = span_lookup_page(&table->lookup, addr);

	return page && *page ? &table->spans[*page - 1] : NULL;
}

uint32_t span_table_object(const struct span_table *table, taddr addr)
{
	return span_lookup_object(&table->lookup, addr);
}

const struct span *span_table_span_of(const struct span_table *table, uint32_t object)
{
	return &table->spans[span_lookup_span_of(&table->lookup, object)];
}

bool span_slot_allocated(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return bitmap_get(table->allocated, span->bits + slot);
}

bool span_slot_present(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return bitmap_get(table->present, span->bits + slot);
}

bool span_slot_conservative(const struct span_table *table, const struct span *span, uint32_t slot)
{
	return bitmap_get(table->conservative, span->bits + slot);
}

const struct span_totals *span_table_totals(const struct span_table *table)
{
	return &table->totals;
}

const struct arena_table *span_table_arenas(const struct span_table *table)
{
	return table->arenas;
}
