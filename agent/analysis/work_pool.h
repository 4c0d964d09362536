/*
 * Objects that are marked and not yet followed, shared by the threads of a marking: each has a
 * block of its own, full ones go to the pool, and who has none left takes one from there or waits.
 * When all wait, the marking is done. An object enters once (once for each thread at the very
 * worst), so the pool holds no more than some bytes for each object, and far less in practice.
 */
#ifndef AGENT_ANALYSIS_WORK_POOL_H
#define AGENT_ANALYSIS_WORK_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

enum { WORK_BLOCK_OBJECTS = 1020 };

struct work_block {
	struct work_block *next;
	uint32_t count;
	uint32_t objects[WORK_BLOCK_OBJECTS];
};

struct work_pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work_block *full, *empty;
	unsigned joined;
	_Atomic unsigned waiting;
	bool done;
};

void work_pool_init(struct work_pool *pool);
void work_pool_fini(struct work_pool *pool);

/* One thread's end of the pool. Join before taking any of the job's own share of roots. */
struct work {
	struct work_pool *pool;
	struct work_block *block;
};

must_check struct error *work_join(struct work *work, struct work_pool *pool);
void work_leave(struct work *work);

/* For push and pop, when the block is full or empty. */
must_check struct error *work_push_full(struct work *work, uint32_t object);
bool work_refill(struct work *work);

/* Gives half of a block away if somebody waits for it. */
must_check struct error *work_share(struct work *work);

/* Ends the marking for all threads, after an error. */
void work_abort(struct work *work);

static inline struct error *work_push(struct work *work, uint32_t object)
{
	if (work->block->count == WORK_BLOCK_OBJECTS)
		return work_push_full(work, object);
	work->block->objects[work->block->count++] = object;
	return NULL;
}

/* Of the thread's own block. */
static inline bool work_pop(struct work *work, uint32_t *ret)
{
	if (!work->block->count)
		return false;
	*ret = work->block->objects[--work->block->count];
	return true;
}

#endif
