/*
 * Says what the stacks of a running Go program hold: stops it, walks and scans every goroutine's
 * stack and prints one JSON object; COUNT times, letting it run a little in between, or, with
 *STEPS, stopping after every instruction of a thread that runs Go code, that many times in a row.
 *Objects are told by the size of their slot, which the program chooses so that no two are alike.
 *From the roots on, every word of an object that may hold pointers is followed, so that no other
 *part of ours has a say in the outcome.
 *
 *	stack_facts PID [COUNT [STEPS]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/goruntime/function_role.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/stack.h"
#include "proto/base/bytes.h"
#include "tests/support/live_target.h"
#include "tests/support/live_threads.h"

enum { STOPS_MAX = 100000 };

struct tracer {
	struct root_sink sink; /* first: what callbacks get */
	struct memory *memory;
	struct span_table *spans;
	uint8_t *reached; /* by object: bit root_kind_is_conservative of what reached it, + 1 */
	uint32_t *todo;
	uint32_t todo_count;
	uint64_t root_count[ROOT_KIND_END];
	uint64_t stray; /* exact roots into the heap, but to no allocated slot */
};

static bool is_heap_address(const struct tracer *tracer, taddr addr)
{
	uint32_t count = span_table_count(tracer->spans);
	const struct span *last = span_table_at(tracer->spans, count - 1);

	return addr >= span_table_at(tracer->spans, 0)->base &&
	       addr < last->base + last->page_count * GO_PAGE_SIZE;
}

static void reach(struct tracer *tracer, taddr addr, bool conservative)
{
	uint32_t object = span_table_object(tracer->spans, addr);
	const struct span *span;
	uint32_t slot;

	if (!object) {
		span = span_table_find(tracer->spans, addr);
		tracer->stray +=
		    !conservative && is_heap_address(tracer, addr) &&
		    !(span && (span->state == SPAN_MANUAL || span_is_quarantined(span)));
		return;
	}
	span = span_table_span_of(tracer->spans, object);
	slot = object - span->first_object;
	if (!span_slot_present(tracer->spans, span, slot)) {
		tracer->stray += !conservative;
		return;
	}
	if (tracer->reached[object])
		return;
	tracer->reached[object] = conservative ? 2 : 1;
	tracer->todo[tracer->todo_count++] = object;
}

static struct error *add_root(struct root_sink *sink, const struct root *root)
{
	struct tracer *tracer = (struct tracer *)sink;

	tracer->root_count[root->kind]++;
	reach(tracer, root->value, root_kind_is_conservative(root->kind));
	return NULL;
}

/* Follows every word, likely or not. */
static struct error *follow(struct tracer *tracer)
{
	while (tracer->todo_count) {
		uint32_t object = tracer->todo[--tracer->todo_count];
		const struct span *span = span_table_span_of(tracer->spans, object);
		uint8_t *bytes scoped(freep) = NULL;
		struct error *err;

		if (span->noscan)
			continue;
		bytes = malloc(span->elem_size);
		if (!bytes)
			return &error_nomem;
		err = memory_read_bulk(tracer->memory, span_object_addr(span, object), bytes,
				       span->elem_size);
		if (err)
			return err;
		for (uint64_t i = 0; i + 8 <= span->elem_size; i += 8)
			reach(tracer, load_u64le(bytes + i), true);
	}
	return NULL;
}

static void print_reached(const struct tracer *tracer)
{
	const char *comma = "";

	printf("\"reached\":[");
	for (uint32_t i = 0; i < span_table_count(tracer->spans); i++) {
		const struct span *span = span_table_at(tracer->spans, i);

		if (span->state != SPAN_IN_USE || span->span_class > 1)
			continue;
		if (!tracer->reached[span->first_object])
			continue;
		printf("%s%" PRIu64, comma, span->elem_size);
		comma = ",";
	}
	printf("],\"stray\":%" PRIu64 ",\"roots\":[", tracer->stray);
	for (int i = 0; i < ROOT_KIND_END; i++)
		printf("%s%" PRIu64, i ? "," : "", tracer->root_count[i]);
	printf("]");
}

struct printer {
	struct stack_walker *walker;
	const char *comma;
};

static bool print_frame(void *arg, const struct stack_frame *frame)
{
	struct printer *printer = arg;
	const struct pclntab_line *lines;
	uint32_t count;
	struct error *err = stack_frame_lines(printer->walker, frame, &lines, &count);

	if (err) {
		printf("%s\"lines: %s\"", printer->comma, error_message(err));
		error_free(err);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		printf("%s[\"%s\",\"%s\",%" PRIu32 "]", printer->comma, lines[i].function,
		       lines[i].file ? lines[i].file : "", lines[i].line);
		printer->comma = ",";
	}
	return true;
}

static struct error *print_goroutine(struct stack_walker *walker,
				     const struct goroutine_table *table, uint32_t index,
				     struct tracer *tracer)
{
	const struct goroutine *g = goroutine_table_at(table, index);
	const char *reason = goroutine_wait_reason(table, g->wait_reason);
	struct printer printer = { walker, "" };
	struct stack_scan scan;
	struct error *err = stack_roots(walker, index, &tracer->sink, &scan);

	if (err)
		return err;
	printf("%s{\"id\":%" PRIu64 ",\"status\":\"%s\",\"reason\":\"%s\",\"system\":%s,"
	       "\"trust\":%d,\"conservative_frames\":%" PRIu32 ",\"in_use\":%" PRIu64
	       ",\"unsettled\":%s,\"on_registers\":%s,\"on_system_stack\":%s,\"frames\":[",
	       index ? "," : "", g->id, goroutine_status_name(g->status), reason ? reason : "",
	       g->system ? "true" : "false", scan.trust, scan.conservative_frames,
	       scan.in_use_bytes, g->unsettled ? "true" : "false",
	       g->on_registers ? "true" : "false", g->on_system_stack ? "true" : "false");
	err = scan.in_use_bytes ? stack_walk(walker, g, print_frame, &printer) : NULL;
	printf("],\"error\":\"%s\"}", err ? error_message(err) : "");
	error_free(err);
	return NULL;
}

static struct error *print_stacks(const struct live_target *target, struct tracer *tracer,
				  const struct goroutine_table *table,
				  const struct module_table *modules)
{
	struct stack_walker *walker scoped(stack_walker_freep) = NULL;
	struct error *err =
	    stack_walker_new(target->memory, target->layout, modules, table, &walker);
	const char *complaint = goroutine_table_complaint(table);

	printf("{\"complaint\":\"%s\",\"goroutines\":[", complaint ? complaint : "");
	for (uint32_t i = 0; !err && i < goroutine_table_count(table); i++)
		err = print_goroutine(walker, table, i, tracer);
	printf("],");
	if (!err)
		err = stack_system_roots(walker, &tracer->sink);
	if (!err)
		err = follow(tracer);
	if (err)
		return err;
	print_reached(tracer);
	printf("}\n");
	return NULL;
}

/* Is that thread on its way from one goroutine, stack or phase of the collector to another? */
static bool is_in_runtime(const struct module_table *modules, taddr pc)
{
	const struct module *module = module_table_find_text(modules, pc);
	struct pclntab_func func;
	bool found = false;
	struct error *err = module ? pclntab_find(module->pclntab, pc, &found, &func) : NULL;

	error_free(err);
	return !err && found && function_roles(func.name) & ROLE_RUNTIME;
}

/* The thread of an M that has a P, and so runs Go code. */
static uint32_t find_runner(const struct goroutine_table *table, const struct live_threads *threads)
{
	const struct machine_table *machines = goroutine_table_machines(table);

	for (uint32_t i = 0; i < machines->count; i++) {
		if (machines->machines[i].p && machines->machines[i].thread)
			return (uint32_t)(machines->machines[i].thread - threads->threads);
	}
	return 0;
}

static struct error *run_stopped(const struct live_target *target,
				 const struct live_threads *threads, uint32_t *ret_runner,
				 bool *ret_in_runtime)
{
	struct module_table *modules scoped(module_table_freep) = NULL;
	struct goroutine_table *table scoped(goroutine_table_freep) = NULL;
	struct span_table *spans scoped(span_table_freep) = NULL;
	struct tracer tracer = { .sink.add = add_root, .memory = target->memory };
	struct error *err = module_table_read(target->memory, target->layout, &modules);

	if (!err)
		err = goroutine_table_read(target->memory, target->layout, modules,
					   threads->threads, threads->count, &table);
	if (!err)
		err = span_table_read(target->memory, target->layout, &spans);
	if (err)
		return err;
	*ret_runner = find_runner(table, threads);
	*ret_in_runtime = is_in_runtime(modules, threads->threads[*ret_runner].pc);
	tracer.spans = spans;
	tracer.reached = calloc(span_table_object_end(spans), 1);
	tracer.todo = calloc(span_table_object_end(spans), sizeof(*tracer.todo));
	err = tracer.reached && tracer.todo ? print_stacks(target, &tracer, table, modules)
					    : &error_nomem;
	free(tracer.reached);
	free(tracer.todo);
	return err;
}

/* Of uneven length, so that no two stops find the program at the same place. */
static void let_run(unsigned round)
{
	const struct timespec pause = { .tv_nsec = 50000 + round * 7919 % 1000 * 1000L };

	nanosleep(&pause, NULL);
}

/* *ret_done: it took the steps, or was asked for none. */
static struct error *run_steps(const struct live_target *target, struct live_threads *threads,
			       unsigned steps, bool *ret_done)
{
	uint32_t runner;
	bool in_runtime, goes_on = true;
	struct error *err = run_stopped(target, threads, &runner, &in_runtime);

	/* The loops of the user's are not worth many steps. */
	*ret_done = !steps || in_runtime;
	if (!in_runtime)
		steps = 0;
	for (unsigned i = 0; !err && goes_on && i < steps; i++) {
		err = live_threads_step(threads, runner, &goes_on);
		memory_fini(target->memory); /* forget what was cached */
		if (!err)
			err = run_stopped(target, threads, &runner, &in_runtime);
	}
	memory_fini(target->memory);
	return err;
}

static struct error *run(pid_t pid, unsigned count, unsigned steps)
{
	struct live_target target;
	struct error *err = live_target_init(pid, &target);

	if (err)
		return err;
	for (unsigned i = 0; !err && count && i < STOPS_MAX; i++) {
		struct live_threads threads;
		bool done = false;

		err = live_threads_stop(pid, &threads);
		if (err)
			break;
		err = run_steps(&target, &threads, steps, &done);
		live_threads_fini(&threads);
		count -= done;
		let_run(i);
	}
	live_target_fini(&target);
	return err;
}

static unsigned argument(int argc, char **argv, int index, unsigned otherwise)
{
	return index < argc ? (unsigned)atoi(argv[index]) : otherwise;
}

int main(int argc, char **argv)
{
	struct error *err =
	    argc >= 2 && argc <= 4
		? run((pid_t)atoi(argv[1]), argument(argc, argv, 2, 1), argument(argc, argv, 3, 0))
		: error_new(ERROR_BAD_REQUEST, "usage: stack_facts PID [COUNT [STEPS]]");

	if (!err)
		return EXIT_SUCCESS;
	fprintf(stderr, "stack_facts: %s\n", error_message(err));
	error_free(err);
	return EXIT_FAILURE;
}
