#include "daemon/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "proto/base/log.h"

/* What goheapd says to the launcher: one byte each. CONNECT is answered, LOST is not. */
enum order { ORDER_CONNECT = 'c', ORDER_LOST = 'l' };

enum { REPLY_MAX_BYTES = 512 };

union fd_control {
	struct cmsghdr header;
	uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- the launcher's side ---- */

/* An empty text with a descriptor, or the reason why there is none. */
static bool send_reply(int channel, const char *text, int fd)
{
	union fd_control control = { 0 };
	struct iovec part = { .iov_base = (char *)(uintptr_t)text, .iov_len = strlen(text) + 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL) >= 0;
}

/* False when goheapd is gone. */
static bool make_connection(int channel, struct agent_source *origin)
{
	int socket scoped(closep) = -1;
	struct error *err scoped(error_freep) = origin->connect(origin, &socket);

	if (!err)
		return send_reply(channel, "", socket);
	return send_reply(channel, error_message(err), -1);
}

/* Ends when goheapd does: its end of the channel is then closed. */
static void launch(int channel, struct agent_source *origin)
{
	char order;
	ssize_t size;

	while ((size = read(channel, &order, 1)) != 0) {
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			break;
		if (order == ORDER_LOST)
			origin->lost(origin);
		else if (!make_connection(channel, origin))
			break;
	}
	agent_source_free(origin);
}

/* What goheapd listens on and holds otherwise must not stay open because of us. */
static void close_all_but(int channel)
{
	if (channel > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)channel - 1, 0);
	close_range((unsigned)channel + 1, ~0u, 0);
}

/*
 * A terminal's Ctrl-C reaches the launcher too; it outlives goheapd all the same, to see an agent
 * that it has started to its end.
 */
static _Noreturn void launcher_main(int channel, struct agent_source *origin,
				    const char *socket_path)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "goheapd-launch");
	close_all_but(channel);
	launch(channel, origin);
	if (socket_path)
		unlink(socket_path); /* goheapd may have done it */
	_exit(0);
}

/* ---- goheapd's side ---- */

struct launcher_source {
	struct agent_source base;
	int channel;
	pid_t pid;
};

static struct error *receive_reply(int channel, int *ret)
{
	char text[REPLY_MAX_BYTES];
	union fd_control control = { 0 };
	struct iovec part = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t size;

	do
		size = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size <= 0)
		return error_new(ERROR_AGENT_UNAVAILABLE, "the launcher of agents has ended");
	text[size] = '\0';
	if (!CMSG_FIRSTHDR(&message))
		return error_new(ERROR_AGENT_UNAVAILABLE, "%s", text);
	memcpy(ret, CMSG_DATA(&control.header), sizeof(int));
	return NULL;
}

static struct error *connect_launcher(struct agent_source *base, int *ret)
{
	struct launcher_source *source = (struct launcher_source *)base;
	const char order = ORDER_CONNECT;

	if (send(source->channel, &order, 1, MSG_NOSIGNAL) != 1)
		return error_system(errno, "the launcher of agents");
	return receive_reply(source->channel, ret);
}

static void lost_launcher(struct agent_source *base)
{
	struct launcher_source *source = (struct launcher_source *)base;
	const char order = ORDER_LOST;

	if (send(source->channel, &order, 1, MSG_NOSIGNAL) != 1)
		log_debug("agent", "the launcher is gone err=\"%s\"", strerror(errno));
}

static void free_launcher(struct agent_source *base)
{
	struct launcher_source *source = (struct launcher_source *)base;

	close(source->channel);
	while (waitpid(source->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(source);
}

/* The pid of the child, which never comes back from here. */
static pid_t fork_launcher(int channel, struct agent_source *origin, const char *socket_path)
{
	pid_t pid = fork();

	if (pid == 0)
		launcher_main(channel, origin, socket_path);
	return pid;
}

struct error *agent_source_launcher(struct agent_source *origin, const char *socket_path,
				    struct agent_source **ret)
{
	struct launcher_source *source scoped(freep) = malloc(sizeof(*source));
	int ours scoped(closep) = -1, theirs scoped(closep) = -1;
	struct error *err = source ? NULL : &error_nomem;
	int ends[2];
	pid_t pid = -1;

	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		err = error_system(errno, "socketpair");
	if (!err) {
		ours = ends[0];
		theirs = ends[1];
		pid = fork_launcher(theirs, origin, socket_path);
		if (pid < 0)
			err = error_system(errno, "fork");
	}
	agent_source_free(origin); /* the child has its own */
	if (err)
		return err;
	*source = (struct launcher_source){
		.base = { .connect = connect_launcher,
			  .lost = lost_launcher,
			  .free = free_launcher },
		.channel = take_fd(ours),
		.pid = pid,
	};
	*ret = &take(source)->base;
	return NULL;
}
