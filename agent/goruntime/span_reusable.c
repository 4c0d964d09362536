/* runtime/mcache.go, reusableNoscan: the link is the first word of each free object. */
#include "agent/goruntime/span_reusable.h"

#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/processor.h"
#include "agent/goruntime/span_table.h"

/*
 * Takes one list out. An object that is not allocated (any more) ends the walk: it is on another
 * list already, or the list is broken; this bounds it.
 */
static struct error *remove_list(struct memory *memory, struct span_table *table, taddr addr)
{
	while (addr) {
		uint32_t object = span_table_object(table, addr), slot;
		const struct span *span;
		uint64_t bit;
		struct error *err;

		if (object == OBJECT_NONE)
			return NULL;
		span = span_table_span_of(table, object);
		slot = object - span->first_object;
		if (!span->noscan || !span_slot_allocated(table, span, slot))
			return NULL;
		bit = UINT64_C(1) << (span->bits + slot) % BITMAP_WORD_BITS;
		table->allocated[(span->bits + slot) / BITMAP_WORD_BITS] &= ~bit;
		table->present[(span->bits + slot) / BITMAP_WORD_BITS] &= ~bit;
		table->conservative[(span->bits + slot) / BITMAP_WORD_BITS] &= ~bit;
		table->totals.reusable_objects++;
		err = memory_u64(memory, span_object_addr(span, object), &addr);
		if (err)
			return err;
	}
	return NULL;
}

struct error *span_reusable_remove(struct memory *memory, const struct layout *layout,
				   struct span_table *table)
{
	taddr *processors scoped(freep) = NULL;
	uint32_t count, heads = layout->mcache_reusable_noscan.size / 8;
	struct error *err;

	if (!layout_has(layout, mcache_reusable_noscan))
		return NULL;
	err = processor_list(memory, layout, &processors, &count);
	for (uint32_t i = 0; i < count && !err; i++) {
		uint64_t mcache, head;

		err = layout_read_field(memory, processors[i], layout->p_mcache, &mcache);
		if (!err && !mcache)
			continue; /* a P that was given up, or is being made */
		mcache += layout->mcache_reusable_noscan.offset;
		for (uint32_t k = 0; k < heads && !err; k++) {
			err = memory_u64(memory, mcache + 8 * k, &head);
			if (!err)
				err = remove_list(memory, table, head);
		}
	}
	return err;
}
