/*
 * One request and the answer to it. http.c fills the first half from the connection, serve.c
 * finds the route and says who asks, the route's handler writes the answer.
 */
#ifndef DAEMON_EXCHANGE_H
#define DAEMON_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/agent_client.h"
#include "daemon/kept_scan.h"
#include "daemon/negotiate.h"
#include "daemon/params.h"
#include "daemon/patience.h"
#include "daemon/peer.h"
#include "daemon/render.h"
#include "daemon/scan_cache.h"
#include "daemon/text.h"
#include "daemon/uri.h"

struct route;

/* What all requests share. */
struct server {
	struct agent_client *agent;
	struct scan_cache *scans;
	struct kept_scans *kept;
	const struct metric_settings *metrics;
	int stop; /* becomes readable when goheapd is to end */
};

enum { CANDIDATES_MAX = 64 };

struct exchange {
	/* as it came; borrowed */
	struct server *server;
	const char *method;
	const char *target;                              /* path and query, undecoded */
	const char *host, *origin, *fetch_site, *accept; /* headers, or NULL */
	int client;                                      /* the connection's socket */

	/* as understood */
	struct uri uri;
	struct peer peer;
	const struct route *route;
	struct params params;
	enum format format;
	struct patience patience;
	bool is_head;
	struct kept_scan *kept;          /* that the answer is to come from, or NULL */
	const Goheapd__Process *process; /* that the path names; in process_answer, or kept's */
	Goheapd__Answer *process_answer;

	/* the answer */
	unsigned status;
	const char *content_type;
	bool has_body; /* else headers only, of a body whose size is not known */
	struct text body;
	const char *allow;                   /* the Allow header, or NULL */
	char file_name[64];                  /* for a client that saves the body; empty: none */
	bool for_pprof;                      /* errors take the form that go tool pprof shows */
	uint64_t retry_after_ms;             /* 0: none */
	uint32_t pid;                        /* that an error is about, 0: none */
	uint32_t candidates[CANDIDATES_MAX]; /* pids of an ambiguous name */
	size_t candidate_count;
};

void exchange_init(struct exchange *exchange, struct server *server);
void exchange_fini(struct exchange *exchange);

/* Answers with an error of the contract. status and code are the contract's, the message is for
 * people. */
void exchange_refuse(struct exchange *exchange, unsigned status, const char *code,
		     const char *message);

/* The same for an error of ours, which it takes over; what is our own fault is logged under an id.
 */
void exchange_fail(struct exchange *exchange, struct error *err);

#endif
