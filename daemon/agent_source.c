#include "daemon/agent_source.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct socket_source {
	struct agent_source base;
	struct sockaddr_un address;
};

void agent_source_free(struct agent_source *source)
{
	if (source)
		source->free(source);
}

static struct error *connect_socket(struct agent_source *base, int *ret)
{
	struct socket_source *source = (struct socket_source *)base;
	int fd scoped(closep) = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_system(errno, "socket");
	if (connect(fd, (struct sockaddr *)&source->address, sizeof(source->address)) < 0)
		return error_system(errno, "the agent's socket %s", source->address.sun_path);
	*ret = take_fd(fd);
	return NULL;
}

static void lost_socket(struct agent_source *base)
{
	(void)base; /* whoever runs that agent restarts it */
}

static void free_socket(struct agent_source *base)
{
	free(base);
}

struct error *agent_source_socket(const char *path, struct agent_source **ret)
{
	struct socket_source *source;

	if (strlen(path) >= sizeof(source->address.sun_path))
		return error_new(ERROR_BAD_REQUEST, "%s is too long for a socket's name", path);
	source = calloc(1, sizeof(*source));
	if (!source)
		return &error_nomem;
	source->base = (struct agent_source){ .connect = connect_socket,
					      .lost = lost_socket,
					      .free = free_socket };
	source->address.sun_family = AF_UNIX;
	strcpy(source->address.sun_path, path);
	*ret = &source->base;
	return NULL;
}
