/*
 * The supervisor: every job of the agent, what it admits, and what must outlive a request. It
 * knows every keeper and every snapshot there is.
 */
#ifndef AGENT_SUPERVISE_H
#define AGENT_SUPERVISE_H

#include "agent/agent_config.h"
#include "agent/event.h"
#include "agent/floor.h"
#include "agent/identity_cache.h"
#include "agent/index_store.h"
#include "agent/job.h"
#include "agent/kept_scan.h"
#include "agent/target/procfs.h"

struct session;

struct supervisor {
	struct event_loop *loop;
	struct agent_config config; /* its texts are borrowed */
	struct procfs procfs;
	struct floor floor;
	struct index_store indexes;
	struct identity_cache identities;
	struct kept_table kept;
	struct job *jobs;
	struct session *sessions;
	bool stopping;
};

/* Without a usable cache_dir, or with NULL, no index is kept. config's texts must outlive it. */
must_check struct error *supervisor_init(struct supervisor *supervisor, struct event_loop *loop,
					 const struct agent_config *config, const char *cache_dir);
/* When every job is gone. */
void supervisor_fini(struct supervisor *supervisor);

/* Answers at once, from /proc. The caller frees *ret. */
must_check struct error *supervise_look(struct supervisor *supervisor, pid_t pid,
					Goheapd__Process **ret);

/* These answer later, unless they refuse now. *ret belongs to the supervisor. */
must_check struct error *supervise_list(struct supervisor *supervisor, struct reply *reply,
					struct job **ret);
must_check struct error *supervise_overview(struct supervisor *supervisor,
					    const Goheapd__Overview *request, struct reply *reply,
					    struct job **ret);
must_check struct error *supervise_scan(struct supervisor *supervisor, const Goheapd__Scan *request,
					struct reply *reply, struct job **ret,
					uint64_t *ret_retry_after_ms);

/* A question to what the asker keeps. *ret belongs to the supervisor. */
must_check struct error *supervise_ask(struct supervisor *supervisor, const Goheapd__Ask *request,
				       struct reply *reply, struct job **ret);
/* Drops or prolongs it. */
must_check struct error *supervise_change_kept(struct supervisor *supervisor, const void *asker,
					       const Goheapd__Ask *request);
/* The caller frees *ret. */
must_check struct error *supervise_list_kept(struct supervisor *supervisor, const void *asker,
					     Goheapd__KeptScans **ret);
/* The asker has gone, and with it what it keeps. */
void supervise_forget(struct supervisor *supervisor, const void *asker);

/* Admits no more and lets everything go; the loop is stopped when the last job has gone. */
void supervisor_stop(struct supervisor *supervisor);

/* ---- for jobs ---- */

/* Takes a job into the list, or out of it, freeing it. */
void supervisor_add(struct supervisor *supervisor, struct job *job);
void supervisor_remove(struct job *job);

/* Whether the pid is a snapshot of ours, or a process that one of our keepers has made so far. */
bool supervisor_owns(const struct supervisor *supervisor, pid_t pid, pid_t tracer_pid);

/* CLOCK_MONOTONIC. */
uint64_t supervisor_now_us(void);

#endif
