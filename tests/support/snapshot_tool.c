/*
 * For tests: what agent/target does to a process, one command at a time, as lines of JSON.
 *
 *	plan PID                  what the decoder would find out for the injection, as words
 *	take PID PLAN COUNT       so many snapshots, each collected
 *	die PID PLAN CALL PHASE   our death as the injected clone or wait4 (0, 1) reaches the phase
 *	die-after PID PLAN US     our death so many microseconds after a snapshot was begun
 *	collect PID PLAN CHILD    collects what another has left behind
 *	stop PID MS MAX_US        a stop of so long, allowed to take so long; 0: with patience
 *	settle PID MAX_US         a stop with all of memory as a bad place to be stopped at
 *	judge PID                 whether a snapshot would be safe, and what a stop would take
 *	compare PID PLAN          memory read under a stop against the snapshot's
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/layout.h"
#include "agent/target/fork_safety.h"
#include "agent/target/inject.h"
#include "agent/target/injection.h"
#include "agent/target/live_memory.h"
#include "agent/target/maps.h"
#include "agent/target/process.h"
#include "agent/target/procfs.h"
#include "agent/target/snapshot.h"
#include "agent/target/snapshot_memory.h"
#include "agent/target/threads.h"
#include "agent/target/tracee.h"
#include "tests/support/live_target.h"

enum {
	PCLNTAB_LIMIT = 256 << 20,
	BUSY_TRIES = 100,
	EXIT_DIED = 77, /* what death at a phase looks like to our parent */
};

/* What is proven must not depend on how busy the machine is. */
static const struct stop_limits patient = { .wait_us = 5000000, .attempts = 4 };

static struct procfs procfs;
static enum inject_phase death_phase;
static unsigned death_call, calls_seen;
static bool may_die;

/* Called by the injection, which links it weakly. */
void inject_phase_reached(enum inject_phase phase)
{
	if (!may_die)
		return;
	if (phase == INJECT_FRAME_WRITTEN)
		calls_seen++;
	if (calls_seen == death_call + 1 && phase == death_phase)
		_exit(EXIT_DIED);
}

/* ---- the plan ---- */

static struct error *add_functions(const struct pclntab *table, const char *name,
				   struct inject_function *ret)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < pclntab_func_count(table); i++) {
		struct pclntab_func func;
		struct error *err = pclntab_at(table, i, &func);

		if (err)
			return err;
		if (!strcmp(func.name, name) && found < INJECT_CANDIDATES)
			ret->entry[found++] = func.entry;
	}
	return NULL;
}

static struct error *find_functions(const struct live_target *target, struct inject_plan *plan)
{
	const struct elf_section *section = elf_file_find_section(target->elf, ".gopclntab");
	struct pclntab *table scoped(pclntab_freep) = NULL;
	uint8_t *bytes scoped(freep) = NULL;
	uint64_t text;
	size_t size;
	struct error *err;

	if (!section)
		return error_new(ERROR_FORMAT, "no .gopclntab");
	err = elf_file_read_section(target->elf, section, PCLNTAB_LIMIT, &bytes, &size);
	if (!err)
		err = layout_read_field(target->memory, target->layout->global_firstmoduledata.addr,
					target->layout->moduledata_text, &text);
	if (!err)
		err = pclntab_open(bytes, size, text, target->load_bias, &table);
	if (!err)
		err = add_functions(table, "runtime.osyield", &plan->osyield);
	if (!err)
		err = add_functions(table, "runtime.exit", &plan->exit);
	if (!err)
		err = add_functions(table, "runtime.sigreturn__sigaction", &plan->sigreturn);
	if (!err && !plan->sigreturn.entry[0])
		err = add_functions(table, "runtime.sigreturn", &plan->sigreturn);
	return err;
}

static struct error *make_plan(pid_t pid, struct inject_plan *ret)
{
	struct live_target target;
	struct error *err = live_target_init(pid, &target);
	const struct layout *layout;

	if (err)
		return err;
	layout = target.layout;
	*ret = (struct inject_plan){
		.allm = layout->global_allm.addr,
		.entry = elf_file_entry(target.elf) + target.load_bias,
		.m_alllink = layout->m_all_link.offset,
		.m_procid = layout->m_procid.offset,
		.m_gsignal = layout->m_gsignal.offset,
		.g_m = layout->g_m.offset,
		.g_stack_lo = layout->g_stack_lo.offset,
		.g_stack_hi = layout->g_stack_hi.offset,
	};
	err = find_functions(&target, ret);
	live_target_fini(&target);
	return err;
}

/* Plans are kept by the test between runs: finding one takes longer than a snapshot. */
static struct error *print_plan(pid_t pid)
{
	struct inject_plan plan;
	const uint8_t *byte = (const uint8_t *)&plan;
	struct error *err = make_plan(pid, &plan);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(plan); i++)
		printf("%02x", byte[i]);
	printf("\n");
	return NULL;
}

static struct error *parse_plan(const char *text, struct inject_plan *ret)
{
	uint8_t *byte = (uint8_t *)ret;

	if (strlen(text) != 2 * sizeof(*ret))
		return error_new(ERROR_FORMAT, "not a plan");
	for (size_t i = 0; i < sizeof(*ret); i++) {
		unsigned value;

		if (sscanf(text + 2 * i, "%2x", &value) != 1)
			return error_new(ERROR_FORMAT, "not a plan");
		byte[i] = (uint8_t)value;
	}
	return NULL;
}

/* ---- snapshots ---- */

/* A process with what it takes to inject into it. */
struct victim {
	struct process *process;
	struct injector *injector;
};

static void victim_fini(struct victim *victim)
{
	injector_free(victim->injector);
	process_free(victim->process);
}

static struct error *victim_init(pid_t pid, const char *plan_text, struct victim *ret)
{
	struct inject_plan plan;
	struct error *err = parse_plan(plan_text, &plan);

	*ret = (struct victim){ 0 };
	if (!err)
		err = process_read(&procfs, pid, &ret->process);
	if (!err)
		err = injector_new(ret->process, &plan, &ret->injector);
	return err;
}

/* As a keeper does it: where every thread was busy, all run on for a moment. */
static struct error *take_one(const struct victim *victim, struct snapshot **ret,
			      uint64_t *ret_pause_us)
{
	struct error *err = NULL;

	for (unsigned i = 0; i < BUSY_TRIES; i++) {
		struct threads *threads scoped(threads_freep) = NULL;

		error_free(err);
		err = threads_stop(victim->process, &patient, &threads);
		if (err)
			return err;
		err = snapshot_take(threads, victim->injector, ret);
		*ret_pause_us = threads_pause_us(threads);
		if (!err || error_code(err) != ERROR_BUSY)
			return err;
	}
	return err;
}

static struct error *take_and_collect(const struct victim *victim, uint64_t *ret_pause_us,
				      uint64_t *ret_collect_us)
{
	struct snapshot *snapshot;
	struct error *err = take_one(victim, &snapshot, ret_pause_us);

	if (err)
		return err;
	err = snapshot_collect(snapshot, ret_collect_us);
	snapshot_free(snapshot);
	return err;
}

static struct error *take_many(struct victim *victim, unsigned count)
{
	uint64_t sum = 0, most = 0, collect_sum = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t pause_us, collect_us;
		struct error *err = take_and_collect(victim, &pause_us, &collect_us);

		if (err)
			return error_context(err, "snapshot %u", i);
		sum += pause_us;
		collect_sum += collect_us;
		most = pause_us > most ? pause_us : most;
	}
	printf("{\"taken\": %u, \"mean_pause_us\": %" PRIu64 ", \"most_pause_us\": %" PRIu64
	       ", \"mean_collect_us\": %" PRIu64 "}\n",
	       count, sum / count, most, collect_sum / count);
	return NULL;
}

static struct error *die(struct victim *victim, unsigned call, unsigned phase)
{
	uint64_t pause_us, collect_us;

	death_call = call;
	death_phase = phase;
	may_die = true;
	return take_and_collect(victim, &pause_us, &collect_us);
}

static struct error *die_after(struct victim *victim, unsigned us)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value.tv_nsec = (long)us * 1000 + 1 };
	uint64_t pause_us, collect_us;
	struct error *err = NULL;
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
		return error_system(errno, "timer");
	while (!err)
		err = take_and_collect(victim, &pause_us, &collect_us);
	return err;
}

static struct error *collect(struct victim *victim, pid_t child)
{
	unsigned count;
	struct error *err = snapshot_collect_leftover(victim->injector, child, &count);

	if (!err)
		printf("{\"collected\": %u}\n", count);
	return err;
}

/* ---- stops ---- */

static struct error *stop(pid_t pid, unsigned ms, uint64_t max_pause_us, bool settle)
{
	static const struct address_range everywhere = { 0, UINT64_MAX };
	struct stop_limits limits = max_pause_us ? stop_limits_default : patient;
	struct process *process scoped(process_freep) = NULL;
	struct threads *threads scoped(threads_freep) = NULL;
	uint32_t left = 0;
	struct error *err = process_read(&procfs, pid, &process);

	limits.max_pause_us = max_pause_us;
	if (!err)
		err = threads_stop(process, &limits, &threads);
	if (!err && settle)
		err = threads_settle(threads, &everywhere, 1, 5, &left);
	if (err)
		return err;
	usleep(ms * 1000);
	threads_resume(threads);
	printf("{\"threads\": %" PRIu32 ", \"left\": %" PRIu32 ", \"pause_us\": %" PRIu64 "}\n",
	       threads_count(threads), left, threads_pause_us(threads));
	return NULL;
}

static struct error *judge(pid_t pid)
{
	const struct fork_safety_policy policy = {
		.can_suspend_filters = tracee_can_suspend_filters(),
	};
	const struct fork_safety_scan scan = { 0 };
	struct process *process scoped(process_freep) = NULL;
	struct fork_safety verdict;
	struct error *err = process_read(&procfs, pid, &process);

	if (!err)
		err = fork_safety_judge(process, &policy, &verdict);
	if (!err)
		fork_safety_predict(process, &scan, &verdict);
	if (!err)
		printf("{\"safe\": %s, \"reason\": \"%s\", \"fork_pause_us\": %" PRIu64
		       ", \"stop_pause_us\": %" PRIu64 "}\n",
		       verdict.safe ? "true" : "false", verdict.reason, verdict.fork_pause_us,
		       verdict.stop_pause_us);
	return err;
}

/* ---- memory ---- */

enum { PAGE_BYTES = 4096 };

struct comparison {
	uint64_t same, different, unreadable;
};

/* Every page of every private mapping, read both ways. */
static void compare_mapping(struct memory *live, struct memory *snapshot,
			    const struct mapping *mapping, struct comparison *sum)
{
	for (taddr addr = mapping->start; addr < mapping->end; addr += PAGE_BYTES) {
		uint8_t a[PAGE_BYTES], b[PAGE_BYTES];
		struct error *live_err = memory_read_bulk(live, addr, a, sizeof(a));
		struct error *snapshot_err = memory_read_bulk(snapshot, addr, b, sizeof(b));

		if (live_err || snapshot_err)
			sum->unreadable++;
		else if (memcmp(a, b, sizeof(a)))
			sum->different++;
		else
			sum->same++;
		error_free(live_err);
		error_free(snapshot_err);
	}
}

struct open_files {
	struct live_memory_files live;
	int snapshot_mem;
};

static void close_files(struct open_files *files)
{
	closep(&files->live.mem);
	closep(&files->live.pagemap);
	closep(&files->live.maps);
	closep(&files->live.exe);
	closep(&files->snapshot_mem);
}

static struct error *open_files(const struct process *process, const struct snapshot *snapshot,
				struct open_files *ret)
{
	struct error *err = process_open(process, "mem", O_RDONLY, &ret->live.mem);

	if (!err)
		err = process_open(process, "pagemap", O_RDONLY, &ret->live.pagemap);
	if (!err)
		err = process_open(process, "maps", O_RDONLY, &ret->live.maps);
	if (!err)
		err = process_open(process, "exe", O_RDONLY, &ret->live.exe);
	if (!err)
		err = snapshot_open(snapshot, "mem", &ret->snapshot_mem);
	return err;
}

static struct error *compare_files(const struct open_files *files)
{
	struct memory *live scoped(memory_freep) = NULL;
	struct memory *frozen scoped(memory_freep) = NULL;
	struct maps *maps scoped(maps_freep) = NULL;
	struct comparison sum = { 0 };
	struct error *err = live_memory_open(&files->live, &live);

	if (!err)
		err = snapshot_memory_open(files->snapshot_mem, &frozen);
	if (!err)
		err = maps_read(files->live.maps, &maps);
	if (err)
		return err;
	for (uint32_t i = 0; i < maps->count; i++) {
		if (maps->items[i].read && !maps->items[i].shared)
			compare_mapping(live, frozen, &maps->items[i], &sum);
	}
	printf("{\"same\": %" PRIu64 ", \"different\": %" PRIu64 ", \"unreadable\": %" PRIu64 "}\n",
	       sum.same, sum.different, sum.unreadable);
	return NULL;
}

/* The target sleeps meanwhile: what it is after the snapshot is what it was. */
static struct error *compare(struct victim *victim)
{
	struct snapshot *snapshot scoped(snapshot_freep) = NULL;
	struct threads *threads scoped(threads_freep) = NULL;
	struct open_files files = { { -1, -1, -1, -1, NULL, NULL, 0 }, -1 };
	uint64_t pause_us;
	struct error *err = take_one(victim, &snapshot, &pause_us);

	if (!err)
		err = threads_stop(victim->process, &patient, &threads);
	if (!err)
		err = open_files(victim->process, snapshot, &files);
	if (!err)
		err = compare_files(&files);
	close_files(&files);
	return err;
}

/* ---- commands ---- */

static struct error *run_on_victim(const char *command, pid_t pid, int argc, char **argv)
{
	struct victim victim;
	struct error *err;

	if (argc < 4)
		return error_new(ERROR_BAD_REQUEST, "%s: no plan", command);
	err = victim_init(pid, argv[3], &victim);
	if (err)
		;
	else if (!strcmp(command, "take") && argc == 5)
		err = take_many(&victim, (unsigned)atoi(argv[4]));
	else if (!strcmp(command, "die") && argc == 6)
		err = die(&victim, (unsigned)atoi(argv[4]), (unsigned)atoi(argv[5]));
	else if (!strcmp(command, "die-after") && argc == 5)
		err = die_after(&victim, (unsigned)atoi(argv[4]));
	else if (!strcmp(command, "collect") && argc == 5)
		err = collect(&victim, atoi(argv[4]));
	else if (!strcmp(command, "compare") && argc == 4)
		err = compare(&victim);
	else
		err = error_new(ERROR_BAD_REQUEST, "unknown command %s", command);
	victim_fini(&victim);
	return err;
}

/* The code as agent/wire and the HTTP contract name it, as far as agent/target gives it. */
static const char *code_name(enum error_code code)
{
	switch (code) {
	case ERROR_SYSTEM:
		return "system";
	case ERROR_GONE:
		return "gone";
	case ERROR_UNSUPPORTED:
		return "unsupported";
	case ERROR_DENIED:
		return "denied";
	case ERROR_NO_PROCESS:
		return "no process";
	case ERROR_ALREADY_TRACED:
		return "already traced";
	case ERROR_NOT_STOPPABLE:
		return "not stoppable";
	case ERROR_FORK_UNSAFE:
		return "fork unsafe";
	case ERROR_BUSY:
		return "busy";
	case ERROR_PAUSE_EXCEEDED:
		return "pause exceeded";
	default:
		return "other";
	}
}

int main(int argc, char **argv)
{
	struct error *err;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: snapshot_tool COMMAND PID ...\n");
		return 2;
	}
	pid = atoi(argv[2]);
	err = procfs_init(&procfs, "/proc", "/sys/fs/cgroup");
	if (err)
		;
	else if (!strcmp(argv[1], "plan"))
		err = print_plan(pid);
	else if (!strcmp(argv[1], "stop") && argc == 5)
		err = stop(pid, (unsigned)atoi(argv[3]), strtoull(argv[4], NULL, 10), false);
	else if (!strcmp(argv[1], "settle") && argc == 4)
		err = stop(pid, 0, strtoull(argv[3], NULL, 10), true);
	else if (!strcmp(argv[1], "judge"))
		err = judge(pid);
	else
		err = run_on_victim(argv[1], pid, argc, argv);
	if (!err)
		return 0;
	printf("{\"error\": \"%s\", \"message\": \"%s\"}\n", code_name(error_code(err)),
	       error_message(err));
	error_free(err);
	return 1;
}
