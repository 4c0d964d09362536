#include "agent/analysis/work_pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Fewer are not worth another thread's waking. */
enum { SHARE_MIN = 8 };

void work_pool_init(struct work_pool *pool)
{
	*pool = (struct work_pool){ .full = NULL };
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
}

static void free_blocks(struct work_block *block)
{
	while (block) {
		struct work_block *next = block->next;

		free(block);
		block = next;
	}
}

void work_pool_fini(struct work_pool *pool)
{
	free_blocks(pool->full);
	free_blocks(pool->empty);
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
}

/* The lock is held. */
static struct work_block *pop_block(struct work_block **list)
{
	struct work_block *block = *list;

	if (block) {
		*list = block->next;
		block->next = NULL;
	}
	return block;
}

static void push_block(struct work_block **list, struct work_block *block)
{
	block->next = *list;
	*list = block;
}

static struct error *empty_block(struct work_pool *pool, struct work_block **ret)
{
	struct work_block *block;

	pthread_mutex_lock(&pool->lock);
	block = pop_block(&pool->empty);
	pthread_mutex_unlock(&pool->lock);
	if (!block) {
		block = malloc(sizeof(*block));
		if (!block)
			return &error_nomem;
		block->next = NULL;
	}
	block->count = 0;
	*ret = block;
	return NULL;
}

struct error *work_join(struct work *work, struct work_pool *pool)
{
	struct error *err;

	work->pool = pool;
	work->block = NULL;
	err = empty_block(pool, &work->block);
	if (err)
		return err;
	pthread_mutex_lock(&pool->lock);
	pool->joined++;
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

void work_leave(struct work *work)
{
	if (!work->block)
		return;
	pthread_mutex_lock(&work->pool->lock);
	push_block(&work->pool->empty, take(work->block));
	pthread_mutex_unlock(&work->pool->lock);
}

static void offer(struct work_pool *pool, struct work_block *block)
{
	pthread_mutex_lock(&pool->lock);
	push_block(&pool->full, block);
	pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

struct error *work_push_full(struct work *work, uint32_t object)
{
	struct work_block *block;
	struct error *err = empty_block(work->pool, &block);

	if (err)
		return err;
	offer(work->pool, work->block);
	work->block = block;
	block->objects[block->count++] = object;
	return NULL;
}

/* The lock is held. All wait: nobody can make new work any more. */
static bool wait_for_block(struct work_pool *pool)
{
	if (atomic_fetch_add(&pool->waiting, 1) + 1 == pool->joined) {
		pool->done = true;
		pthread_cond_broadcast(&pool->changed);
	}
	while (!pool->done && !pool->full)
		pthread_cond_wait(&pool->changed, &pool->lock);
	if (pool->done)
		return false;
	atomic_fetch_sub(&pool->waiting, 1);
	return true;
}

bool work_refill(struct work *work)
{
	struct work_pool *pool = work->pool;
	bool found;

	pthread_mutex_lock(&pool->lock);
	found = !pool->done && (pool->full || wait_for_block(pool));
	if (found) {
		push_block(&pool->empty, work->block);
		work->block = pop_block(&pool->full);
	}
	pthread_mutex_unlock(&pool->lock);
	return found;
}

struct error *work_share(struct work *work)
{
	struct work_block *mine = work->block, *given;
	struct error *err;
	uint32_t count = mine->count / 2;

	if (count < SHARE_MIN || !atomic_load_explicit(&work->pool->waiting, memory_order_relaxed))
		return NULL;
	err = empty_block(work->pool, &given);
	if (err)
		return err;
	/* The older half: it leads to more. */
	memcpy(given->objects, mine->objects, count * sizeof(*given->objects));
	memmove(mine->objects, mine->objects + count,
		(mine->count - count) * sizeof(*mine->objects));
	given->count = count;
	mine->count -= count;
	offer(work->pool, given);
	return NULL;
}

void work_abort(struct work *work)
{
	pthread_mutex_lock(&work->pool->lock);
	work->pool->done = true;
	pthread_cond_broadcast(&work->pool->changed);
	pthread_mutex_unlock(&work->pool->lock);
}
