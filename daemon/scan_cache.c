#include "daemon/scan_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "daemon/analysis.h"
#include "daemon/clock.h"
#include "daemon/process.h"
#include "daemon/uri.h"
#include "proto/base/log.h"

enum {
	KEPT_MAX_BYTES = 64 << 20,
	KEPT_MAX_AGE_US = 3600u * 1000000,
	/* The agent's own limit on a scan; requests give up earlier, each at its own timeout. */
	SCAN_MAX_US = 600 * 1000000,
	CANCEL_GRACE_US = 10 * 1000000,
	BUSY_RETRY_MS = 1000,
};

/* A request that waits for a flight's end; on its thread's stack. */
struct waiter {
	struct waiter *next;
	int event;
	bool joined;       /* wants the result, rather than the target */
	struct scan *scan; /* a reference of the waiter's */
	struct error *err;
	uint64_t retry_after_ms;
};

/* A scan that runs. */
struct flight {
	struct flight *next;
	struct scan_cache *cache;
	struct scan_key key;
	/* the key's own copies, or NULL */
	struct label_query *labels;
	Goheapd__Analysis *analysis;
	char id[SCAN_ID_SIZE];     /* of the scan that it will be */
	Goheapd__Process *process; /* its own copy, if the scan is to be kept; else NULL */
	uid_t caller;
	char *path;
	int cancel; /* eventfd: nobody waits any more */
	bool cancelled;
	unsigned joined_count;
	struct waiter *waiters;
};

/* A target that was stopped, and from when on it may be again. */
struct rest {
	struct rest *next;
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t until_us;
};

struct scan_cache {
	struct agent_client *client;
	struct kept_scans *kept;
	struct scan_limits limits;
	pthread_mutex_t lock; /* guards all that follows, flights and waiters included */
	pthread_cond_t landed;
	struct flight *flights;
	unsigned flight_count;
	struct rest *rests;
	struct scan_store store;
};

struct error *scan_cache_new(struct agent_client *client, struct kept_scans *kept,
			     const struct scan_limits *limits, struct scan_cache **ret)
{
	struct scan_cache *cache = malloc(sizeof(*cache));

	if (!cache)
		return &error_nomem;
	*cache = (struct scan_cache){
		.client = client,
		.kept = kept,
		.limits = *limits,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.landed = PTHREAD_COND_INITIALIZER,
	};
	scan_store_init(&cache->store, KEPT_MAX_BYTES, KEPT_MAX_AGE_US);
	*ret = cache;
	return NULL;
}

void scan_cache_free(struct scan_cache *cache)
{
	if (!cache)
		return;
	pthread_mutex_lock(&cache->lock);
	while (cache->flight_count)
		pthread_cond_wait(&cache->landed, &cache->lock);
	pthread_mutex_unlock(&cache->lock);
	scan_store_fini(&cache->store);
	while (cache->rests) {
		struct rest *next = cache->rests->next;

		free(cache->rests);
		cache->rests = next;
	}
	pthread_cond_destroy(&cache->landed);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* ---- rests ---- */

/* Until when the target must be left alone; 0: it need not. Forgets rests that are over. */
static uint64_t rest_until(struct scan_cache *cache, const struct scan_key *key, uint64_t now_us)
{
	struct rest **link = &cache->rests;
	uint64_t until_us = 0;

	while (*link) {
		struct rest *rest = *link;

		if (rest->until_us <= now_us) {
			*link = rest->next;
			free(rest);
			continue;
		}
		if (rest->pid == key->pid && rest->start_ticks == key->start_ticks)
			until_us = rest->until_us;
		link = &rest->next;
	}
	return until_us;
}

/* Without memory for it the interval is the agent's alone to keep. */
static void rest_begin(struct scan_cache *cache, const struct scan_key *key)
{
	struct rest *rest = malloc(sizeof(*rest));

	if (!rest)
		return;
	*rest = (struct rest){
		.next = cache->rests,
		.pid = key->pid,
		.start_ticks = key->start_ticks,
		.until_us = clock_now_us() + cache->limits.min_interval_us,
	};
	cache->rests = rest;
}

/* Whether a scan that failed like this may have stopped its target before. */
static bool may_have_stopped(const struct error *err)
{
	switch (err ? error_code(err) : ERROR_TIMEOUT) {
	case ERROR_NO_PROCESS:
	case ERROR_NOT_GO:
	case ERROR_UNSUPPORTED:
	case ERROR_UNSUPPORTED_ARCH:
	case ERROR_NO_DEBUG_INFO:
	case ERROR_DENIED:
	case ERROR_FORBIDDEN:
	case ERROR_FORK_UNSAFE:
	case ERROR_BUSY:
		return false;
	default:
		return true;
	}
}

/* ---- flights ---- */

static bool same_target(const struct scan_key *a, const struct scan_key *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks;
}

static bool same_labels(const struct label_query *a, const struct label_query *b)
{
	return a && b ? label_query_equal(a, b) : a == b;
}

static bool same_scan(const struct scan_key *a, const struct scan_key *b)
{
	return same_target(a, b) && a->exe_hash == b->exe_hash && a->mode == b->mode &&
	       a->depth == b->depth && a->parts == b->parts && a->max_pause_us == b->max_pause_us &&
	       a->keep_us == b->keep_us && a->keep_implied == b->keep_implied &&
	       same_labels(a->labels, b->labels) && analysis_equal(a->analysis, b->analysis);
}

static struct flight *flight_find(struct scan_cache *cache, const struct scan_key *key)
{
	struct flight *flight = cache->flights;

	while (flight && !same_target(&flight->key, key))
		flight = flight->next;
	return flight;
}

static void flight_free(struct flight *flight)
{
	if (flight->cancel >= 0)
		close(flight->cancel);
	free(flight->path);
	free(flight->labels);
	analysis_free(flight->analysis);
	if (flight->process)
		goheapd__process__free_unpacked(flight->process, NULL);
	free(flight);
}

/*
 * A result that is not kept is a result all the same; the agent's graph goes with its time. A
 * warning would come too late for those who share the scan.
 */
static void flight_keep(struct flight *flight, struct scan *scan)
{
	struct error *err =
	    kept_scans_add(flight->cache->kept, scan, flight->process, flight->key.keep_us);

	if (err)
		log_warning("kept", "a scan is not kept, its answer goes out pid=%u err=\"%s\"",
			    flight->key.pid, error_message(err));
	error_free(err);
}

/* Asks the agent. No lock is held. */
static struct error *flight_scan(struct flight *flight, struct scan **ret,
				 uint64_t *ret_retry_after_ms)
{
	const struct scan_key *key = &flight->key;
	const struct scan_question question = {
		.pid = key->pid,
		.start_ticks = key->start_ticks,
		.mode = key->mode,
		.depth = key->depth,
		.parts = key->parts,
		.labels = key->labels,
		.analysis = key->analysis,
		.max_pause_us = key->max_pause_us,
		.timeout_us = SCAN_MAX_US,
		.keep_id =
		    key->keep_us && key->depth == GOHEAPD__DEPTH__DEPTH_FULL ? flight->id : NULL,
		.keep_us = key->keep_us,
		.keep_implied = key->keep_implied,
		.caller = flight->caller,
		.path = flight->path,
	};
	uint64_t started_us = clock_now_us();
	const struct patience patience = { .deadline_us =
					       started_us + SCAN_MAX_US + CANCEL_GRACE_US,
					   .client = -1,
					   .stop = flight->cancel };
	Goheapd__Answer *answer;
	struct error *err = scan_ask(flight->cache->client, &question, &patience, CANCEL_GRACE_US,
				     &answer, ret_retry_after_ms);

	if (!err)
		err = scan_new(key, flight->id, started_us, answer, ret);
	if (!err && flight->process)
		flight_keep(flight, *ret);
	return err;
}

static void wake(struct waiter *waiter)
{
	const uint64_t one = 1;

	if (write(waiter->event, &one, sizeof(one)) < 0)
		log_error("scan", "an event is lost err=\"%s\"", strerror(errno));
}

/* Gives everybody who waits their result. */
static void flight_notify(struct flight *flight, struct scan *scan, const struct error *err,
			  uint64_t retry_after_ms)
{
	for (struct waiter *waiter = flight->waiters; waiter; waiter = waiter->next) {
		if (waiter->joined && err)
			waiter->err = error_new(error_code(err), "%s", error_message(err));
		else if (waiter->joined)
			waiter->scan = scan_acquire(scan);
		waiter->retry_after_ms = retry_after_ms;
		wake(waiter);
	}
	flight->waiters = NULL;
}

static void flight_land(struct flight *flight, struct scan *scan, const struct error *err,
			uint64_t retry_after_ms)
{
	struct scan_cache *cache = flight->cache;
	struct flight **link = &cache->flights;

	pthread_mutex_lock(&cache->lock);
	if (may_have_stopped(err) && cache->limits.min_interval_us)
		rest_begin(cache, &flight->key);
	if (scan)
		scan_store_add(&cache->store, scan, clock_now_us());
	flight_notify(flight, scan, err, retry_after_ms);
	while (*link != flight)
		link = &(*link)->next;
	*link = flight->next;
	flight_free(flight);
	cache->flight_count--;
	pthread_cond_broadcast(&cache->landed);
	pthread_mutex_unlock(&cache->lock);
}

static void *flight_thread(void *arg)
{
	struct flight *flight = arg;
	struct scan *scan scoped(scan_releasep) = NULL;
	uint64_t retry_after_ms = 0;
	struct error *err scoped(error_freep) = flight_scan(flight, &scan, &retry_after_ms);

	flight_land(flight, scan, err, retry_after_ms);
	return NULL;
}

/* A flight that outlives the request: it owns what it knows of it. */
static struct error *flight_new(struct scan_cache *cache, const struct scan_key *key,
				const struct scan_request *request, struct flight **ret)
{
	struct flight *flight = malloc(sizeof(*flight));
	struct error *err;
	size_t size;

	if (!flight)
		return &error_nomem;
	*flight =
	    (struct flight){ .cache = cache, .key = *key, .caller = request->caller, .cancel = -1 };
	err = uri_without_labels(request->path, &flight->path);
	if (!err)
		err = scan_make_id(flight->id);
	if (!err && key->keep_us)
		err = process_copy(request->process, &flight->process);
	if (!err && key->labels)
		err = label_query_copy(key->labels, &flight->labels, &size);
	if (!err && key->analysis)
		err = analysis_copy(key->analysis, &flight->analysis, &size);
	flight->key.labels = flight->labels;
	flight->key.analysis = flight->analysis;
	flight->cancel = eventfd(0, EFD_CLOEXEC);
	if (!err && flight->cancel < 0)
		err = error_system(errno, "eventfd");
	if (err)
		flight_free(flight);
	else
		*ret = flight;
	return err;
}

static struct error *flight_start(struct scan_cache *cache, const struct scan_key *key,
				  const struct scan_request *request, struct flight **ret)
{
	struct flight *flight;
	pthread_t thread;
	struct error *err = flight_new(cache, key, request, &flight);
	int errnum;

	if (err)
		return err;
	errnum = pthread_create(&thread, NULL, flight_thread, flight);
	if (errnum) {
		flight_free(flight);
		return error_system(errnum, "cannot start a scan");
	}
	pthread_detach(thread);
	flight->next = cache->flights;
	cache->flights = flight;
	cache->flight_count++;
	*ret = flight;
	return NULL;
}

/* ---- waiting ---- */

static void waiter_add(struct flight *flight, struct waiter *waiter)
{
	waiter->next = flight->waiters;
	flight->waiters = waiter;
	flight->joined_count += waiter->joined;
}

/* Leaves a flight that has not landed; the last who wanted its result cancels it. */
static void waiter_leave(struct scan_cache *cache, struct waiter *waiter)
{
	const uint64_t one = 1;

	for (struct flight *flight = cache->flights; flight; flight = flight->next) {
		struct waiter **link = &flight->waiters;

		while (*link && *link != waiter)
			link = &(*link)->next;
		if (!*link)
			continue;
		*link = waiter->next;
		flight->joined_count -= waiter->joined;
		if (waiter->joined && flight->joined_count == 0) {
			flight->cancelled = true;
			if (write(flight->cancel, &one, sizeof(one)) < 0)
				log_error("scan", "a scan goes on err=\"%s\"", strerror(errno));
		}
		return;
	}
}

/*
 * Waits for the flight's end; a waiter that joined then has its result. The lock is held before
 * and after, not meanwhile.
 */
static struct error *wait_for_flight(struct scan_cache *cache, struct flight *flight, bool join,
				     const struct patience *patience, struct waiter *waiter)
{
	struct error *err;

	*waiter = (struct waiter){ .event = eventfd(0, EFD_CLOEXEC), .joined = join };
	if (waiter->event < 0)
		return error_system(errno, "eventfd");
	waiter_add(flight, waiter);
	pthread_mutex_unlock(&cache->lock);
	err = patience_wait(patience, waiter->event);
	pthread_mutex_lock(&cache->lock);
	if (err)
		waiter_leave(cache, waiter);
	close(waiter->event);
	if (err) { /* it may have landed in between */
		scan_release(waiter->scan);
		error_free(waiter->err);
	}
	return err;
}

/* Lets a target have its rest, if the patience lasts that long. */
static struct error *wait_for_rest(struct scan_cache *cache, uint64_t until_us,
				   const struct patience *patience, uint64_t *ret_retry_after_ms)
{
	struct patience rest = *patience;
	struct error *err;

	if (until_us >= patience->deadline_us) {
		*ret_retry_after_ms = (until_us - clock_now_us()) / 1000 + 1;
		return error_new(ERROR_BUSY, "the process was stopped a moment ago; ask again "
					     "later, or with max_age= for the earlier answer");
	}
	rest.deadline_us = until_us;
	pthread_mutex_unlock(&cache->lock);
	err = patience_wait(&rest, -1);
	pthread_mutex_lock(&cache->lock);
	if (error_code(err) == ERROR_TIMEOUT && clock_now_us() >= until_us) {
		error_free(err);
		err = NULL;
	}
	return err;
}

/* Joins a flight, or starts it first, and waits for the result. */
static struct error *fly(struct scan_cache *cache, struct flight *flight,
			 const struct patience *patience, struct scan **ret,
			 uint64_t *ret_retry_after_ms)
{
	struct waiter waiter;
	struct error *err = wait_for_flight(cache, flight, true, patience, &waiter);

	if (err)
		return err;
	*ret_retry_after_ms = waiter.retry_after_ms;
	if (waiter.err)
		return waiter.err;
	*ret = waiter.scan;
	return NULL;
}

/* One step towards a scan: *ret stays NULL when something was waited for and it is to be tried
 * again. */
static struct error *step(struct scan_cache *cache, const struct scan_key *key,
			  const struct scan_request *request, const struct patience *patience,
			  struct scan **ret, uint64_t *ret_retry_after_ms)
{
	struct flight *flight = flight_find(cache, key);
	uint64_t until_us = rest_until(cache, key, clock_now_us());
	struct waiter waiter;
	struct error *err;

	if (flight && !flight->cancelled && same_scan(&flight->key, key))
		return fly(cache, flight, patience, ret, ret_retry_after_ms);
	if (flight)
		return wait_for_flight(cache, flight, false, patience, &waiter);
	if (until_us)
		return wait_for_rest(cache, until_us, patience, ret_retry_after_ms);
	if (cache->flight_count >= cache->limits.max_scans) {
		*ret_retry_after_ms = BUSY_RETRY_MS;
		return error_new(ERROR_BUSY, "%u scans are running, which is the limit (max_scans)",
				 cache->flight_count);
	}
	err = flight_start(cache, key, request, &flight);
	return err ? err : fly(cache, flight, patience, ret, ret_retry_after_ms);
}

/* An earlier scan that answers; one that is to be kept must be kept still. The lock is held before
 * and after. */
static struct scan *find_earlier(struct scan_cache *cache, const struct scan_key *key,
				 uint64_t max_age_us, const struct patience *patience)
{
	struct scan *scan = scan_store_find(&cache->store, key, max_age_us, clock_now_us());
	struct error *err;

	if (!scan || !key->keep_us)
		return scan;
	pthread_mutex_unlock(&cache->lock);
	err = kept_scans_extend(cache->kept, scan->id, key->keep_us, key->keep_implied, patience);
	pthread_mutex_lock(&cache->lock);
	if (err)
		scan_release(take(scan));
	error_free(err);
	return scan;
}

struct error *scan_cache_get(struct scan_cache *cache, const struct scan_request *request,
			     const struct patience *patience, struct scan **ret, bool *ret_cached,
			     uint64_t *ret_retry_after_ms)
{
	const struct params *params = request->params;
	const struct scan_key key = {
		.pid = request->process->pid,
		.start_ticks = request->process->start_ticks,
		.exe_hash = request->process->has_exe ? scan_hash(request->process->exe) : 0,
		.mode = params->mode,
		.depth = params->depth,
		.parts = request->parts,
		.max_pause_us = params->max_pause_us,
		.keep_us = cache->kept ? params->keep_us : 0,
		.keep_implied = cache->kept && params->keep_us && !params->has_keep,
		.labels = request->parts & SCAN_LABELS && !label_query_is_empty(&params->labels)
			      ? &params->labels
			      : NULL,
		.analysis = request->analysis,
	};
	struct error *err = NULL;
	struct scan *scan = NULL;

	*ret_cached = false;
	pthread_mutex_lock(&cache->lock);
	while (!err && !scan) {
		if (params->max_age_us)
			scan = find_earlier(cache, &key, params->max_age_us, patience);
		*ret_cached = scan != NULL;
		if (!scan)
			err = step(cache, &key, request, patience, &scan, ret_retry_after_ms);
	}
	pthread_mutex_unlock(&cache->lock);
	if (!err)
		*ret = scan;
	return err;
}
