/*
 * For tests: programs that are hard to stop. Each prints "ready" and does its thing until its
 * standard input ends; on each line from there it prints how often it has done it.
 *
 *	idle N         N threads that sleep
 *	churn          threads that make others and end, as fast as they can
 *	exec           runs itself over and over, from a thread that is not the first
 *	vfork MS       one thread is in vfork all the time, for MS at a time
 *	orphans        the first thread ends, another goes on
 *	filtered CMD   runs a command under a filter that forbids what a snapshot needs
 *	killed CMD     the same, and the filter kills for it
 *	allowed CMD    runs a command under a filter that allows everything
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_SIZE = 64 << 10, CHURNERS = 4 };

static atomic_ulong done;
static char *exec_argv[4];

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, arg))
		abort();
	pthread_attr_destroy(&attr);
	return thread;
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Hands over to a new thread and ends. */
static void *churn(void *arg)
{
	atomic_fetch_add(&done, 1);
	start(churn, arg);
	return arg;
}

static void *vfork_on(void *arg)
{
	for (;;) {
		pid_t child = vfork();

		if (!child) {
			usleep(*(unsigned *)arg * 1000);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		atomic_fetch_add(&done, 1);
	}
	return arg;
}

static void *count_on(void *arg)
{
	for (;;) {
		atomic_fetch_add(&done, 1);
		usleep(1000);
	}
	return arg;
}

static void *exec_on(void *arg)
{
	usleep(2000);
	execv("/proc/self/exe", exec_argv);
	return arg;
}

static void *answer(void *arg)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%lu\n", atomic_load(&done));
		fflush(stdout);
	}
	exit(0);
	return arg;
}

/* The count goes from one program to the next in its arguments; nothing is read from stdin. */
static int run_exec(unsigned long count)
{
	static char number[32];

	snprintf(number, sizeof(number), "%lu", count + 1);
	exec_argv[0] = "stop_target";
	exec_argv[1] = "exec";
	exec_argv[2] = number;
	if (!count) {
		printf("ready\n");
		fflush(stdout);
	}
	start(exec_on, NULL);
	sleep_on(NULL);
	return 0;
}

/* EPERM for a clone that shares no memory and for a wait4 with __WALL, as our calls are. */
static int run_filtered(char **command, uint32_t refusal)
{
	enum { ALLOW = SECCOMP_RET_ALLOW };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_wait4, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)__WALL, 0, 4),
		BPF_STMT(BPF_RET | BPF_K, refusal),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ALLOW),
		BPF_STMT(BPF_RET | BPF_K, refusal),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 1;
	execv(command[0], command);
	return 1;
}

int main(int argc, char **argv)
{
	static unsigned vfork_ms;
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "exec"))
		return run_exec(argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
	if (!strcmp(what, "filtered") && argc > 2)
		return run_filtered(argv + 2, SECCOMP_RET_ERRNO | 1);
	if (!strcmp(what, "killed") && argc > 2)
		return run_filtered(argv + 2, SECCOMP_RET_KILL_PROCESS);
	if (!strcmp(what, "allowed") && argc > 2)
		return run_filtered(argv + 2, SECCOMP_RET_ALLOW);
	if (!strcmp(what, "idle") && argc > 2) {
		for (int i = atoi(argv[2]); i--;)
			start(sleep_on, NULL);
	} else if (!strcmp(what, "churn")) {
		for (int i = 0; i < CHURNERS; i++)
			start(churn, NULL);
	} else if (!strcmp(what, "vfork") && argc > 2) {
		vfork_ms = (unsigned)atoi(argv[2]);
		start(vfork_on, &vfork_ms);
	} else if (!strcmp(what, "orphans")) {
		start(count_on, NULL);
		start(answer, NULL);
		pthread_exit(NULL);
	} else {
		return 2;
	}
	answer(NULL);
	return 0;
}
