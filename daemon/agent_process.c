#include "daemon/agent_process.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	AGENT_SOCKET = 3, /* the descriptor on which the agent finds its connection */
	ARGS_MAX = 16,
	END_PATIENCE_MS = 5000,
};

extern char **environ;

struct error *agent_program_find(char **ret)
{
	char own[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash, *path;

	if (size < 0)
		return error_system(errno, "/proc/self/exe");
	own[size] = '\0';
	slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	if (asprintf(&path, "%s/goheap-agent", own) < 0)
		return &error_nomem;
	if (access(path, X_OK) == 0) {
		*ret = path;
		return NULL;
	}
	free(path);
	path = strdup(AGENT_PROGRAM);
	if (!path)
		return &error_nomem;
	*ret = path;
	return NULL;
}

/* The command line; its strings of the form --name=value are ours to free. */
struct command {
	char *args[ARGS_MAX];
	size_t count;
};

static void command_fini(struct command *command)
{
	for (size_t i = 0; i < command->count; i++)
		free(command->args[i]);
}

static __attribute__((format(printf, 2, 3))) struct error *command_add(struct command *command,
								       const char *format, ...)
{
	va_list args;
	char *text;
	int size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0)
		return &error_nomem;
	command->args[command->count++] = text;
	return NULL;
}

static struct error *command_init(struct command *command, const struct agent_spec *spec)
{
	const struct {
		const char *name, *value;
	} options[] = {
		{ "config", spec->config },
		{ "run-dir", spec->run_dir },
		{ "cache-dir", spec->cache_dir },
	};
	struct error *err;

	*command = (struct command){ 0 };
	err = command_add(command, "%s", spec->program);
	if (!err)
		err = command_add(command, "--socket-fd=%d", AGENT_SOCKET);
	for (size_t i = 0; !err && i < sizeof(options) / sizeof(*options); i++) {
		if (options[i].value)
			err = command_add(command, "--%s=%s", options[i].name, options[i].value);
	}
	if (!err && spec->max_scan_memory)
		err = command_add(command, "--max-scan-memory=%" PRIu64, spec->max_scan_memory);
	return err;
}

/*
 * The agent begins with all signals at their defaults and none blocked, and in a process group of
 * its own: what the terminal sends to ours must not take it away in the middle of a snapshot.
 */
static int spawn(const struct command *command, int socket, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						  POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	err = posix_spawn_file_actions_adddup2(&actions, socket, AGENT_SOCKET);
	if (!err)
		err = posix_spawn(ret, command->args[0], &actions, &attributes, command->args,
				  environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

struct error *agent_process_start(const struct agent_spec *spec, pid_t *ret_pid, int *ret_socket)
{
	struct command command;
	struct error *err = command_init(&command, spec);
	int ours scoped(closep) = -1, theirs scoped(closep) = -1;
	int ends[2], errnum;

	if (!err && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		err = error_system(errno, "socketpair");
	if (!err) {
		ours = ends[0];
		theirs = ends[1];
		errnum = spawn(&command, theirs, ret_pid);
		if (errnum)
			err = error_system(errnum, "cannot start the agent %s", spec->program);
	}
	command_fini(&command);
	if (!err)
		*ret_socket = take_fd(ours);
	return err;
}

void agent_process_end(pid_t pid)
{
	int pidfd scoped(closep) = pidfd_open(pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0 || poll(&ended, 1, END_PATIENCE_MS) <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

struct process_source {
	struct agent_source base;
	const struct agent_spec *spec;
	pid_t pid; /* 0: none */
};

static void lost_process(struct agent_source *base)
{
	struct process_source *source = (struct process_source *)base;

	if (source->pid)
		agent_process_end(source->pid);
	source->pid = 0;
}

static struct error *connect_process(struct agent_source *base, int *ret)
{
	struct process_source *source = (struct process_source *)base;

	return agent_process_start(source->spec, &source->pid, ret);
}

static void free_process(struct agent_source *base)
{
	lost_process(base);
	free(base);
}

struct error *agent_source_process(const struct agent_spec *spec, struct agent_source **ret)
{
	struct process_source *source = malloc(sizeof(*source));

	if (!source)
		return &error_nomem;
	*source = (struct process_source){
		.base = { .connect = connect_process, .lost = lost_process, .free = free_process },
		.spec = spec,
	};
	*ret = &source->base;
	return NULL;
}
