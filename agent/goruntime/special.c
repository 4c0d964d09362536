#include "agent/goruntime/special.h"

#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/special_list.h"

enum {
	WORD = 8,
	FIRST_CAPACITY = 256,
	SPECIALS_MAX = 1 << 28,
};

struct special_table {
	struct special *specials;
	uint32_t count, capacity;
	uint64_t skipped;
};

static struct error *make_room(struct special_table *table)
{
	uint32_t capacity = table->capacity ? 2 * table->capacity : FIRST_CAPACITY;
	struct special *specials;

	if (table->count < table->capacity)
		return NULL;
	if (capacity > SPECIALS_MAX)
		return error_new(ERROR_LIMIT, "more than %d special records", SPECIALS_MAX);
	specials = realloc(table->specials, capacity * sizeof(*specials));
	if (!specials)
		return &error_nomem;
	table->specials = specials;
	table->capacity = capacity;
	return NULL;
}

/* A special_visit. */
static struct error *add_record(void *arg, const struct span *span,
				const struct special_record *record)
{
	struct special_table *table = arg;
	struct error *err = make_room(table);

	if (err)
		return err;
	table->specials[table->count++] =
	    (struct special){ span->first_object + record->slot, record->kind, record->addr };
	return NULL;
}

struct error *special_table_read(struct memory *memory, const struct layout *layout,
				 const struct span_table *spans, struct special_table **ret)
{
	struct special_table *table scoped(special_table_freep) = calloc(1, sizeof(*table));

	if (!table)
		return &error_nomem;
	for (uint32_t i = 0; i < span_table_count(spans); i++) {
		const struct span *span = span_table_at(spans, i);
		struct error *err;
		bool cut;

		if (span->state != SPAN_IN_USE || !span->specials)
			continue;
		err = special_list_walk(memory, layout, span, add_record, table, &cut);
		if (err)
			return error_context(err, "specials");
		table->skipped += cut;
	}
	*ret = take(table);
	return NULL;
}

void special_table_free(struct special_table *table)
{
	if (!table)
		return;
	free(table->specials);
	free(table);
}

uint32_t special_table_count(const struct special_table *table)
{
	return table->count;
}

const struct special *special_table_at(const struct special_table *table, uint32_t index)
{
	return &table->specials[index];
}

uint64_t special_table_skipped(const struct special_table *table)
{
	return table->skipped;
}

/* Which words of a record keep something alive; runtime/mgcmark.go, markrootSpans. */
static struct layout_field root_words(const struct layout *l, enum special_kind kind,
				      enum root_kind *ret)
{
	switch (kind) {
	case SPECIAL_FINALIZER:
		*ret = ROOT_FINALIZER;
		return l->special_finalizer_fn;
	case SPECIAL_WEAK_HANDLE:
		*ret = ROOT_WEAK_HANDLE;
		return l->special_weak_handle_handle;
	case SPECIAL_CLEANUP: /* a function, or since go1.26 a struct of three pointers */
		*ret = ROOT_CLEANUP;
		return l->special_cleanup_fn;
	case SPECIAL_PROFILE:
	case SPECIAL_OTHER:
		break;
	}
	*ret = ROOT_KIND_END;
	return (struct layout_field){ 0 };
}

struct error *special_table_roots(const struct special_table *table, struct memory *memory,
				  const struct layout *layout, struct root_sink *sink)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const struct special *special = &table->specials[i];
		struct root root = { .goroutine = ROOT_NO_GOROUTINE };
		struct layout_field words = root_words(layout, special->kind, &root.kind);

		for (uint32_t at = 0; at + WORD <= words.size; at += WORD) {
			struct error *err;

			root.slot = special->record + words.offset + at;
			err = memory_u64(memory, root.slot, &root.value);
			if (!err)
				err = sink->add(sink, &root);
			if (err)
				return error_context(err, "specials");
		}
	}
	return NULL;
}
