/*
 * Specials (records that the runtime keeps about single objects), the finalizer and cleanup
 * queues, and the P's tiny blocks: the roots that are neither in modules nor on stacks.
 * runtime/mheap.go, mfinal.go, mcleanup.go, mcache.go.
 */
#ifndef AGENT_GORUNTIME_SPECIAL_H
#define AGENT_GORUNTIME_SPECIAL_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct root_sink;
struct span_table;

/* What a special means, whatever its number is in this runtime. */
enum special_kind {
	SPECIAL_FINALIZER,
	SPECIAL_WEAK_HANDLE,
	SPECIAL_CLEANUP,
	SPECIAL_PROFILE,
	SPECIAL_OTHER,
};

struct special {
	uint32_t object;        /* the object it is about */
	enum special_kind kind; /* SPECIAL_OTHER keeps nothing alive */
	taddr record;
};

struct special_table;

/*
 * Walks the specials of every in-use span, each list bounded by its span's slots. Lists that do
 * not hold together are cut and counted.
 */
must_check struct error *special_table_read(struct memory *memory, const struct layout *layout,
					    const struct span_table *spans,
					    struct special_table **ret);
void special_table_free(struct special_table *table);
DEFINE_FREEP(special_table, special_table_free)

uint32_t special_table_count(const struct special_table *table);
const struct special *special_table_at(const struct special_table *table, uint32_t index);
uint64_t special_table_skipped(const struct special_table *table);

/*
 * The words of the special records themselves (a finalizer's function, a weak handle, a
 * cleanup's words). The fields of an object with a finalizer are roots too: the marker follows
 * its edges without marking it.
 */
must_check struct error *special_table_roots(const struct special_table *table,
					     struct memory *memory, const struct layout *layout,
					     struct root_sink *sink);

/* Finalizer queue (allfin), cleanup queue (gcCleanups.all), and each P's mcache.tiny. */
must_check struct error *special_queue_roots(struct memory *memory, const struct layout *layout,
					     struct root_sink *sink);

#endif
