/*
 * The threads of a process that we have under ptrace, as far as the kernel has listed them to us.
 * For threads.c.
 */
#ifndef AGENT_TARGET_THREAD_LIST_H
#define AGENT_TARGET_THREAD_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/target/threads.h"
#include "agent/target/tracee.h"
#include "proto/base/error.h"

struct process;

struct list_entry {
	struct tracee tracee;
	struct thread thread;
};

/* Owned by the caller; entries move when the list grows. */
struct thread_list {
	const struct process *process; /* borrowed */
	struct list_entry *entries;
	uint32_t count, capacity;
};

/*
 * Seizes every thread that the kernel lists and the list does not have; they run on. Threads that
 * have just ended are left out. *ret_complete: there are no others; the kernel breaks a listing off
 * at a thread that ends meanwhile, so that one listing proves nothing. ERROR_ALREADY_TRACED naming
 * the tracer, ERROR_DENIED saying why.
 */
must_check struct error *thread_list_seize_new(struct thread_list *list, uint32_t *ret_added,
					       bool *ret_complete);

/* Forgets threads that are gone. */
void thread_list_drop_gone(struct thread_list *list);

/* Frees the list and leaves the threads as they are. */
void thread_list_fini(struct thread_list *list);

/* What the kernel says of one thread. */
struct task_status {
	char state; /* 0: no such thread any more */
	pid_t tracer_pid;
	pid_t namespace_tid;
	unsigned seccomp_mode;
};

must_check struct error *task_status_read(const struct process *process, pid_t tid,
					  struct task_status *ret);
bool task_status_dead(const struct task_status *status);

#endif
