#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *progress_thread(void *arg)
{
	struct progress *progress = arg;
	struct timespec tick;
	unsigned seconds = 0;

	clock_gettime(CLOCK_MONOTONIC, &tick);
	pthread_mutex_lock(&progress->lock);
	while (!progress->done) {
		tick.tv_sec++;
		while (!progress->done &&
		       pthread_cond_clockwait(&progress->changed, &progress->lock, CLOCK_MONOTONIC,
					      &tick) != ETIMEDOUT)
			;
		if (!progress->done)
			fprintf(stderr, "\rgoheap: %s, %u s ", progress->what, ++seconds);
	}
	pthread_mutex_unlock(&progress->lock);
	if (seconds)
		fputs("\r\033[K", stderr); /* leaves an empty line for the answer */
	return NULL;
}

void progress_begin(struct progress *progress, const char *what)
{
	*progress = (struct progress){
		.what = what,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	if (isatty(STDERR_FILENO))
		progress->running =
		    pthread_create(&progress->thread, NULL, progress_thread, progress) == 0;
}

void progress_end(struct progress *progress)
{
	if (!progress->running)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->done = true;
	pthread_cond_signal(&progress->changed);
	pthread_mutex_unlock(&progress->lock);
	pthread_join(progress->thread, NULL);
	progress->running = false;
}
