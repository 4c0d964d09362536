#include "agent/target/tracee.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	KERNEL_SIGSET_SIZE = 8,
	SYSCALL_SIGNAL = SIGTRAP | 0x80, /* PTRACE_O_TRACESYSGOOD */
	EVENT_STOP = 128,                /* PTRACE_EVENT_STOP, which glibc does not always have */
	YIELD_ROUNDS = 64,               /* polls that only yield, before those that sleep */
	SHORT_ROUNDS = 1000,
	SHORT_NS = 20000,
	LONG_NS = 1000000,
	REAP_NS = 50000000, /* at most, for a thread that is on its way out */
};

uint64_t tracee_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void tracee_rest(unsigned round)
{
	const struct timespec rest = { .tv_nsec = round < SHORT_ROUNDS ? SHORT_NS : LONG_NS };

	if (round < YIELD_ROUNDS)
		sched_yield();
	else
		nanosleep(&rest, NULL);
}

struct error *tracee_seize(struct tracee *ret, pid_t tid, unsigned options)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, options))
		return error_system(errno, "seizing thread %d", tid);
	*ret = (struct tracee){ .tid = tid, .stop = TRACEE_RUNNING };
	return NULL;
}

struct error *tracee_set_options(const struct tracee *tracee, unsigned options)
{
	if (ptrace(PTRACE_SETOPTIONS, tracee->tid, 0, options))
		return error_system(errno, "trace options of thread %d", tracee->tid);
	return NULL;
}

bool tracee_can_suspend_filters(void)
{
	pid_t child = fork();
	bool can;

	if (child < 0)
		return false;
	if (!child) {
		for (;;)
			pause();
	}
	can = !ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_SUSPEND_SECCOMP);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	return can;
}

struct error *tracee_filter(const struct tracee *tracee, unsigned index, struct sock_filter *room,
			    size_t *ret_count)
{
	long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tracee->tid, (long)index, room);

	if (count < 0 && errno != ENOENT)
		return error_system(errno, "seccomp filter of thread %d", tracee->tid);
	*ret_count = count < 0 ? 0 : (size_t)count;
	return NULL;
}

struct error *tracee_interrupt(struct tracee *tracee)
{
	if (ptrace(PTRACE_INTERRUPT, tracee->tid, 0, 0))
		return error_system(errno, "interrupting thread %d", tracee->tid);
	return NULL;
}

/* Sorts a stop by what waitid says of it: event << 8 | signal. */
static void classify(struct tracee *tracee, int status)
{
	tracee->signal = status & 0xff;
	tracee->event = status >> 8;
	if (tracee->event == EVENT_STOP)
		tracee->stop =
		    tracee->signal == SIGTRAP ? TRACEE_INTERRUPTED : TRACEE_GROUP_STOPPED;
	else if (tracee->event)
		tracee->stop = TRACEE_EVENT;
	else if (tracee->signal == SYSCALL_SIGNAL)
		tracee->stop = TRACEE_SYSCALL;
	else
		tracee->stop = TRACEE_SIGNAL;
}

/* Looks at the state of a thread without taking it: 0 if it runs, else a CLD_* code. */
static int look(pid_t tid, int *ret_status)
{
	siginfo_t info = { 0 };
	int result;

	do {
		result = waitid(P_PID, (id_t)tid, &info,
				WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
	} while (result && errno == EINTR);
	*ret_status = info.si_status;
	if (result)
		return CLD_EXITED; /* somebody else's by now: an exec took its tid */
	return info.si_pid ? info.si_code : 0;
}

static bool is_end(int code)
{
	return code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED;
}

static void take_end(struct tracee *tracee)
{
	siginfo_t info;

	tracee->stop = TRACEE_GONE;
	waitid(P_PID, (id_t)tracee->tid, &info, WEXITED | WNOHANG | __WALL);
}

void tracee_poll(struct tracee *tracee)
{
	int code, status;

	if (tracee->stop != TRACEE_RUNNING)
		return;
	code = look(tracee->tid, &status);
	if (is_end(code))
		take_end(tracee);
	else if (code)
		classify(tracee, status);
}

/* The stop that it is in is seen here again, and left as it is. */
void tracee_notice_end(struct tracee *tracee)
{
	int status;

	if (tracee->stop != TRACEE_GONE && is_end(look(tracee->tid, &status)))
		take_end(tracee);
}

bool tracee_wait(struct tracee *tracee, uint64_t deadline_ns)
{
	for (unsigned round = 0;; round++) {
		tracee_poll(tracee);
		if (tracee->stop != TRACEE_RUNNING)
			return true;
		if (tracee_now_ns() >= deadline_ns)
			return false;
		tracee_rest(round);
	}
}

static struct error *resume(struct tracee *tracee, enum __ptrace_request request, int signal)
{
	if (ptrace(request, tracee->tid, 0, (long)signal))
		return error_system(errno, "resuming thread %d", tracee->tid);
	tracee->stop = TRACEE_RUNNING;
	return NULL;
}

struct error *tracee_continue(struct tracee *tracee, int signal)
{
	return resume(tracee, PTRACE_CONT, signal);
}

struct error *tracee_continue_to_syscall(struct tracee *tracee, int signal)
{
	return resume(tracee, PTRACE_SYSCALL, signal);
}

struct error *tracee_at_syscall_exit(const struct tracee *tracee, bool *ret)
{
	struct __ptrace_syscall_info info = { 0 };

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->tid, sizeof(info), &info) < 0)
		return error_system(errno, "system call of thread %d", tracee->tid);
	*ret = info.op == PTRACE_SYSCALL_INFO_EXIT;
	return NULL;
}

struct error *tracee_event_message(const struct tracee *tracee, uint64_t *ret)
{
	unsigned long message;

	if (ptrace(PTRACE_GETEVENTMSG, tracee->tid, 0, &message))
		return error_system(errno, "event of thread %d", tracee->tid);
	*ret = message;
	return NULL;
}

struct error *tracee_registers(const struct tracee *tracee, struct user_regs_struct *ret)
{
	struct iovec io = { ret, sizeof(*ret) };

	if (ptrace(PTRACE_GETREGSET, tracee->tid, (long)NT_PRSTATUS, &io))
		return error_system(errno, "registers of thread %d", tracee->tid);
	if (io.iov_len != sizeof(*ret))
		return error_new(ERROR_UNSUPPORTED_ARCH, "thread %d runs in another mode",
				 tracee->tid);
	return NULL;
}

struct error *tracee_set_registers(const struct tracee *tracee,
				   const struct user_regs_struct *registers)
{
	struct iovec io = { (void *)registers, sizeof(*registers) };

	if (ptrace(PTRACE_SETREGSET, tracee->tid, (long)NT_PRSTATUS, &io))
		return error_system(errno, "setting registers of thread %d", tracee->tid);
	return NULL;
}

struct error *tracee_extended_state(const struct tracee *tracee, void *buffer, size_t size,
				    size_t *ret_size)
{
	struct iovec io = { buffer, size };

	if (ptrace(PTRACE_GETREGSET, tracee->tid, (long)NT_X86_XSTATE, &io))
		return error_system(errno, "extended state of thread %d", tracee->tid);
	if (io.iov_len == size)
		return error_new(ERROR_LIMIT, "extended state of thread %d: %zu bytes or more",
				 tracee->tid, size);
	*ret_size = io.iov_len;
	return NULL;
}

struct error *tracee_signal_mask(const struct tracee *tracee, uint64_t *ret)
{
	if (ptrace(PTRACE_GETSIGMASK, tracee->tid, (long)KERNEL_SIGSET_SIZE, ret))
		return error_system(errno, "signal mask of thread %d", tracee->tid);
	return NULL;
}

struct error *tracee_set_signal_mask(const struct tracee *tracee, uint64_t mask)
{
	if (ptrace(PTRACE_SETSIGMASK, tracee->tid, (long)KERNEL_SIGSET_SIZE, &mask))
		return error_system(errno, "setting the signal mask of thread %d", tracee->tid);
	return NULL;
}

/* A thread killed under our hands is not quite dead yet; until we reap it, nobody else can. */
static void reap(struct tracee *tracee)
{
	tracee->stop = TRACEE_RUNNING;
	tracee_wait(tracee, tracee_now_ns() + REAP_NS);
}

bool tracee_detach(struct tracee *tracee)
{
	int signal = tracee->stop == TRACEE_SIGNAL ? tracee->signal : 0;

	if (tracee->stop == TRACEE_RUNNING)
		return false;
	if (tracee->stop == TRACEE_GONE)
		return true;
	if (ptrace(PTRACE_DETACH, tracee->tid, 0, (long)signal))
		reap(tracee);
	tracee->stop = TRACEE_GONE;
	return true;
}
