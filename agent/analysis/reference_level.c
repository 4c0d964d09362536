/*
 * Levels: what is met from one level makes up the next, so that every object is met by a shortest
 * chain. A level is sorted by address, which makes reading it cheap, and is worked off in batches:
 * threads expand it piece by piece, then what they found is claimed in the order of the pieces.
 * Batches and pieces are the same whatever the number of threads, and so is the walk.
 *
 * A list of a million nodes is a million levels of one object: small levels take no thread.
 */
#include <stdatomic.h>

#include "agent/analysis/reference_private.h"
#include "agent/analysis/workers.h"

enum {
	PIECE_ITEMS = 4 * EXPAND_ITEMS_MAX,
	BATCH_ITEMS = PIECES_MAX * PIECE_ITEMS,
	BATCH_WORDS = 1 << 19, /* what they lead to stays in the cache until it is settled */
	ALONE_MAX = 4 * EXPAND_ITEMS_MAX, /* items that one thread expands as quickly */
};

typedef struct error *(*expand_function)(struct expander *expander, const struct walk_item *items,
					 uint32_t count, const struct expansion *to);

struct batch {
	struct expander **expanders;
	expand_function expand;
	const struct walk_item *items;
	uint32_t count;
	_Atomic uint32_t next;
	struct reference_list *lists; /* by thread */
	struct piece pieces[PIECES_MAX];
};

static struct error *expand_piece(struct batch *batch, unsigned thread, uint32_t number)
{
	struct piece *piece = &batch->pieces[number];
	struct expansion to = {
		.list = &batch->lists[thread],
		.piece = number,
		.first = batch->lists[thread].count,
		.claims = true,
	};
	uint32_t first = number * PIECE_ITEMS;
	uint32_t end = batch->count - first < PIECE_ITEMS ? batch->count : first + PIECE_ITEMS;
	struct error *err = NULL;

	for (; first < end && !err; first += EXPAND_ITEMS_MAX)
		err = batch->expand(batch->expanders[thread], &batch->items[first],
				    end - first < EXPAND_ITEMS_MAX ? end - first : EXPAND_ITEMS_MAX,
				    &to);
	piece->thread = thread;
	piece->list = to.list;
	piece->first = to.first;
	piece->count = to.list->count - to.first;
	return err;
}

static struct error *expand_pieces(void *arg, unsigned thread)
{
	struct batch *batch = arg;
	struct error *err = NULL;
	uint32_t i;

	while (!err && (i = atomic_fetch_add(&batch->next, 1)) * PIECE_ITEMS < batch->count)
		err = expand_piece(batch, thread, i);
	return err;
}

static struct error *run_batch(struct reference_walk *walk, struct batch *batch)
{
	unsigned threads = batch->count > ALONE_MAX ? walk->thread_count : 1;
	struct error *err;

	atomic_store(&batch->next, 0);
	for (unsigned i = 0; i < walk->thread_count; i++)
		batch->lists[i].count = 0;
	err = threads > 1 ? workers_run(threads, expand_pieces, batch) : expand_pieces(batch, 0);
	if (err)
		return err;
	return walk_settle(walk, batch->pieces, (batch->count + PIECE_ITEMS - 1) / PIECE_ITEMS);
}

static uint64_t words_of(const struct reference_walk *walk, const struct walk_item *item)
{
	return walk_class_of(walk, item->object)->elem_size / 8;
}

/* An item that leads to very many objects is expanded alone, and settled bit by bit. */
static struct error *run_huge(struct reference_walk *walk, struct batch *batch)
{
	struct reference_list *list = &batch->lists[0];
	struct expansion to = { .list = list, .claims = true, .settles = true };
	struct error *err;

	list->count = 0;
	err = batch->expand(batch->expanders[0], batch->items, 1, &to);
	return err ? err : walk_settle_list(walk, list);
}

/* How many items make a batch; 0: the first is too large for one. */
static uint32_t batch_size(const struct reference_walk *walk, const struct walk_item *items,
			   uint64_t count)
{
	uint64_t words = 0;
	uint32_t i = 0;

	for (; i < BATCH_ITEMS && i < count && words < BATCH_WORDS; i++) {
		uint64_t more = words_of(walk, &items[i]);

		if (more > HUGE_EDGES)
			break;
		words += more;
	}
	return i;
}

static struct error *run_items(struct reference_walk *walk, struct batch *batch,
			       const struct reference_list *list)
{
	const struct walk_item *items = list->pages.data;
	struct error *err = NULL;

	for (uint64_t i = 0; i < list->count && !err;) {
		batch->items = &items[i];
		batch->count = batch_size(walk, &items[i], list->count - i);
		err = batch->count ? run_batch(walk, batch) : run_huge(walk, batch);
		i += batch->count ? batch->count : 1;
	}
	return err;
}

static struct error *run_list(struct reference_walk *walk, struct expander **expanders,
			      expand_function expand, const struct reference_list *list)
{
	struct batch batch;

	batch.expanders = expanders;
	batch.expand = expand;
	batch.lists = walk->lists;
	return run_items(walk, &batch, list);
}

/* ---- levels ---- */

static void swap(struct reference_list *a, struct reference_list *b)
{
	struct reference_list c = *a;

	*a = *b;
	*b = c;
}

struct error *walk_levels(struct reference_walk *walk, struct expander **expanders)
{
	struct error *err = NULL;

	while (!err && walk->next.count) {
		swap(&walk->frontier, &walk->next);
		swap(&walk->extents, &walk->next_extents);
		walk->next.count = walk->next_extents.count = 0;
		err = walk_sort(walk, &walk->frontier, &walk->next);
		if (!err)
			err = run_list(walk, expanders, expand_items, &walk->frontier);
	}
	return err;
}

struct error *walk_rest(struct reference_walk *walk, struct expander **expanders, bool *ret_more)
{
	struct error *err;

	*ret_more = walk->next_rest.count;
	if (!*ret_more)
		return NULL;
	swap(&walk->rest, &walk->next_rest);
	walk->next_rest.count = 0;
	err = walk_sort(walk, &walk->rest, &walk->next_rest);
	return err ? err : run_list(walk, expanders, expand_rest, &walk->rest);
}
