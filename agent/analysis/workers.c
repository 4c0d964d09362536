#include "agent/analysis/workers.h"

#include <pthread.h>
#include <stdbool.h>

struct worker {
	struct error *(*work)(void *arg, unsigned i);
	void *arg;
	unsigned i;
	struct error *err;
	pthread_t thread;
	bool started;
};

static void *run_worker(void *p)
{
	struct worker *worker = p;

	worker->err = worker->work(worker->arg, worker->i);
	return NULL;
}

unsigned workers_clamp(unsigned count)
{
	if (!count)
		return 1;
	return count < WORKERS_MAX ? count : WORKERS_MAX;
}

/* Keeps the first error. */
static struct error *collect(struct worker *workers, unsigned count)
{
	struct error *first = NULL;

	for (unsigned i = 0; i < count; i++) {
		if (workers[i].started)
			pthread_join(workers[i].thread, NULL);
		else if (i)
			run_worker(&workers[i]);
		if (!first)
			first = workers[i].err;
		else
			error_free(workers[i].err);
	}
	return first;
}

struct error *workers_run(unsigned count, struct error *(*work)(void *arg, unsigned i), void *arg)
{
	struct worker workers[WORKERS_MAX];

	count = workers_clamp(count);
	for (unsigned i = 0; i < count; i++) {
		workers[i] = (struct worker){ .work = work, .arg = arg, .i = i };
		if (i)
			workers[i].started =
			    pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0;
	}
	run_worker(&workers[0]);
	return collect(workers, count);
}
