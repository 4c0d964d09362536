#include "agent/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

extern char **environ;

/*
 * Signals as a program expects them at its start: the agent takes its own through a signalfd and
 * so has them blocked.
 */
static int prepare_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none;

	sigemptyset(&none);
	return posix_spawnattr_setsigmask(attributes, &none)
		   ?: posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
}

/* high[] are copies above every fixed number, so that no dup2 overwrites one still needed. */
static int prepare_descriptors(posix_spawn_file_actions_t *actions, const int *high)
{
	int errnum = posix_spawn_file_actions_adddup2(actions, high[0], CHILD_AGENT_SOCKET);
	int first_closed = CHILD_PEER_SOCKET;

	if (!errnum && high[1] >= 0) {
		errnum = posix_spawn_file_actions_adddup2(actions, high[1], CHILD_PEER_SOCKET);
		first_closed++;
	}
	return errnum ?: posix_spawn_file_actions_addclosefrom_np(actions, first_closed);
}

static int spawn(char *const arguments[], const int *high, pid_t *ret)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	int errnum = posix_spawnattr_init(&attributes);

	if (errnum)
		return errnum;
	errnum = posix_spawn_file_actions_init(&actions);
	if (!errnum) {
		errnum = prepare_attributes(&attributes) ?: prepare_descriptors(&actions, high);
		if (!errnum)
			errnum = posix_spawn(ret, "/proc/self/exe", &actions, &attributes,
					     arguments, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	posix_spawnattr_destroy(&attributes);
	return errnum;
}

struct error *child_spawn(const char *role, int agent_socket, int peer_socket,
			  uint64_t memory_limit, struct child *ret)
{
	enum { ABOVE_FIXED = CHILD_PEER_SOCKET + 1 };
	int agent_high scoped(closep) = fcntl(agent_socket, F_DUPFD_CLOEXEC, ABOVE_FIXED);
	int peer_high scoped(closep) =
	    peer_socket < 0 ? -1 : fcntl(peer_socket, F_DUPFD_CLOEXEC, ABOVE_FIXED);
	char program[] = "goheap-agent";
	char role_option[64], memory_option[64];
	char *arguments[] = { program, role_option, memory_limit ? memory_option : NULL, NULL };
	int errnum;

	if (agent_high < 0 || (peer_socket >= 0 && peer_high < 0))
		return error_system(errno, "duplicate a socket");
	snprintf(role_option, sizeof(role_option), "--role=%s", role);
	snprintf(memory_option, sizeof(memory_option), "--max-scan-memory=%" PRIu64, memory_limit);
	errnum = spawn(arguments, (const int[]){ agent_high, peer_high }, &ret->pid);
	if (errnum)
		return error_system(errnum, "start a %s", role);
	ret->pidfd = pidfd_open(ret->pid, 0);
	if (ret->pidfd < 0) {
		struct error *err = error_system(errno, "pidfd_open");

		kill(ret->pid, SIGKILL); /* not reaped yet, so the number is still its own */
		child_reap(ret);
		return err;
	}
	return NULL;
}

void child_kill(const struct child *child)
{
	if (child->pid > 0)
		pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
}

int child_reap(struct child *child)
{
	int status = 0;

	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	closep(&child->pidfd);
	*child = (struct child){ .pidfd = -1 };
	return status;
}
