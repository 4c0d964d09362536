#include "agent/target/injection.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "agent/target/registers.h"
#include "agent/target/seccomp_filter.h"
#include "agent/target/tracee.h"

enum {
	STEP_LIMIT = 256,     /* stops within one call */
	FILTERS_LIMIT = 8192, /* the kernel's, at 32,768 instructions in all */
	OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD,
};

/* A clone of a large process can take long. Should it take longer, our end restores the thread. */
static const uint64_t call_timeout_ns = UINT64_C(30000000000);

/* What was changed in a thread, to be given back by injection_fini. */
struct injection {
	struct tracee *tracee;
	struct user_regs_struct saved;
	uint64_t mask;
	bool options_set, registers_set, signals_blocked;
};

static void reached(enum inject_phase phase)
{
	if (inject_phase_reached)
		inject_phase_reached(phase);
}

/* Lays the image on the idle stack: the only write to a target's memory there is. */
static struct error *lay_image(pid_t tid, struct inject_image *image)
{
	struct iovec local = { image->bytes, image->size };
	struct iovec remote = { (void *)(uintptr_t)image->addr, image->size };

	ssize_t written = process_vm_writev(tid, &local, 1, &remote, 1, 0);

	if (written < 0 && errno == ESRCH)
		return error_new(ERROR_GONE, "thread %d ended", tid);
	if (written != (ssize_t)image->size)
		return error_new(ERROR_UNSUPPORTED, "the signal stack of thread %d is not writable",
				 tid);
	reached(INJECT_FRAME_WRITTEN);
	return NULL;
}

/* Saves the thread's state and lays it down where the kernel finds it without us. */
static struct error *save(struct injection *injection, const struct inject_code *code,
			  const struct inject_stack *stack, struct injection_room *room)
{
	struct inject_site site = { .lo = stack->lo,
				    .hi = stack->hi,
				    .exit = code->exit,
				    .sigreturn = code->sigreturn,
				    .extended_state = room->extended_state };
	struct error *err = tracee_registers(injection->tracee, &injection->saved);

	if (!err)
		err = tracee_signal_mask(injection->tracee, &injection->mask);
	if (!err)
		err = tracee_extended_state(injection->tracee, room->extended_state,
					    sizeof(room->extended_state), &site.extended_size);
	if (err)
		return err;
	site.saved = injection->saved;
	site.mask = injection->mask;
	err = inject_arch_image(&site, &room->image);
	if (err)
		return err;
	return lay_image(injection->tracee->tid, &room->image);
}

/* *ret: all of the thread's filters let it go on, whatever becomes of the call. */
static struct error *judge_filters(const struct tracee *tracee, const struct seccomp_data *data,
				   struct injection_room *room, bool *ret)
{
	uint32_t strictest = SECCOMP_RET_ALLOW, returned = SECCOMP_RET_KILL_PROCESS;

	for (unsigned i = 0; i < FILTERS_LIMIT; i++) {
		size_t count;
		struct error *err = tracee_filter(tracee, i, room->filter, &count);

		if (err)
			return err;
		if (!count) {
			*ret = seccomp_filter_harmless(strictest);
			return NULL;
		}
		if (!seccomp_filter_run(room->filter, count, data, &returned))
			return error_new(ERROR_FORMAT, "seccomp filter of thread %d", tracee->tid);
		strictest = seccomp_filter_stricter(strictest, returned);
	}
	return error_new(ERROR_LIMIT, "thread %d has too many seccomp filters", tracee->tid);
}

/* What cannot be looked at is left to who vouches for it. */
static struct error *check_filters(const struct tracee *tracee,
				   const struct user_regs_struct *registers,
				   struct injection_room *room)
{
	struct seccomp_data data;
	bool harmless;
	struct error *err;

	inject_arch_filter_data(registers, &data);
	err = judge_filters(tracee, &data, room, &harmless);
	if (err) {
		error_free(err);
		return NULL;
	}
	if (harmless)
		return NULL;
	return error_new(
	    ERROR_FORK_UNSAFE,
	    "a seccomp filter of thread %d ends whoever makes system call %d, which it "
	    "would do should the keeper die",
	    tracee->tid, data.nr);
}

static struct error *set_options(struct injection *injection,
				 const struct injection_request *request)
{
	unsigned options = OPTIONS | (request->clone ? PTRACE_O_TRACECLONE : 0);
	struct error *err;

	injection->options_set = true;
	if (request->filtered) {
		err = tracee_set_options(injection->tracee, options | PTRACE_O_SUSPEND_SECCOMP);
		if (!err)
			return NULL;
		error_free(err);
		if (!request->vouched)
			return error_new(ERROR_FORK_UNSAFE,
					 "thread %d has a seccomp filter that cannot be suspended",
					 injection->tracee->tid);
	}
	return tracee_set_options(injection->tracee, options);
}

/* Options, registers, signals: restored in reverse. */
static struct error *change(struct injection *injection, const struct user_regs_struct *registers,
			    const struct injection_request *request)
{
	struct tracee *tracee = injection->tracee;
	struct error *err = set_options(injection, request);

	if (err)
		return err;
	err = tracee_set_registers(tracee, registers);
	if (err)
		return err;
	injection->registers_set = true;
	reached(INJECT_REGISTERS_SET);
	err = tracee_set_signal_mask(tracee, UINT64_MAX);
	if (err)
		return err;
	injection->signals_blocked = true;
	reached(INJECT_SIGNALS_BLOCKED);
	return NULL;
}

/* Returns the first of two errors and frees the other. */
static struct error *first_error(struct error *first, struct error *second)
{
	if (!first)
		return second;
	error_free(second);
	return first;
}

static struct error *restore(struct injection *injection)
{
	struct tracee *tracee = injection->tracee;
	struct error *err = NULL;

	if (injection->signals_blocked) {
		err = tracee_set_signal_mask(tracee, injection->mask);
		reached(INJECT_SIGNALS_RESTORED);
	}
	if (injection->registers_set) {
		err = first_error(err, tracee_set_registers(tracee, &injection->saved));
		reached(INJECT_RESTORED);
	}
	if (injection->options_set)
		err = first_error(err, tracee_set_options(tracee, OPTIONS));
	return err;
}

/* Of the signals only SIGSTOP passes the mask; delivered at once it cannot get lost. */
static int signal_to_deliver(const struct tracee *tracee)
{
	return tracee->stop == TRACEE_SIGNAL && tracee->signal == SIGSTOP ? SIGSTOP : 0;
}

static struct error *next_stop(struct tracee *tracee, enum inject_phase phase)
{
	struct error *err = tracee_continue_to_syscall(tracee, signal_to_deliver(tracee));

	if (err)
		return err;
	reached(phase);
	if (!tracee_wait(tracee, tracee_now_ns() + call_timeout_ns))
		return error_new(ERROR_TIMEOUT, "the injected call of thread %d does not end",
				 tracee->tid);
	if (tracee->stop == TRACEE_GONE)
		return error_new(ERROR_GONE, "thread %d ended in the injected call", tracee->tid);
	return NULL;
}

/* At the exit of a call: its result, unless the kernel is about to run it again. */
static struct error *take_result(const struct tracee *tracee, int64_t *ret, bool *ret_done)
{
	struct user_regs_struct registers;
	struct error *err = tracee_registers(tracee, &registers);
	int64_t value;

	if (err)
		return err;
	value = inject_arch_result(&registers);
	*ret_done = !inject_arch_restarts(value);
	if (*ret_done) {
		*ret = value;
		reached(INJECT_AT_EXIT);
	}
	return NULL;
}

/* The state of a call under way. */
struct progress {
	struct inject_result *result;
	bool entered, done;
};

static struct error *at_syscall(const struct tracee *tracee, struct progress *progress)
{
	bool at_exit;
	struct error *err = tracee_at_syscall_exit(tracee, &at_exit);

	if (err)
		return err;
	if (!at_exit) {
		progress->entered = true;
		reached(INJECT_AT_ENTRY);
	} else if (progress->entered) {
		err = take_result(tracee, &progress->result->value, &progress->done);
	}
	return err;
}

static struct error *at_event(const struct tracee *tracee, struct progress *progress)
{
	uint64_t message;
	struct error *err;

	if (tracee->event != PTRACE_EVENT_CLONE)
		return NULL;
	err = tracee_event_message(tracee, &message);
	if (err)
		return err;
	progress->result->child = (pid_t)message;
	reached(INJECT_AT_CLONE);
	return NULL;
}

/* A fault of the call itself must not be left to the thread, which has done nothing. */
static struct error *at_signal(struct tracee *tracee)
{
	int signal = tracee->signal;

	if (signal == SIGSTOP)
		return NULL;
	tracee->signal = 0;
	return error_new(ERROR_UNSUPPORTED, "the injected call of thread %d met signal %d",
			 tracee->tid, signal);
}

/* From one stop to the next until the exit of the call. */
static struct error *run_call(struct tracee *tracee, struct inject_result *result)
{
	struct progress progress = { .result = result };
	struct error *err = NULL;

	for (unsigned step = 0; !err && !progress.done; step++) {
		if (step == STEP_LIMIT)
			return error_new(ERROR_TIMEOUT,
					 "the injected call of thread %d does not end",
					 tracee->tid);
		err = next_stop(tracee, progress.entered ? INJECT_IN_CALL : INJECT_RESUMED);
		if (err)
			break;
		if (tracee->stop == TRACEE_SYSCALL)
			err = at_syscall(tracee, &progress);
		else if (tracee->stop == TRACEE_EVENT)
			err = at_event(tracee, &progress);
		else if (tracee->stop == TRACEE_SIGNAL)
			err = at_signal(tracee);
	}
	return err;
}

static void make_registers(const struct injection *injection, const struct inject_code *code,
			   const struct injection_room *room, const struct inject_call *call,
			   struct user_regs_struct *ret)
{
	inject_arch_call(&injection->saved, code->syscall, room->image.addr, call, ret);
}

struct error *injection_run(struct tracee *tracee, const struct inject_code *code,
			    const struct inject_stack *stack, struct injection_request request,
			    struct injection_room *room, struct inject_result *ret)
{
	struct injection injection = { .tracee = tracee };
	struct user_regs_struct registers;
	struct error *err;

	*ret = (struct inject_result){ 0 };
	err = save(&injection, code, stack, room);
	if (err)
		return err;
	if (request.clone)
		request.call.args[1] = room->image.child_sp;
	make_registers(&injection, code, room, &request.later, &registers);
	if (request.filtered && request.clone)
		err = check_filters(tracee, &registers, room);
	make_registers(&injection, code, room, &request.call, &registers);
	if (request.filtered && !err)
		err = check_filters(tracee, &registers, room);
	if (err)
		return err;
	err = change(&injection, &registers, &request);
	if (!err)
		err = run_call(tracee, ret);
	return first_error(err, restore(&injection));
}

/* Signals but for SIGKILL and SIGSTOP are blocked there, as they were where the clone was made. */
struct error *injection_begin_in_child(struct tracee *child, taddr syscall,
				       const struct inject_call *call)
{
	struct user_regs_struct raw, registers;
	struct registers view;
	struct error *err = tracee_registers(child, &raw);

	if (err)
		return err;
	registers_view(&raw, &view);
	inject_arch_call(&raw, syscall, view.sp, call, &registers);
	err = tracee_set_registers(child, &registers);
	return err ? err : tracee_continue_to_syscall(child, 0);
}

static bool child_is_done(const struct tracee *child)
{
	bool at_exit;
	struct error *err;

	if (child->stop != TRACEE_SYSCALL)
		return false;
	err = tracee_at_syscall_exit(child, &at_exit);
	error_free(err);
	return err || at_exit;
}

struct error *injection_await_child(struct tracee *child, uint64_t deadline_ns)
{
	for (unsigned step = 0; step < STEP_LIMIT && !child_is_done(child); step++) {
		if (child->stop != TRACEE_RUNNING) {
			struct error *err = tracee_continue_to_syscall(child, 0);

			if (err)
				return err;
		}
		if (!tracee_wait(child, deadline_ns))
			break;
		if (child->stop == TRACEE_GONE)
			return error_new(ERROR_SYSTEM, "something killed the snapshot");
	}
	return NULL;
}
