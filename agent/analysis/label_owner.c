#include "agent/analysis/label_owner.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph_private.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/processor.h"
#include "agent/goruntime/root.h"
#include "proto/base/bytes.h"

/* Slots as small as sudogs come in steps of this many bytes (runtime/sizeclasses.go). */
enum { SUDOG_SIZE_MAX = 128, CLASS_STEP = 16 };

struct finding {
	struct memory *memory;
	const struct layout *layout;
	const struct graph *graph;
	struct label_owners *owners;
	uint64_t *owned; /* a bit for each object */
	struct pages owned_pages;
	struct label_owner *gs; /* by object */
	size_t g_count;
	const struct goroutine_table *goroutines;
	struct budget budget;
};

void label_owners_fini(struct label_owners *owners)
{
	free(owners->items);
	*owners = (struct label_owners){ 0 };
}

static struct error *add(struct finding *f, uint32_t object, uint32_t goroutine)
{
	struct label_owners *owners = f->owners;

	if (object == OBJECT_NONE || bitmap_get(f->owned, object))
		return NULL;
	if (owners->count == owners->capacity) {
		size_t capacity = owners->capacity ? 2 * owners->capacity : 256;
		struct label_owner *grown =
		    reallocarray(owners->items, capacity, sizeof(*owners->items));

		if (!grown)
			return &error_nomem;
		owners->items = grown;
		owners->capacity = capacity;
	}
	owners->items[owners->count++] = (struct label_owner){ object, goroutine };
	bitmap_set(f->owned, object);
	return NULL;
}

static struct error *add_at(struct finding *f, taddr addr, uint32_t goroutine)
{
	return add(f, span_table_object(f->graph->spans, addr), goroutine);
}

static struct error *add_goroutines(struct finding *f)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < goroutine_table_count(f->goroutines) && !err; i++) {
		const struct goroutine *g = goroutine_table_at(f->goroutines, i);

		if (goroutine_is_alive(g))
			err = add_at(f, g->g, i);
	}
	return err;
}

static int by_object(const void *a, const void *b)
{
	const struct label_owner *left = a, *right = b;

	return (left->object > right->object) - (left->object < right->object);
}

/* What was added so far are gs. */
static struct error *sort_gs(struct finding *f)
{
	size_t count = f->owners->count;

	f->gs = calloc(count + 1, sizeof(*f->gs));
	if (!f->gs)
		return &error_nomem;
	if (count)
		memcpy(f->gs, f->owners->items, count * sizeof(*f->gs));
	f->g_count = count;
	qsort(f->gs, count, sizeof(*f->gs), by_object);
	return NULL;
}

/* The g that an object is, or NULL. */
static const struct label_owner *find_g(const struct finding *f, uint32_t object)
{
	const struct label_owner key = { .object = object };

	if (!bitmap_get(f->owned, object))
		return NULL;
	return bsearch(&key, f->gs, f->g_count, sizeof(*f->gs), by_object);
}

static struct error *add_runtime(struct finding *f)
{
	const struct machine_table *machines = goroutine_table_machines(f->goroutines);
	taddr *processors scoped(freep) = NULL;
	uint32_t count = 0;
	struct error *err = processor_list(f->memory, f->layout, &processors, &count);

	for (uint32_t i = 0; i < count && !err; i++)
		err = add_at(f, processors[i], ROOT_NO_GOROUTINE);
	for (uint32_t i = 0; i < machines->count && !err; i++)
		err = add_at(f, machines->machines[i].m, ROOT_NO_GOROUTINE);
	return err;
}

/*
 * Is the object a sudog on which its goroutine waits now? One that was given back keeps its g, but
 * neither elem nor channel (runtime/proc.go, releaseSudog). Those of sync.Cond have neither to
 * go1.25; they lead to nothing of the goroutine's.
 */
static struct error *is_waiting(const struct finding *f, taddr addr, taddr g, bool *ret)
{
	const struct layout *l = f->layout;
	uint8_t bytes[SUDOG_SIZE_MAX];
	struct error *err = memory_read(f->memory, addr, bytes, l->sudog.size);

	if (err)
		return err;
	*ret = load_u64le(bytes + l->sudog_g.offset) == g &&
	       (load_u64le(bytes + l->sudog_elem.offset) ||
		load_u64le(bytes + l->sudog_channel.offset));
	return NULL;
}

/* What might be a sudog: its first pointer leads to a g. Nothing but the runtime has such. */
static struct error *add_sudog(struct finding *f, const struct span *span, uint32_t object)
{
	const struct label_owner *g;
	uint32_t edge_count;
	const uint32_t *edges = graph_edges(f->graph, object, &edge_count);
	bool waiting = false;
	struct error *err;

	g = edge_count ? find_g(f, edges[0]) : NULL;
	if (!g)
		return NULL;
	err = is_waiting(f, span_object_addr(span, object),
			 goroutine_table_at(f->goroutines, g->goroutine)->g, &waiting);
	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		return NULL;
	}
	return err || !waiting ? err : add(f, object, g->goroutine);
}

static bool has_sudog(const struct layout *l)
{
	return l->sudog.size && l->sudog.size <= SUDOG_SIZE_MAX && l->sudog_g.size == 8 &&
	       l->sudog_elem.size == 8 && l->sudog_channel.size == 8;
}

/* Sudogs lie in slots of their size class. */
static struct error *add_sudogs(struct finding *f)
{
	const struct span_table *spans = f->graph->spans;
	struct error *err = NULL;

	for (uint32_t i = 0; has_sudog(f->layout) && i < span_table_count(spans); i++) {
		const struct span *span = span_table_at(spans, i);

		if (!f->graph->rows[i].edges || span->elem_size < f->layout->sudog.size ||
		    span->elem_size >= f->layout->sudog.size + (uint64_t)CLASS_STEP)
			continue;
		for (uint32_t k = 0; k < span->elem_count && !err; k++)
			err = add_sudog(f, span, span->first_object + k);
		if (err)
			return err;
	}
	return NULL;
}

struct error *label_owners_read(struct memory *memory, const struct layout *layout,
				const struct graph *graph, const struct goroutine_table *goroutines,
				struct label_owners *ret)
{
	struct label_owners owners = { 0 };
	struct finding f = {
		.memory = memory,
		.layout = layout,
		.graph = graph,
		.owners = &owners,
		.goroutines = goroutines,
		.budget = graph_budget_left(graph),
	};
	uint64_t words = bitmap_words(graph->lookup->object_end);
	struct error *err = pages_init(&f.owned_pages, &f.budget, words * sizeof(uint64_t));

	if (err)
		return err;
	f.owned = f.owned_pages.data;
	err = add_goroutines(&f);
	if (!err)
		err = sort_gs(&f);
	if (!err)
		err = add_runtime(&f);
	if (!err)
		err = add_sudogs(&f);
	pages_fini(&f.owned_pages);
	free(f.gs);
	if (err) {
		label_owners_fini(&owners);
		return error_context(err, "what goroutines own");
	}
	*ret = owners;
	return NULL;
}
