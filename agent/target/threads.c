#include "agent/target/threads.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "agent/target/process.h"
#include "agent/target/thread_list.h"
#include "agent/target/tracee.h"

enum {
	NS_PER_US = 1000,
	REST_US = 5000,       /* between attempts */
	LOOK_US = 3000,       /* that a thread is waited for before we look what is the matter */
	RUN_US = 30,          /* that a thread caught at a bad place is let run */
	STARVED_US = 5000000, /* that one without a processor is waited for, if no pause is set */
};

const struct stop_limits stop_limits_default = {
	.max_pause_us = 250000,
	.wait_us = 50000,
	.attempts = 4,
};

struct threads {
	struct thread_list list;
	struct stop_limits limits;
	uint64_t stopped_at_ns; /* 0: runs */
	uint64_t paused_ns;     /* of stops that are over */
};

/* ---- time ---- */

static void pause_begin(struct threads *threads)
{
	if (!threads->stopped_at_ns)
		threads->stopped_at_ns = tracee_now_ns();
}

static void pause_end(struct threads *threads)
{
	if (threads->stopped_at_ns)
		threads->paused_ns += tracee_now_ns() - threads->stopped_at_ns;
	threads->stopped_at_ns = 0;
}

static uint64_t paused_ns(const struct threads *threads)
{
	return threads->paused_ns +
	       (threads->stopped_at_ns ? tracee_now_ns() - threads->stopped_at_ns : 0);
}

uint64_t threads_pause_us(const struct threads *threads)
{
	return paused_ns(threads) / NS_PER_US;
}

uint64_t threads_pause_left_us(const struct threads *threads)
{
	uint64_t used = threads_pause_us(threads);

	if (!threads->limits.max_pause_us)
		return UINT64_MAX;
	return used < threads->limits.max_pause_us ? threads->limits.max_pause_us - used : 0;
}

/* So many microseconds from now, or when the pause is over. */
static uint64_t deadline_in(const struct threads *threads, uint64_t us)
{
	uint64_t left = threads_pause_left_us(threads);

	return tracee_now_ns() + (left < us ? left : us) * NS_PER_US;
}

/* When waiting for a stop ends, at the latest. */
static uint64_t wait_deadline(const struct threads *threads)
{
	return deadline_in(threads, threads->limits.wait_us);
}

/* The same for a thread that gets no processor: it stops as soon as it does. */
static uint64_t starved_deadline(const struct threads *threads)
{
	uint64_t max_pause_us = threads->limits.max_pause_us;

	return deadline_in(threads, max_pause_us ? max_pause_us : STARVED_US);
}

static struct error *pause_exceeded(const struct threads *threads)
{
	return error_new(
	    ERROR_PAUSE_EXCEEDED,
	    "process %d was stopped for %" PRIu64 " us, the limit is %" PRIu64 " us; it runs again",
	    threads->list.process->pid, threads_pause_us(threads), threads->limits.max_pause_us);
}

/* ---- stopping ---- */

static struct error *gone(const struct threads *threads)
{
	return error_new(ERROR_GONE, "process %d ended while it was being stopped",
			 threads->list.process->pid);
}

/* Asks those from first on that run; one that is on its way out is waited for like the others. */
static struct error *interrupt_running(struct threads *threads, uint32_t first)
{
	for (uint32_t i = first; i < threads->list.count; i++) {
		struct tracee *tracee = &threads->list.entries[i].tracee;
		struct error *err;

		if (tracee->stop != TRACEE_RUNNING)
			continue;
		err = tracee_interrupt(tracee);
		if (err && error_code(err) != ERROR_GONE)
			return err;
		error_free(err);
	}
	return NULL;
}

/* Exec and exit of the whole process end the stop; other events are not asked for. */
static struct error *check_event(const struct threads *threads, const struct tracee *tracee)
{
	if (tracee->stop == TRACEE_EVENT && tracee->event == PTRACE_EVENT_EXEC)
		return error_new(ERROR_GONE, "process %d has run another program",
				 threads->list.process->pid);
	return NULL;
}

/* A leader that exited before the others is never reported; its state says so. */
static void notice_dead_leader(struct threads *threads, struct tracee *tracee)
{
	struct task_status status;
	struct error *err;

	if (tracee->tid != threads->list.process->pid || tracee->stop != TRACEE_RUNNING)
		return;
	err = task_status_read(threads->list.process, tracee->tid, &status);
	if (!err && task_status_dead(&status))
		tracee->stop = TRACEE_GONE;
	error_free(err);
}

static struct error *not_stoppable(const struct threads *threads, pid_t tid)
{
	struct task_status status;
	struct error *err = task_status_read(threads->list.process, tid, &status);

	if (err)
		return err;
	return error_new(ERROR_NOT_STOPPABLE,
			 "thread %d of process %d does not stop (state %c: %s)", tid,
			 threads->list.process->pid, status.state ? status.state : '?',
			 status.state == 'D'   ? "vfork, frozen or waiting for a device"
			 : status.state == 'R' ? "it gets no processor"
					       : "it is not answering");
}

/* Whether it would stop if only it got a processor, which is no fault of its own. */
static bool is_starved(const struct threads *threads, pid_t tid)
{
	struct task_status status;
	struct error *err = task_status_read(threads->list.process, tid, &status);
	bool starved = !err && status.state == 'R';

	error_free(err);
	return starved;
}

/*
 * Waits for one. What is slow may be the leader of a process that is being killed: its end is
 * reported only once we have seen the ends of all others, those that had stopped included.
 */
static bool wait_one(struct threads *threads, struct tracee *tracee)
{
	uint64_t deadline_ns = wait_deadline(threads);
	uint64_t starved_deadline_ns = starved_deadline(threads);

	for (;;) {
		uint64_t now_ns = tracee_now_ns();
		uint64_t look_ns = now_ns + LOOK_US * NS_PER_US;

		if (tracee_wait(tracee, look_ns < deadline_ns ? look_ns : deadline_ns))
			return true;
		for (uint32_t i = 0; i < threads->list.count; i++)
			tracee_notice_end(&threads->list.entries[i].tracee);
		notice_dead_leader(threads, tracee);
		if (tracee->stop != TRACEE_RUNNING)
			return true;
		if (now_ns < deadline_ns)
			continue;
		if (now_ns >= starved_deadline_ns || !is_starved(threads, tracee->tid))
			return false;
		deadline_ns = wait_deadline(threads);
	}
}

/* Waits until all have stopped or ended; each has its time from when the one before it stopped. */
static struct error *wait_all(struct threads *threads)
{
	for (uint32_t i = threads->list.count; i--;) {
		struct tracee *tracee = &threads->list.entries[i].tracee;
		struct error *err;

		if (!wait_one(threads, tracee))
			return threads_pause_left_us(threads) ? not_stoppable(threads, tracee->tid)
							      : pause_exceeded(threads);
		err = check_event(threads, tracee);
		if (err)
			return err;
	}
	thread_list_drop_gone(&threads->list);
	return NULL;
}

/* Threads that are made faster than we stop them, or end more slowly than we wait. */
static struct error *endless(const struct threads *threads)
{
	if (!threads_pause_left_us(threads))
		return pause_exceeded(threads);
	return error_new(ERROR_NOT_STOPPABLE, "the threads of process %d come and go without end",
			 threads->list.process->pid);
}

/* Stops those from first on, which were just seized. */
static struct error *stop_new(struct threads *threads, uint32_t first)
{
	struct error *err;

	pause_begin(threads);
	err = interrupt_running(threads, first);
	return err ? err : wait_all(threads);
}

/*
 * Lists, stops what is new, and lists again until there are no others. Threads on their way out
 * are waited for like those that do not stop.
 */
static struct error *stop_all(struct threads *threads)
{
	uint64_t deadline_ns = wait_deadline(threads);

	for (unsigned idle = 0;;) {
		uint32_t before = threads->list.count, added;
		bool complete;
		struct error *err = thread_list_seize_new(&threads->list, &added, &complete);

		if (err)
			return err;
		if (added) {
			err = stop_new(threads, before);
			if (!err && !threads_pause_left_us(threads))
				err = pause_exceeded(threads);
			if (err)
				return err;
			deadline_ns = wait_deadline(threads);
			idle = 0;
		} else if (complete) {
			return threads->list.count ? NULL : gone(threads);
		} else if (tracee_now_ns() >= deadline_ns) {
			return endless(threads);
		} else {
			tracee_rest(idle++);
		}
	}
}

static struct error *read_registers(struct threads *threads)
{
	for (uint32_t i = 0; i < threads->list.count; i++) {
		struct list_entry *entry = &threads->list.entries[i];
		struct user_regs_struct raw;
		struct error *err = tracee_registers(&entry->tracee, &raw);

		if (err && error_code(err) == ERROR_GONE) {
			error_free(err);
			return gone(threads);
		}
		if (err)
			return err;
		registers_view(&raw, &entry->thread.registers);
		entry->thread.signal_pending = entry->tracee.stop == TRACEE_SIGNAL;
	}
	return NULL;
}

/* ---- letting go ---- */

/* Detaches all that are stopped. The leader, listed first, comes last, as its end would. */
static void detach_stopped(struct threads *threads)
{
	for (uint32_t i = threads->list.count; i--;)
		tracee_detach(&threads->list.entries[i].tracee);
}

/* Threads that did not stop in time do so later, and must not be left like that. */
static void detach_late(struct threads *threads)
{
	uint64_t deadline_ns = tracee_now_ns() + REST_US * NS_PER_US;

	for (unsigned round = 0; threads->list.count && tracee_now_ns() < deadline_ns; round++) {
		for (uint32_t i = 0; i < threads->list.count; i++)
			tracee_poll(&threads->list.entries[i].tracee);
		detach_stopped(threads);
		thread_list_drop_gone(&threads->list);
		tracee_rest(round);
	}
}

/* After a stop that failed or was broken off. */
static void give_up(struct threads *threads)
{
	detach_stopped(threads);
	pause_end(threads);
	thread_list_drop_gone(&threads->list);
	detach_late(threads);
}

/* All are stopped here; what was read of them is kept. */
void threads_resume(struct threads *threads)
{
	detach_stopped(threads);
	pause_end(threads);
}

static struct error *new_threads(const struct process *process, const struct stop_limits *limits,
				 struct threads **ret)
{
	struct threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return &error_nomem;
	threads->list.process = process;
	threads->limits = *limits;
	*ret = threads;
	return NULL;
}

/* Those of an earlier attempt that were late are in the list still, and asked to stop already. */
static struct error *attempt(struct threads *threads)
{
	struct error *err = NULL;

	if (threads->list.count) {
		pause_begin(threads);
		err = wait_all(threads);
	}
	if (!err)
		err = stop_all(threads);
	if (!err)
		err = read_registers(threads);
	if (!err && !threads_pause_left_us(threads))
		err = pause_exceeded(threads);
	return err;
}

struct error *threads_stop(const struct process *process, const struct stop_limits *limits,
			   struct threads **ret)
{
	struct threads *threads scoped(threads_freep) = NULL;
	struct error *err = new_threads(process, limits, &threads);

	if (err)
		return err;
	for (unsigned i = 1;; i++) {
		err = attempt(threads);
		if (!err)
			break;
		give_up(threads);
		if (error_code(err) != ERROR_NOT_STOPPABLE || i >= limits->attempts)
			return err;
		error_free(err);
		usleep(REST_US);
	}
	*ret = take(threads);
	return NULL;
}

void threads_free(struct threads *threads)
{
	if (!threads)
		return;
	give_up(threads);
	thread_list_fini(&threads->list);
	free(threads);
}

/* ---- looking at them ---- */

uint32_t threads_count(const struct threads *threads)
{
	return threads->list.count;
}

const struct thread *threads_at(const struct threads *threads, uint32_t index)
{
	return &threads->list.entries[index].thread;
}

struct tracee *threads_tracee(struct threads *threads, uint32_t index)
{
	return &threads->list.entries[index].tracee;
}

struct error *threads_extended_state(const struct threads *threads, uint32_t index, void *buffer,
				     size_t size, size_t *ret_size)
{
	return tracee_extended_state(&threads->list.entries[index].tracee, buffer, size, ret_size);
}

/* ---- bad places ---- */

static bool in_ranges(const struct address_range *ranges, uint32_t count, taddr pc)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranges[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && pc >= ranges[low].start;
}

static uint32_t count_in_ranges(const struct threads *threads, const struct address_range *ranges,
				uint32_t range_count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < threads->list.count; i++)
		found +=
		    in_ranges(ranges, range_count, threads->list.entries[i].thread.registers.pc);
	return found;
}

/* Only a plain stop can be left and come back to: a group stop would be broken, a signal taken. */
static struct error *let_run(struct threads *threads, const struct address_range *ranges,
			     uint32_t range_count, uint32_t *ret_count)
{
	*ret_count = 0;
	for (uint32_t i = 0; i < threads->list.count; i++) {
		struct list_entry *entry = &threads->list.entries[i];
		struct error *err;

		if (entry->tracee.stop != TRACEE_INTERRUPTED ||
		    !in_ranges(ranges, range_count, entry->thread.registers.pc))
			continue;
		err = tracee_continue(&entry->tracee, 0);
		if (err)
			return err;
		++*ret_count;
	}
	return NULL;
}

static void spin(uint64_t us)
{
	uint64_t end_ns = tracee_now_ns() + us * NS_PER_US;

	while (tracee_now_ns() < end_ns)
		;
}

/* Stops those again that run, and what they made meanwhile. */
static struct error *stop_again(struct threads *threads)
{
	struct error *err = interrupt_running(threads, 0);

	if (!err)
		err = wait_all(threads);
	if (!err)
		err = stop_all(threads);
	if (!err)
		err = read_registers(threads);
	return err;
}

static struct error *settle_round(struct threads *threads, const struct address_range *ranges,
				  uint32_t range_count, uint32_t *ret_ran)
{
	struct error *err;

	if (!threads_pause_left_us(threads))
		return pause_exceeded(threads);
	err = let_run(threads, ranges, range_count, ret_ran);
	if (err || !*ret_ran)
		return err;
	spin(RUN_US);
	return stop_again(threads);
}

struct error *threads_settle(struct threads *threads, const struct address_range *ranges,
			     uint32_t range_count, unsigned rounds, uint32_t *ret_left)
{
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t ran = 0;
		struct error *err = settle_round(threads, ranges, range_count, &ran);

		if (err) {
			give_up(threads);
			return err;
		}
		if (!ran)
			break;
	}
	*ret_left = count_in_ranges(threads, ranges, range_count);
	return NULL;
}
