/*
 * A line on a terminal's stderr that says that long work goes on. Nothing appears where stderr is
 * no terminal, or when the work is done within a moment.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

struct progress {
	const char *what;
	bool running; /* there is a thread */
	bool done;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* what is borrowed until progress_end. */
void progress_begin(struct progress *progress, const char *what);
void progress_end(struct progress *progress);

#endif
