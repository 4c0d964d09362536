#include "daemon/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { REPLY_MAX_BYTES = 8192, KERNEL_PATIENCE_SECONDS = 2 };

/* The client's socket as inet_diag names it: its own address is the source. */
struct tuple {
	uint8_t family;
	struct inet_diag_sockid id;
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* An IPv4 address in IPv6 clothes is looked up as what it is: either end may wear them. */
static void unmap(union address *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		return;
	v4.sin_port = address->v6.sin6_port;
	memcpy(&v4.sin_addr, &address->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	address->v4 = v4;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static void copy_address(const union address *address, __be16 *ret_port, __be32 ret[4])
{
	if (address->any.sa_family == AF_INET) {
		*ret_port = address->v4.sin_port;
		memcpy(ret, &address->v4.sin_addr, sizeof(address->v4.sin_addr));
	} else {
		*ret_port = address->v6.sin6_port;
		memcpy(ret, &address->v6.sin6_addr, sizeof(address->v6.sin6_addr));
	}
}

static struct error *tuple_of_socket(int socket, struct tuple *ret)
{
	union address client = { 0 }, server = { 0 };
	socklen_t client_size = sizeof(client), server_size = sizeof(server);

	if (getpeername(socket, &client.any, &client_size) < 0 ||
	    getsockname(socket, &server.any, &server_size) < 0)
		return error_recode(error_system(errno, "the connection's ends cannot be told"),
				    ERROR_FORBIDDEN);
	unmap(&client);
	unmap(&server);
	if (client.any.sa_family != server.any.sa_family || !is_loopback(&client) ||
	    !is_loopback(&server))
		return error_new(ERROR_FORBIDDEN,
				 "the connection does not come from this machine's loopback");
	*ret = (struct tuple){ .family = (uint8_t)client.any.sa_family };
	copy_address(&client, &ret->id.idiag_sport, ret->id.idiag_src);
	copy_address(&server, &ret->id.idiag_dport, ret->id.idiag_dst);
	ret->id.idiag_cookie[0] = ret->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return NULL;
}

/* A netlink socket of its own for each question: no answer can be taken for another's. */
static struct error *open_diag(int *ret)
{
	const struct timeval patience = { .tv_sec = KERNEL_PATIENCE_SECONDS };
	int fd scoped(closep) = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return error_recode(error_system(errno, "the kernel's socket list"),
				    ERROR_FORBIDDEN);
	*ret = take_fd(fd);
	return NULL;
}

static struct error *send_question(int fd, const struct tuple *tuple)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = tuple->family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = ~0u,
			  .id = tuple->id },
	};

	if (send(fd, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return error_recode(error_system(errno, "the kernel's socket list"),
				    ERROR_FORBIDDEN);
	return NULL;
}

static struct error *receive_socket(int fd, struct inet_diag_msg *ret)
{
	union {
		struct nlmsghdr header;
		uint8_t bytes[REPLY_MAX_BYTES];
	} reply;
	struct sockaddr_nl sender = { 0 };
	socklen_t sender_size = sizeof(sender);
	ssize_t size =
	    recvfrom(fd, &reply, sizeof(reply), 0, (struct sockaddr *)&sender, &sender_size);

	if (size < 0)
		return error_recode(error_system(errno, "the kernel's socket list"),
				    ERROR_FORBIDDEN);
	if (sender.nl_pid != 0 || !NLMSG_OK(&reply.header, (size_t)size) ||
	    reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    reply.header.nlmsg_len < NLMSG_LENGTH(sizeof(*ret)))
		return error_new(ERROR_FORBIDDEN,
				 "the kernel does not know the client's end of this connection");
	memcpy(ret, NLMSG_DATA(&reply.header), sizeof(*ret));
	return NULL;
}

/* Whether the kernel's form of an address, which may wear IPv6 clothes, is the one we asked for. */
static bool same_address(const struct tuple *tuple, const __be32 *want, uint8_t family,
			 const __be32 *have)
{
	struct in6_addr clothed;

	if (tuple->family == AF_INET6)
		return family == AF_INET6 && memcmp(want, have, sizeof(clothed)) == 0;
	if (family == AF_INET)
		return *want == *have;
	memcpy(&clothed, have, sizeof(clothed));
	return IN6_IS_ADDR_V4MAPPED(&clothed) && *want == have[3];
}

/*
 * The kernel's lookup falls back to a listening socket on the client's port, and a client that has
 * closed is shown without an inode, as uid 0: neither is the owner of this connection. A client
 * that has merely ended its sending half still owns its socket.
 */
static struct error *check_socket(const struct tuple *tuple, const struct inet_diag_msg *found)
{
	const struct inet_diag_sockid *want = &tuple->id, *have = &found->id;

	if (found->idiag_state == TCP_LISTEN || want->idiag_sport != have->idiag_sport ||
	    want->idiag_dport != have->idiag_dport ||
	    !same_address(tuple, want->idiag_src, found->idiag_family, have->idiag_src) ||
	    !same_address(tuple, want->idiag_dst, found->idiag_family, have->idiag_dst))
		return error_new(ERROR_FORBIDDEN,
				 "the client's end of this connection is no longer there");
	if (found->idiag_inode == 0)
		return error_new(ERROR_FORBIDDEN, "the client has closed its end");
	return NULL;
}

static struct error *peer_of_tcp(int socket, struct peer *ret)
{
	struct inet_diag_msg found = { 0 };
	struct tuple tuple;
	int diag scoped(closep) = -1;
	struct error *err = tuple_of_socket(socket, &tuple);

	if (!err)
		err = open_diag(&diag);
	if (!err)
		err = send_question(diag, &tuple);
	if (!err)
		err = receive_socket(diag, &found);
	if (!err)
		err = check_socket(&tuple, &found);
	if (!err)
		*ret = (struct peer){ .uid = found.idiag_uid };
	return err;
}

static struct error *peer_of_unix(int socket, struct peer *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return error_recode(error_system(errno, "the client cannot be told"),
				    ERROR_FORBIDDEN);
	*ret =
	    (struct peer){ .uid = cred.uid, .gid = cred.gid, .gid_known = true, .is_unix = true };
	return NULL;
}

static struct error *family_of(int socket, int *ret)
{
	socklen_t size = sizeof(*ret);

	if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, ret, &size) < 0)
		return error_recode(error_system(errno, "the client cannot be told"),
				    ERROR_FORBIDDEN);
	return NULL;
}

struct error *peer_of_socket(int socket, struct peer *ret)
{
	int family = 0;
	struct error *err = family_of(socket, &family);

	if (err)
		return err;
	return family == AF_UNIX ? peer_of_unix(socket, ret) : peer_of_tcp(socket, ret);
}

bool peer_has_left(int socket)
{
	struct pollfd hung_up = { .fd = socket };
	struct peer peer;
	int family = 0;
	struct error *err = family_of(socket, &family);
	bool left = err;

	if (!err && family == AF_UNIX) { /* the kernel remembers who it was */
		left = poll(&hung_up, 1, 0) > 0;
	} else if (!err) {
		err = peer_of_tcp(socket, &peer);
		left = err;
	}
	error_free(err);
	return left;
}
