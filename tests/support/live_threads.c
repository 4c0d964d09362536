#include "tests/support/live_threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
	THREADS_MAX = 1024,
	VECTOR_MAX = 16 << 10,
	PUSHF = 0x9c,
	TRAP_FLAG = 1 << 8,
	STEP_WAITS = 2000, /* of 0.1 ms */
	PENDING_MAX = 64,  /* signals looked at */
	DEBUG_STATUS = 6,  /* of the debug registers: which breakpoint was met */
	DEBUG_CONTROL = 7, /* two bits for each breakpoint; of kind 0, execution */
	ANY_BREAKPOINT = 0xf,
};

/* The tid in the innermost pid namespace, which the target's runtime knows. */
static uint32_t inner_tid(pid_t pid, pid_t tid)
{
	char path[64], line[256];
	uint32_t inner = (uint32_t)tid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			inner = (uint32_t)atoi(last);
	}
	if (file)
		fclose(file);
	return inner;
}

/*
 * Signals that come before our stop are handed on, but for the trap of a step of ours that ended
 * after all: nobody else may see that one.
 */
static struct error *wait_for_stop(pid_t tid)
{
	for (;;) {
		int status;

		if (waitpid(tid, &status, __WALL) != tid)
			return error_system(errno, "waitpid %d", (int)tid);
		if (!WIFSTOPPED(status))
			return error_new(ERROR_GONE, "thread %d ended", (int)tid);
		if (status >> 16 == PTRACE_EVENT_STOP)
			return NULL;
		if (ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status)))
			return error_system(errno, "PTRACE_CONT %d", (int)tid);
	}
}

static struct error *read_registers(pid_t tid, struct stopped_thread *thread)
{
	struct user_regs_struct r;
	struct iovec general = { &r, sizeof(r) };
	struct iovec extended = { (void *)thread->vector, VECTOR_MAX };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &general))
		return error_system(errno, "registers of %d", (int)tid);
	if (!ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &extended))
		thread->vector_size = (uint32_t)extended.iov_len;
	thread->pc = r.rip;
	thread->sp = r.rsp;
	thread->bp = r.rbp;
	thread->tls = r.fs_base;
	memcpy(thread->gpr,
	       (uint64_t[THREAD_GPR_COUNT]){ r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10,
					     r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi, r.rdi, r.rsp },
	       sizeof(thread->gpr));
	return NULL;
}

/* The one state in which a thread that was listed cannot be seized, with ESRCH or EPERM. */
static bool has_ended(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	const char *state = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (fgets(line, sizeof(line), file))
		state = strrchr(line, ')');
	fclose(file);
	return !state || !strncmp(state, ") Z", 3) || !strncmp(state, ") X", 3);
}

/* Adds it to the threads, unless it ends under our hands. */
static struct error *stop_thread(pid_t pid, pid_t tid, struct live_threads *threads)
{
	struct stopped_thread *thread = &threads->threads[threads->count];
	struct error *err;

	if (threads->count == THREADS_MAX)
		return error_new(ERROR_LIMIT, "more than %d threads", THREADS_MAX);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return has_ended(pid, tid) ? NULL
					   : error_system(errno, "PTRACE_SEIZE %d", (int)tid);
	err = wait_for_stop(tid);
	if (err && error_code(err) == ERROR_GONE) {
		error_free(err);
		return NULL;
	}
	if (err)
		return err;
	threads->count++;
	thread->tid = (uint32_t)tid;
	thread->vector = calloc(1, VECTOR_MAX);
	if (!thread->vector)
		return &error_nomem;
	thread->target_tid = inner_tid(pid, tid);
	return read_registers(tid, thread);
}

static bool is_stopped(const struct live_threads *threads, pid_t tid)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		if (threads->threads[i].tid == (uint32_t)tid)
			return true;
	}
	return false;
}

/* Stops what is not stopped yet; *ret_new says how many that were. */
static struct error *stop_round(pid_t pid, struct live_threads *threads, unsigned *ret_new)
{
	char path[64];
	struct error *err = NULL;
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return error_system(errno, "%s", path);
	*ret_new = threads->count;
	while (!err && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || is_stopped(threads, tid))
			continue;
		err = stop_thread(pid, tid, threads);
	}
	*ret_new = threads->count - *ret_new;
	closedir(tasks);
	return err;
}

struct error *live_threads_stop(pid_t pid, struct live_threads *ret)
{
	struct live_threads threads = { .threads = calloc(THREADS_MAX, sizeof(*threads.threads)) };
	struct error *err = NULL;
	unsigned more = 1;

	if (!threads.threads)
		return &error_nomem;
	while (!err && more)
		err = stop_round(pid, &threads, &more);
	if (err) {
		live_threads_fini(&threads);
		return err;
	}
	*ret = threads;
	return NULL;
}

/* pushf stores the flag that steps us, and popf would set it when nobody steps any more. */
static struct error *forget_trap_flag(pid_t tid, const struct stopped_thread *thread)
{
	long flags;

	errno = 0;
	flags = ptrace(PTRACE_PEEKDATA, tid, thread->sp, 0);
	if (errno || ptrace(PTRACE_POKEDATA, tid, thread->sp, flags & ~TRAP_FLAG))
		return error_system(errno, "flags of %d", (int)tid);
	return NULL;
}

/*
 * A step of popf that does not come to its end, since a signal or our interruption is first, leaves
 * its flag as if the program had set it: the kernel takes such a flag for what popf will bring
 * (is_setting_trap_flag in arch/x86/kernel/step.c). No Go program has one of its own.
 */
static struct error *drop_trap_flag(pid_t tid)
{
	const size_t offset = offsetof(struct user, regs.eflags);
	long flags;

	errno = 0;
	flags = ptrace(PTRACE_PEEKUSER, tid, offset, 0);
	if (errno ||
	    (flags & TRAP_FLAG && ptrace(PTRACE_POKEUSER, tid, offset, flags & ~TRAP_FLAG)))
		return error_system(errno, "flags of %d", (int)tid);
	return NULL;
}

/* Waits a little for the end of a step; false if there is none. */
static bool wait_for_step(pid_t tid, int *status)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	for (unsigned i = 0; i < STEP_WAITS; i++) {
		if (waitpid(tid, status, __WALL | WNOHANG))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* The trap of a step may wait behind our interruption. */
static bool trap_is_pending(pid_t tid)
{
	struct __ptrace_peeksiginfo_args all = { .nr = PENDING_MAX };
	siginfo_t pending[PENDING_MAX];
	long count = ptrace(PTRACE_PEEKSIGINFO, tid, &all, pending);

	for (long i = 0; i < count; i++) {
		if (pending[i].si_signo == SIGTRAP)
			return true;
	}
	return false;
}

/*
 * Stops a thread whose step does not end. The step may end just then, before the interruption or
 * behind it: *ret_done says so, and its trap is taken in either case.
 */
static struct error *interrupt_step(pid_t tid, bool *ret_done)
{
	struct error *err;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return error_system(errno, "PTRACE_INTERRUPT %d", (int)tid);
	err = wait_for_stop(tid);
	if (err || !trap_is_pending(tid))
		return err;
	*ret_done = true;
	if (ptrace(PTRACE_CONT, tid, 0, 0))
		return error_system(errno, "PTRACE_CONT %d", (int)tid);
	return waitpid(tid, NULL, __WALL) == tid ? NULL
						 : error_system(errno, "waitpid %d", (int)tid);
}

/* One step, and more while there are signals to take. */
static struct error *step(pid_t tid, bool *ret_done)
{
	int signal = 0;

	do {
		struct error *err;
		int status = 0;

		if (ptrace(PTRACE_SINGLESTEP, tid, 0, signal))
			return error_system(errno, "PTRACE_SINGLESTEP %d", (int)tid);
		*ret_done = wait_for_step(tid, &status);
		if (!*ret_done)
			return interrupt_step(tid, ret_done);
		if (!WIFSTOPPED(status))
			return error_new(ERROR_GONE, "thread %d ended", (int)tid);
		err = drop_trap_flag(tid);
		if (err)
			return err;
		signal = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
	} while (signal);
	return NULL;
}

struct error *live_threads_step(struct live_threads *threads, uint32_t index, bool *ret)
{
	struct stopped_thread *thread = &threads->threads[index];
	pid_t tid = (pid_t)thread->tid;
	long code = ptrace(PTRACE_PEEKTEXT, tid, thread->pc, 0);
	struct error *err = step(tid, ret);

	if (!err)
		err = drop_trap_flag(tid);
	if (!err)
		err = read_registers(tid, thread);
	if (!err && (code & 0xff) == PUSHF)
		err = forget_trap_flag(tid, thread);
	return err;
}

static struct error *set_debug_register(pid_t tid, unsigned index, uint64_t value)
{
	size_t offset = offsetof(struct user, u_debugreg) + index * sizeof(long);

	/* One that ended meanwhile will watch nothing. */
	if (ptrace(PTRACE_POKEUSER, tid, offset, value) && errno != ESRCH)
		return error_system(errno, "debug register %u of %d", index, (int)tid);
	return NULL;
}

static struct error *watch(pid_t tid, const uint64_t *addrs, unsigned addr_count)
{
	struct error *err = set_debug_register(tid, DEBUG_CONTROL, 0);
	uint64_t control = 0;

	for (unsigned i = 0; !err && i < addr_count; i++) {
		control |= UINT64_C(1) << 2 * i;
		err = set_debug_register(tid, i, addrs[i]);
	}
	return err || !control ? err : set_debug_register(tid, DEBUG_CONTROL, control);
}

static struct error *watch_all(const struct live_threads *threads, const uint64_t *addrs,
			       unsigned addr_count)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < threads->count; i++)
		err = watch((pid_t)threads->threads[i].tid, addrs, addr_count);
	return err;
}

static bool has_met_breakpoint(pid_t tid)
{
	size_t offset = offsetof(struct user, u_debugreg) + DEBUG_STATUS * sizeof(long);

	errno = 0;
	return ptrace(PTRACE_PEEKUSER, tid, offset, 0) & ANY_BREAKPOINT && !errno;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Hands on signals until a thread meets a breakpoint; 0 if none does in time. */
static pid_t wait_for_breakpoint(unsigned timeout_ms)
{
	uint64_t deadline = now_ms() + timeout_ms;

	while (now_ms() < deadline) {
		int status, signal;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid <= 0) {
			const struct timespec pause = { .tv_nsec = 20000 };

			nanosleep(&pause, NULL);
			continue;
		}
		if (!WIFSTOPPED(status))
			continue;
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (signal == SIGTRAP && has_met_breakpoint(tid))
			return tid;
		ptrace(PTRACE_CONT, tid, 0, signal == SIGTRAP ? 0 : signal);
	}
	return 0;
}

/* Stops one that runs; false if it has ended. */
static bool stop_again(const struct stopped_thread *thread)
{
	struct error *err = NULL;

	if (ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0))
		return false;
	err = wait_for_stop((pid_t)thread->tid);
	error_free(err);
	return !err;
}

/* Stops all but the one that stands still already, and lists those that are left. */
static struct error *stop_others(struct live_threads *threads, pid_t stopped)
{
	uint32_t left = 0;
	struct error *err = NULL;

	for (uint32_t i = 0; i < threads->count; i++) {
		struct stopped_thread thread = threads->threads[i];

		if ((pid_t)thread.tid != stopped && !stop_again(&thread)) {
			free((void *)thread.vector);
			continue;
		}
		threads->threads[left++] = thread;
	}
	memset(threads->threads + left, 0, (threads->count - left) * sizeof(*threads->threads));
	threads->count = left;
	for (uint32_t i = 0; !err && i < left; i++)
		err = read_registers((pid_t)threads->threads[i].tid, &threads->threads[i]);
	return err;
}

static uint32_t index_of(const struct live_threads *threads, pid_t tid)
{
	for (uint32_t i = 0; tid && i < threads->count; i++) {
		if (threads->threads[i].tid == (uint32_t)tid)
			return i;
	}
	return UINT32_MAX;
}

struct error *live_threads_run_to(pid_t pid, struct live_threads *threads, const uint64_t *addrs,
				  unsigned addr_count, unsigned timeout_ms, uint32_t *ret)
{
	struct error *err = watch_all(threads, addrs, addr_count);
	unsigned more = 1;
	pid_t tid;

	if (err)
		return err;
	for (uint32_t i = 0; i < threads->count; i++)
		ptrace(PTRACE_CONT, threads->threads[i].tid, 0, 0);
	tid = wait_for_breakpoint(timeout_ms);
	err = stop_others(threads, tid);
	if (!err)
		err = watch_all(threads, NULL, 0);
	while (!err && more)
		err = stop_round(pid, threads, &more);
	if (!err)
		*ret = index_of(threads, tid);
	return err;
}

void live_threads_fini(struct live_threads *threads)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		ptrace(PTRACE_DETACH, threads->threads[i].tid, 0, 0);
		free((void *)threads->threads[i].vector);
	}
	free(threads->threads);
	*threads = (struct live_threads){ 0 };
}
