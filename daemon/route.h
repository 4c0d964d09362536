/*
 * Which paths there are: for each the methods, who may ask, what it takes, what forms it has, and
 * who answers.
 */
#ifndef DAEMON_ROUTE_H
#define DAEMON_ROUTE_H

#include <stdbool.h>

#include "daemon/negotiate.h"
#include "daemon/uri.h"

struct exchange;

enum route_method { METHOD_GET = 1 << 0, METHOD_HEAD = 1 << 1 };

enum route_role {
	ROLE_ANYBODY, /* who asks is not looked at */
	ROLE_CALLER,  /* anybody whom the kernel names; the answer depends on who it is */
	ROLE_TARGET,  /* whoever may see the process that the path names */
	ROLE_KEPT,    /* the same, or if it is gone, that scans are kept of */
};

struct route {
	unsigned methods;
	const char *path; /* segments; "*" stands for any one */
	enum route_role role;
	unsigned params;                  /* enum of params.h */
	enum format formats[FORMATS_MAX]; /* the first is the default */
	bool stops;                       /* answering takes a scan: HEAD does without */
	/* Writes the answer's body; a failure becomes the answer. */
	struct error *(*answer)(struct exchange *exchange);
};

/* The route of a path, or NULL. /comm/NAME/... is /pid/N/... */
const struct route *route_find(const struct uri *uri);

/* A sentence on a path that has no route. */
const char *route_absence(const struct uri *uri);

/* Whether errors on this path go to go tool pprof and its like. */
bool route_is_for_pprof(const struct uri *uri);

/* All routes, ended by one without a path. */
extern const struct route routes[];

#endif
