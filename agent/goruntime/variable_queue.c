/*
 * Finalizers and cleanups are called one after the other by goroutines of the runtime's own. What
 * waits is kept by a queue, and in truth by the call that does not end.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/variable_private.h"

/* The function that one of the runtime's goroutines has called, and its name; NULL: none. */
static const char *called_by(const struct variable_table *table,
			     const struct goroutine_frames *goroutine)
{
	const struct frame_place *frames =
	    (const struct frame_place *)table->frames.items + goroutine->first;
	const struct frame_site *sites = (const struct frame_site *)table->sites.items;

	for (uint32_t i = goroutine->count; i-- > 0;) {
		const struct function_place *function =
		    variable_function_place(table, sites[frames[i].site].function);

		if (strcmp(variable_text(table, function->package), "runtime") != 0)
			return variable_text(table, function->name);
	}
	return NULL;
}

static bool begins_with(const struct variable_table *table,
			const struct goroutine_frames *goroutine, const char *const *names)
{
	const char *name;

	if (!goroutine->start)
		return false;
	name = variable_text(table, variable_function_place(table, goroutine->start - 1)->name);
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* The queue goes on while any of its goroutines is free. */
static const char *find_blocker(const struct variable_table *table, const char *const *names)
{
	const char *blocker = NULL;

	for (uint32_t i = 0; i < table->goroutine_count; i++) {
		const char *called;

		if (!begins_with(table, &table->goroutines[i], names))
			continue;
		called = called_by(table, &table->goroutines[i]);
		if (!called)
			return NULL;
		blocker = blocker ? blocker : called;
	}
	return blocker;
}

static struct error *name_queue(struct variable_table *table, const char *queue,
				const char *const *names, name_id *ret)
{
	static const char blocked[] = ", blocked by ";
	const char *blocker = find_blocker(table, names);
	size_t size = strlen(queue) + sizeof(blocked) + (blocker ? strlen(blocker) : 0);
	char *name scoped(freep) = malloc(size);

	if (!name)
		return &error_nomem;
	strcpy(name, queue);
	if (blocker)
		strcat(strcat(name, blocked), blocker);
	return variable_name(table, name, NULL, ret);
}

struct error *variable_queues_read(struct variable_reader *reader)
{
	/* runtime/mfinal.go, mcleanup.go: the former has another name since go1.25. */
	static const char *const finalizers[] = { "runtime.runfinq", "runtime.runFinalizers",
						  NULL };
	static const char *const cleanups[] = { "runtime.runCleanups", NULL };
	struct variable_table *table = reader->table;
	struct error *err =
	    name_queue(table, "finalizer queue", finalizers, &table->finalizer_queue);

	return err ? err : name_queue(table, "cleanup queue", cleanups, &table->cleanup_queue);
}
