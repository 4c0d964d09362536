/*
 * One thread under ptrace. Stops are told apart by their kind and never counted. A stop is looked
 * at without being consumed (WNOWAIT): a signal that was about to be delivered when we stopped the
 * thread is then delivered even if we die before giving it back.
 *
 * All calls on a tracee come from the thread that seized it.
 */
#ifndef AGENT_TARGET_TRACEE_H
#define AGENT_TARGET_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "proto/base/error.h"

struct sock_filter;

enum tracee_stop {
	TRACEE_RUNNING,
	TRACEE_INTERRUPTED,   /* by us; the plain stop */
	TRACEE_GROUP_STOPPED, /* somebody had stopped the process; it stays so when let go */
	TRACEE_SIGNAL,        /* a signal is about to be delivered */
	TRACEE_SYSCALL,       /* at the entry or the exit of a system call */
	TRACEE_EVENT,         /* PTRACE_EVENT_* */
	TRACEE_GONE,          /* exited, or another tid since an exec */
};

struct tracee {
	pid_t tid;
	enum tracee_stop stop;
	int signal; /* with TRACEE_SIGNAL and TRACEE_GROUP_STOPPED */
	int event;  /* with TRACEE_EVENT */
};

/*
 * Starts tracing a thread, which runs on. ERROR_GONE if it is no more, ERROR_DENIED with the
 * kernel's word only: threads_stop finds out why. *ret needs no _free but tracee_detach.
 */
must_check struct error *tracee_seize(struct tracee *ret, pid_t tid, unsigned options);
must_check struct error *tracee_set_options(const struct tracee *tracee, unsigned options);

/*
 * Whether PTRACE_O_SUSPEND_SECCOMP works for us, tried on a child of our own: it takes
 * CAP_SYS_ADMIN in the initial user namespace, a tracer under no filter, and a kernel that has it.
 */
bool tracee_can_suspend_filters(void);

/* Instructions that a seccomp filter has at most. */
enum { TRACEE_FILTER_SIZE = 4096 };

/*
 * The instructions of one of the stopped thread's seccomp filters, which are counted from 0. room
 * holds TRACEE_FILTER_SIZE; *ret_count is 0 if there are no more. Any error: we have no right to
 * see it.
 */
must_check struct error *tracee_filter(const struct tracee *tracee, unsigned index,
				       struct sock_filter *room, size_t *ret_count);

/* Asks a running thread to stop. */
must_check struct error *tracee_interrupt(struct tracee *tracee);

/* Looks whether it has stopped, without waiting; tracee->stop says how. */
void tracee_poll(struct tracee *tracee);

/* The same until CLOCK_MONOTONIC reads deadline_ns; false if it runs on even then. */
bool tracee_wait(struct tracee *tracee, uint64_t deadline_ns);

/* Notices that a stopped thread has been killed since. */
void tracee_notice_end(struct tracee *tracee);

/* From a stop on, delivering signal if it is not 0. */
must_check struct error *tracee_continue(struct tracee *tracee, int signal);

/* The same up to the next entry or exit of a system call. */
must_check struct error *tracee_continue_to_syscall(struct tracee *tracee, int signal);

/* At TRACEE_SYSCALL: whether it is the exit. */
must_check struct error *tracee_at_syscall_exit(const struct tracee *tracee, bool *ret);
/* At TRACEE_EVENT: the kernel's message (of a clone: the pid in our namespace). */
must_check struct error *tracee_event_message(const struct tracee *tracee, uint64_t *ret);

must_check struct error *tracee_registers(const struct tracee *tracee,
					  struct user_regs_struct *ret);
must_check struct error *tracee_set_registers(const struct tracee *tracee,
					      const struct user_regs_struct *registers);
/* Vector registers and such (NT_X86_XSTATE); ERROR_LIMIT if they do not fit into size. */
must_check struct error *tracee_extended_state(const struct tracee *tracee, void *buffer,
					       size_t size, size_t *ret_size);
must_check struct error *tracee_signal_mask(const struct tracee *tracee, uint64_t *ret);
must_check struct error *tracee_set_signal_mask(const struct tracee *tracee, uint64_t mask);

/*
 * Lets go of a stopped thread, which goes on as if nothing had been and takes its signal; reaps
 * one that is gone. A thread that runs cannot be let go of: false.
 */
bool tracee_detach(struct tracee *tracee);

/* CLOCK_MONOTONIC, and a rest in a loop that polls, longer in later rounds. */
uint64_t tracee_now_ns(void);
void tracee_rest(unsigned round);

#endif
