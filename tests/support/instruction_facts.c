/*
 * Takes a thread of a running Go program through functions of the runtime, instruction by
 * instruction, and scans the program at each of them as it would be scanned had it been stopped
 * there. The CPU's debug registers wait for the function, so nothing of the program is changed.
 *
 *	instruction_facts PID ENTRIES STEPS EVERY SIZE[,SIZE...] [*]FUNCTION[<CALLER]...
 *
 * Of each FUNCTION, if called by CALLER, that many entries, by goroutines of the program's own
 *alone unless there is a '*'; from each on so many instructions at most, until it returns or the
 *thread is back in the program's own code. Of those in functions that it calls and that the keeper
 *has nothing against, only one in EVERY is looked at. Prints an object for each: where the thread
 *was, whether the keeper would have taken it there, and how many objects of the SIZEs are live.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/mark.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/stack.h"
#include "tests/support/live_scan.h"
#include "tests/support/live_target.h"
#include "tests/support/live_threads.h"

enum {
	SIZES_MAX = 64,
	WAIT_MS = 20000,      /* for one entry */
	OTHER_CALLERS = 5000, /* entries from elsewhere, before we give up */
	REPEATED_SCANS = 2,   /* of an instruction that repeats itself: copies a word at a time */
};

struct stepper {
	pid_t pid;
	unsigned entries, steps, every;
	uint64_t sizes[SIZES_MAX];
	unsigned size_count;
	struct live_target target;
	struct live_threads threads;
	struct module_table *modules; /* of the program at its start: what functions there are */
	struct pc_range *unwalkable;
	uint32_t unwalkable_count;
};

/* A function to be stepped through, as the command line names it. */
struct quest {
	char name[256];
	const char *caller; /* NULL: any */
	bool by_system;     /* goroutines of the runtime's are as good */
	uint64_t addrs[LIVE_BREAKPOINTS_MAX];
	unsigned addr_count;
};

static const struct pclntab *functions(const struct stepper *s)
{
	return module_table_at(s->modules, 0)->pclntab;
}

/* Static, or empty: names lie in the table. */
static const char *function_at(const struct stepper *s, taddr pc)
{
	struct pclntab_func func;
	bool found = false;
	struct error *err = pclntab_find(functions(s), pc, &found, &func);

	error_free(err);
	return !err && found ? func.name : "";
}

static struct error *find_quest(const struct stepper *s, const char *text, struct quest *ret)
{
	const char *name = text + (*text == '*'), *caller = strchr(name, '<');
	size_t length = caller ? (size_t)(caller - name) : strlen(name);
	struct quest quest = { .caller = caller ? caller + 1 : NULL, .by_system = name != text };

	snprintf(quest.name, sizeof(quest.name), "%.*s", (int)length, name);
	for (uint32_t i = 0; i < pclntab_func_count(functions(s)); i++) {
		struct pclntab_func func;
		struct error *err = pclntab_at(functions(s), i, &func);

		if (err)
			return err;
		if (!strcmp(func.name, quest.name) && quest.addr_count < LIVE_BREAKPOINTS_MAX)
			quest.addrs[quest.addr_count++] = func.entry;
	}
	*ret = quest;
	return NULL;
}

static bool is_walkable_pc(const struct stepper *s, taddr pc)
{
	for (uint32_t i = 0; i < s->unwalkable_count; i++) {
		if (pc >= s->unwalkable[i].start && pc < s->unwalkable[i].end)
			return false;
	}
	return true;
}

/* Would the keeper be content with where the threads are? */
static bool is_walkable(const struct stepper *s)
{
	for (uint32_t i = 0; i < s->threads.count; i++) {
		if (!is_walkable_pc(s, s->threads.threads[i].pc))
			return false;
	}
	return true;
}

/* The goroutine on whose behalf the thread works; NULL: none. */
static const struct goroutine *goroutine_of(const struct goroutine_table *goroutines,
					    const struct stopped_thread *thread)
{
	const struct machine_table *machines = goroutine_table_machines(goroutines);
	taddr curg = 0;

	for (uint32_t i = 0; i < machines->count; i++) {
		if (machines->machines[i].thread == thread)
			curg = machines->machines[i].curg;
	}
	for (uint32_t i = 0; i < goroutine_table_count(goroutines); i++) {
		if (goroutine_table_at(goroutines, i)->g == curg)
			return goroutine_table_at(goroutines, i);
	}
	return NULL;
}

static void print_scan(const struct stepper *s, const struct live_scan *scan,
		       const struct stopped_thread *thread, unsigned step)
{
	const struct mark_totals *totals = mark_totals(scan->mark);
	const struct goroutine *g = goroutine_of(scan->goroutines, thread);

	printf("{\"step\":%u,\"pc\":%" PRIu64 ",\"in\":\"%s\",\"walkable\":%s,\"of_program\":%s"
	       ",\"phase\":\"%s\",\"conservative\":%" PRIu32 ",\"skipped\":%" PRIu32
	       ",\"free_slot_hits\":%" PRIu64 ",\"self_check\":\"%s\",\"live\":[",
	       step, thread->pc, function_at(s, thread->pc), is_walkable(s) ? "true" : "false",
	       g && !g->system ? "true" : "false", scan->phase, scan->conservative_stacks,
	       scan->skipped_stacks, totals->free_slot_hits, scan->self_check);
	for (unsigned i = 0; i < s->size_count; i++)
		printf("%s%" PRIu64, i ? "," : "", live_scan_count(scan, s->sizes[i]).live);
	printf("]}\n");
}

static struct error *scan_once(struct stepper *s, uint32_t index, unsigned step)
{
	struct live_scan scan;
	struct error *err =
	    live_scan_init(&s->target, s->modules, s->threads.threads, s->threads.count, &scan);

	if (err)
		return error_context(err, "at 0x%" PRIx64 " in %s", s->threads.threads[index].pc,
				     function_at(s, s->threads.threads[index].pc));
	print_scan(s, &scan, &s->threads.threads[index], step);
	live_scan_fini(&scan);
	return NULL;
}

static bool is_users(const char *function)
{
	return !strncmp(function, "main.", 5);
}

/* The function itself, and what the keeper avoids, are looked at all along. */
static bool is_due(const struct stepper *s, const struct quest *quest, taddr pc, unsigned step)
{
	return step % s->every == 0 || !is_walkable_pc(s, pc) ||
	       !strcmp(function_at(s, pc), quest->name);
}

/* Steps and scans until the function returns, or is left for the program's own. */
static struct error *take_through(struct stepper *s, const struct quest *quest, uint32_t index,
				  uint64_t return_pc)
{
	const struct stopped_thread *thread = &s->threads.threads[index];
	struct error *err = scan_once(s, index, 0);
	unsigned repeated = 0;
	bool goes_on = true;

	for (unsigned i = 1; !err && i < s->steps; i++) {
		uint64_t before = thread->pc;

		err = live_threads_step(&s->threads, index, &goes_on);
		if (err || !goes_on)
			return err;
		if (thread->pc == return_pc || is_users(function_at(s, thread->pc)))
			return scan_once(s, index, i);
		repeated = thread->pc == before ? repeated + 1 : 0;
		if (repeated < REPEATED_SCANS && is_due(s, quest, thread->pc, i))
			err = scan_once(s, index, i);
	}
	return err;
}

static struct error *is_of_program(const struct stepper *s, uint32_t index, bool *ret)
{
	struct goroutine_table *goroutines scoped(goroutine_table_freep) = NULL;
	const struct goroutine *g;
	struct error *err = goroutine_table_read(s->target.memory, s->target.layout, s->modules,
						 s->threads.threads, s->threads.count, &goroutines);

	if (err)
		return err;
	g = goroutine_of(goroutines, &s->threads.threads[index]);
	*ret = g && !g->system;
	return NULL;
}

/* Is the thread, at the first instruction, where the quest wants it? */
static struct error *is_wanted(const struct stepper *s, const struct quest *quest, uint32_t index,
			       uint64_t *ret_return_pc, bool *ret)
{
	struct error *err =
	    memory_u64(s->target.memory, s->threads.threads[index].sp, ret_return_pc);

	*ret = !err && (!quest->caller || !strcmp(function_at(s, *ret_return_pc), quest->caller));
	if (*ret && !quest->by_system)
		err = is_of_program(s, index, ret);
	memory_fini(s->target.memory); /* forget what was cached */
	return err;
}

static struct error *take_entry(struct stepper *s, const struct quest *quest)
{
	for (unsigned i = 0; i < OTHER_CALLERS; i++) {
		uint64_t return_pc;
		uint32_t index;
		bool wanted;
		struct error *err = live_threads_run_to(s->pid, &s->threads, quest->addrs,
							quest->addr_count, WAIT_MS, &index);

		if (err || index == UINT32_MAX)
			return err;
		err = is_wanted(s, quest, index, &return_pc, &wanted);
		if (err)
			return err;
		if (!wanted)
			continue;
		printf("{\"entry\":\"%s\"}\n", quest->name);
		return take_through(s, quest, index, return_pc);
	}
	return NULL;
}

static struct error *follow_quest(struct stepper *s, const char *text)
{
	struct quest quest;
	struct error *err = find_quest(s, text, &quest);

	if (err)
		return err;
	printf("{\"quest\":\"%s\",\"places\":%u}\n", text, quest.addr_count);
	for (unsigned i = 0; !err && quest.addr_count && i < s->entries; i++)
		err = take_entry(s, &quest);
	return err ? error_context(err, "%s", text) : NULL;
}

static void parse_sizes(struct stepper *s, char *text)
{
	char *rest = NULL;

	for (char *word = strtok_r(text, ",", &rest); word && s->size_count < SIZES_MAX;
	     word = strtok_r(NULL, ",", &rest))
		s->sizes[s->size_count++] = strtoull(word, NULL, 10);
}

static struct error *open_program(struct stepper *s)
{
	struct error *err = live_target_init(s->pid, &s->target);

	if (!err)
		err = module_table_read(s->target.memory, s->target.layout, &s->modules);
	if (!err)
		err = stack_unwalkable_ranges(functions(s), &s->unwalkable, &s->unwalkable_count);
	return err ? err : live_threads_stop(s->pid, &s->threads);
}

static struct error *run(struct stepper *s, char *const *quests, int count)
{
	struct error *err = open_program(s);

	for (int i = 0; !err && i < count; i++)
		err = follow_quest(s, quests[i]);
	live_threads_fini(&s->threads);
	free(s->unwalkable);
	module_table_free(s->modules);
	live_target_fini(&s->target);
	return err;
}

int main(int argc, char **argv)
{
	struct stepper s = { .target.exe_fd = -1 };
	struct error *err;

	if (argc < 7) {
		fprintf(stderr,
			"usage: instruction_facts PID ENTRIES STEPS EVERY SIZES FUNCTION...\n");
		return EXIT_FAILURE;
	}
	s.pid = (pid_t)atoi(argv[1]);
	s.entries = (unsigned)atoi(argv[2]);
	s.steps = (unsigned)atoi(argv[3]);
	s.every = (unsigned)atoi(argv[4]);
	parse_sizes(&s, argv[5]);
	err = s.every ? run(&s, argv + 6, argc - 6) : error_new(ERROR_BAD_REQUEST, "EVERY is 0");
	if (!err)
		return EXIT_SUCCESS;
	fprintf(stderr, "instruction_facts: %s\n", error_message(err));
	error_free(err);
	return EXIT_FAILURE;
}
