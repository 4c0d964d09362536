#include "daemon/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { HOST_MAX = 64 };

static bool is_port(const char *text)
{
	return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

static bool is_loopback_v6(const char *text)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, text, &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

static bool is_loopback_v4(const char *text)
{
	struct in_addr address;

	return inet_pton(AF_INET, text, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool origin_is_loopback(const char *host)
{
	bool bracketed = *host == '[';
	size_t size = strcspn(host + bracketed, bracketed ? "]" : ":");
	const char *rest = host + bracketed + size;
	char name[HOST_MAX];

	if (size == 0 || size >= sizeof(name))
		return false;
	memcpy(name, host + bracketed, size);
	name[size] = '\0';
	if (bracketed)
		return *rest == ']' && is_port(rest + 1) && is_loopback_v6(name);
	return is_port(rest) && (strcasecmp(name, "localhost") == 0 || is_loopback_v4(name));
}

static bool is_unix(int socket)
{
	int family = 0;
	socklen_t size = sizeof(family);

	return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

/* A page of ours has our own address as its origin, scheme, host and port. */
static bool is_own_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";

	return host && strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
	       strcasecmp(origin + sizeof(scheme) - 1, host) == 0;
}

struct error *origin_check(int socket, const char *host, const char *origin, const char *fetch_site)
{
	if (host && !is_unix(socket) && !origin_is_loopback(host))
		return error_new(ERROR_FORBIDDEN,
				 "the Host header names \"%s\"; ask as localhost or 127.0.0.1",
				 host);
	if (origin && !is_own_origin(origin, host))
		return error_new(ERROR_FORBIDDEN, "a page of %s may not ask goheapd for anything",
				 origin);
	if (fetch_site && strcmp(fetch_site, "none") != 0 && strcmp(fetch_site, "same-origin") != 0)
		return error_new(ERROR_FORBIDDEN, "a page of another site may not ask goheapd");
	return NULL;
}
