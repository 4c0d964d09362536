#include "daemon/kept_scan.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/analysis.h"
#include "daemon/auth.h"
#include "daemon/clock.h"
#include "daemon/kept_ask.h"
#include "daemon/process.h"
#include "proto/base/log.h"

enum {
	RESULTS_MAX_BYTES = 64 << 20,
	/* The agent may be busy, but it answers at once. */
	DROP_PATIENCE_US = 2000000,
};

struct kept_scans {
	struct agent_client *agent;
	pthread_t thread;     /* lets go of those whose time is over */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	bool stopping;
	struct kept_scan *newest;
	size_t bytes;
};

/* ---- one scan ---- */

struct kept_scan *kept_scan_acquire(struct kept_scan *scan)
{
	atomic_fetch_add(&scan->references, 1);
	return scan;
}

void kept_scan_release(struct kept_scan *scan)
{
	if (!scan || atomic_fetch_sub(&scan->references, 1) > 1)
		return;
	scan_release(scan->scan);
	if (scan->process)
		goheapd__process__free_unpacked(scan->process, NULL);
	free(scan);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void keep_for(struct kept_scan *scan, uint64_t keep_us)
{
	scan->until_us = clock_now_us() + keep_us;
	scan->until_ns = now_ns() + keep_us * 1000;
}

static struct error *kept_scan_new(struct scan *scan, const Goheapd__Process *process,
				   uint64_t keep_us, struct kept_scan **ret)
{
	struct kept_scan *made = calloc(1, sizeof(*made));
	struct error *err;

	if (!made)
		return &error_nomem;
	made->references = 1;
	made->scan = scan_acquire(scan);
	made->has_graph = scan->answer->scan->has_kept_until_ns;
	made->implied = scan->key.keep_implied;
	keep_for(made, keep_us);
	err = process_copy(process, &made->process);
	if (err)
		kept_scan_release(made);
	else
		*ret = made;
	return err;
}

/* ---- the table; what its functions take off it is for the caller to release ---- */

static struct kept_scan *take_off(struct kept_scans *kept, struct kept_scan **link)
{
	struct kept_scan *scan = *link;

	*link = take(scan->next);
	kept->bytes -= scan->scan->bytes;
	return scan;
}

/* Those whose time is over: the agent's graph has a timer of its own. The lock is held. */
static void purge(struct kept_scans *kept)
{
	uint64_t now_us = clock_now_us();
	struct kept_scan **link = &kept->newest;

	while (*link) {
		if ((*link)->until_us > now_us)
			link = &(*link)->next;
		else
			kept_scan_release(take_off(kept, link));
	}
}

static bool goes_before(const struct kept_scan *one, const struct kept_scan *other)
{
	return one->implied != other->implied ? one->implied : one->until_us < other->until_us;
}

/*
 * The one to do without if all are too much, or NULL; not the newest, which fits in alone. Of two
 * whose times are over at once the older one. The lock is held.
 */
static struct kept_scan *take_surplus(struct kept_scans *kept)
{
	struct kept_scan **first, **link;

	if (kept->bytes <= RESULTS_MAX_BYTES || !kept->newest || !kept->newest->next)
		return NULL;
	first = &kept->newest->next;
	for (link = &(*first)->next; *link; link = &(*link)->next)
		if (!goes_before(*first, *link))
			first = link;
	return take_off(kept, first);
}

/* When the next is over; 0: there is none. The lock is held. */
static uint64_t next_end(const struct kept_scans *kept)
{
	uint64_t end_us = 0;

	for (const struct kept_scan *scan = kept->newest; scan; scan = scan->next) {
		if (!end_us || scan->until_us < end_us)
			end_us = scan->until_us;
	}
	return end_us;
}

/* Results are not to stay in memory because nobody asks anything any more. */
static void *purge_thread(void *arg)
{
	struct kept_scans *kept = arg;

	pthread_mutex_lock(&kept->lock);
	while (!kept->stopping) {
		uint64_t end_us;
		struct timespec end;

		purge(kept);
		end_us = next_end(kept);
		end = (struct timespec){ .tv_sec = (time_t)(end_us / 1000000),
					 .tv_nsec = (long)(end_us % 1000000) * 1000 };
		if (end_us)
			pthread_cond_clockwait(&kept->changed, &kept->lock, CLOCK_MONOTONIC, &end);
		else
			pthread_cond_wait(&kept->changed, &kept->lock);
	}
	pthread_mutex_unlock(&kept->lock);
	return NULL;
}

struct error *kept_scans_new(struct agent_client *agent, struct kept_scans **ret)
{
	struct kept_scans *kept = malloc(sizeof(*kept));
	int errnum;

	if (!kept)
		return &error_nomem;
	*kept = (struct kept_scans){ .agent = agent,
				     .lock = PTHREAD_MUTEX_INITIALIZER,
				     .changed = PTHREAD_COND_INITIALIZER };
	errnum = pthread_create(&kept->thread, NULL, purge_thread, kept);
	if (errnum) {
		free(kept);
		return error_system(errnum, "cannot start a thread");
	}
	*ret = kept;
	return NULL;
}

/* Tells the agent, which knows why it goes only by that. */
static void drop(struct kept_scans *kept, struct kept_scan *scan)
{
	const struct patience patience = { .deadline_us = clock_now_us() + DROP_PATIENCE_US,
					   .client = -1,
					   .stop = -1 };
	struct error *err =
	    scan->has_graph ? kept_ask_drop(kept->agent, scan->scan->id, &patience) : NULL;

	log_info("kept", "a kept result was dropped to make room for newer ones id=%s",
		 scan->scan->id);
	error_free(err); /* then it is gone already, or goes with its time */
	kept_scan_release(scan);
}

void kept_scans_free(struct kept_scans *kept)
{
	if (!kept)
		return;
	pthread_mutex_lock(&kept->lock);
	kept->stopping = true;
	pthread_cond_signal(&kept->changed);
	pthread_mutex_unlock(&kept->lock);
	pthread_join(kept->thread, NULL);
	while (kept->newest)
		kept_scan_release(take_off(kept, &kept->newest));
	pthread_cond_destroy(&kept->changed);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

struct error *kept_scans_add(struct kept_scans *kept, struct scan *scan,
			     const Goheapd__Process *process, uint64_t keep_us)
{
	struct kept_scan *made, *surplus;
	struct error *err;

	if (scan->bytes > RESULTS_MAX_BYTES)
		return error_new(ERROR_LIMIT, "a result of %zu bytes is not kept", scan->bytes);
	err = kept_scan_new(scan, process, keep_us, &made);
	if (err)
		return err;
	pthread_mutex_lock(&kept->lock);
	purge(kept);
	made->next = kept->newest;
	kept->newest = made;
	kept->bytes += scan->bytes;
	pthread_cond_signal(&kept->changed);
	while ((surplus = take_surplus(kept))) {
		pthread_mutex_unlock(&kept->lock);
		drop(kept, surplus);
		pthread_mutex_lock(&kept->lock);
	}
	pthread_mutex_unlock(&kept->lock);
	return NULL;
}

static struct error *not_found(const char *id)
{
	return error_new(
	    ERROR_NOT_FOUND,
	    "scan %s is not kept: its time may be over; make a new one with keep=", id);
}

struct error *kept_scans_find(struct kept_scans *kept, const char *id, struct kept_scan **ret)
{
	struct kept_scan *scan;

	pthread_mutex_lock(&kept->lock);
	purge(kept);
	for (scan = kept->newest; scan && strcmp(scan->scan->id, id) != 0; scan = scan->next)
		;
	if (scan)
		*ret = kept_scan_acquire(scan);
	pthread_mutex_unlock(&kept->lock);
	return scan ? NULL : not_found(id);
}

static bool fits(const struct kept_scan *scan, const struct kept_filter *filter)
{
	return (!filter->pid || scan->process->pid == filter->pid) &&
	       (!filter->start_ticks || scan->process->start_ticks == filter->start_ticks) &&
	       (!filter->peer || auth_may_see(filter->peer, scan->process));
}

struct error *kept_scans_list(struct kept_scans *kept, const struct kept_filter *filter,
			      struct kept_list *ret)
{
	struct kept_list list = { 0 };
	size_t count = 0;

	pthread_mutex_lock(&kept->lock);
	purge(kept);
	for (struct kept_scan *scan = kept->newest; scan; scan = scan->next)
		count++;
	list.scans = calloc(count + 1, sizeof(struct kept_scan *));
	for (struct kept_scan *scan = list.scans ? kept->newest : NULL; scan; scan = scan->next) {
		if (fits(scan, filter))
			list.scans[list.count++] = kept_scan_acquire(scan);
	}
	pthread_mutex_unlock(&kept->lock);
	if (!list.scans)
		return &error_nomem;
	*ret = list;
	return NULL;
}

void kept_list_fini(struct kept_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		kept_scan_release(list->scans[i]);
	free(list->scans);
	*list = (struct kept_list){ 0 };
}

/* ---- the graphs ---- */

static bool is_among(const Goheapd__KeptScans *list, const char *id)
{
	size_t size = strlen(id);

	for (size_t i = 0; i < list->n_scans; i++) {
		if (list->scans[i]->id.len == size && !memcmp(list->scans[i]->id.data, id, size))
			return true;
	}
	return false;
}

struct error *kept_scans_refresh(struct kept_scans *kept, const struct patience *patience)
{
	const struct kept_filter all = { 0 };
	struct kept_list before;
	struct error *err = kept_scans_list(kept, &all, &before);
	Goheapd__Answer *answer;

	if (err)
		return err;
	/* those that are added meanwhile are not among before */
	err = kept_ask_list(kept->agent, patience, &answer);
	for (size_t i = 0; !err && i < before.count; i++) {
		if (!is_among(answer->kept_scans, before.scans[i]->scan->id))
			before.scans[i]->has_graph = false;
	}
	if (!err)
		goheapd__answer__free_unpacked(answer, NULL);
	kept_list_fini(&before);
	return err;
}

static struct error *no_graph(const struct kept_scan *scan)
{
	if (scan->scan->key.depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		return error_new(ERROR_NOT_FOUND, "scan %s is a census, which has no graph to ask",
				 scan->scan->id);
	return error_new(
	    ERROR_NOT_FOUND,
	    "the graph of scan %s is kept no more: memory was short, or there were too "
	    "many; its first result is still there",
	    scan->scan->id);
}

/* Either the graph is gone, or it has not what was asked for: the agent knows. Consumes err. */
static struct error *explain(struct kept_scans *kept, struct kept_scan *scan, struct error *err,
			     const struct patience *patience)
{
	if (error_code(err) != ERROR_NOT_FOUND)
		return err;
	error_free(kept_scans_refresh(kept, patience));
	if (scan->has_graph)
		return err;
	error_free(err);
	return no_graph(scan);
}

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swap_ = (a);                                                         \
		(a) = (b);                                                                         \
		(b) = swap_;                                                                       \
	} while (0)

/* What an answer warns of, behind what the kept scan does. */
static struct error *move_warnings(Goheapd__ScanInfo *from, Goheapd__ScanInfo *to)
{
	size_t count = to->n_warnings + from->n_warnings;
	Goheapd__Warning **warnings = realloc(to->warnings, (count + 1) * sizeof(*warnings));

	if (!warnings)
		return &error_nomem;
	for (size_t i = 0; i < from->n_warnings; i++)
		warnings[to->n_warnings++] = from->warnings[i];
	to->warnings = warnings;
	from->n_warnings = 0;
	return NULL;
}

/* The caller frees *ret with free_unpacked. */
static struct error *copy_result(const Goheapd__ScanResult *result, Goheapd__ScanResult **ret)
{
	size_t size = goheapd__scan_result__get_packed_size(result);
	uint8_t *bytes scoped(freep) = malloc(size);

	if (!bytes)
		return &error_nomem;
	goheapd__scan_result__pack(result, bytes);
	*ret = goheapd__scan_result__unpack(NULL, size, bytes);
	return *ret ? NULL : &error_nomem;
}

static struct error *copy_usage(const Goheapd__ScanResult *first, Goheapd__ScanResult **ret)
{
	Goheapd__ScanResult part = GOHEAPD__SCAN_RESULT__INIT;

	part.identity = first->identity;
	part.scan = first->scan;
	part.memory = first->memory;
	part.stacks = first->stacks;
	part.gc = first->gc;
	part.cgroup = first->cgroup;
	part.has_rss_bytes = first->has_rss_bytes;
	part.rss_bytes = first->rss_bytes;
	return copy_result(&part, ret);
}

/* The result's own copy of what the first one says; with the agent's figures, which are right. */
static struct error *repeat_first(const struct kept_scan *scan, Goheapd__ScanResult *result)
{
	const Goheapd__ScanResult *first = scan->scan->answer->scan;
	Goheapd__ScanResult head = GOHEAPD__SCAN_RESULT__INIT;
	Goheapd__ScanResult *copy;
	struct error *err;

	head.identity = first->identity;
	head.scan = first->scan;
	head.heap = first->heap;
	err = copy_result(&head, &copy);
	if (err)
		return err;
	SWAP(result->identity, copy->identity);
	SWAP(result->scan, copy->scan);
	SWAP(result->heap, copy->heap);
	result->has_kept_until_ns = true;
	result->kept_until_ns = scan->until_ns;
	err = move_warnings(copy->scan, result->scan);
	goheapd__scan_result__free_unpacked(copy, NULL);
	return err;
}

struct error *kept_scan_ask(struct kept_scans *kept, struct kept_scan *scan,
			    const Goheapd__Analysis *analysis, const struct patience *patience,
			    struct scan **ret)
{
	struct scan_key key = scan->scan->key;
	Goheapd__Answer *answer;
	struct error *err;

	if (!scan->has_graph)
		return no_graph(scan);
	err = kept_ask(kept->agent, scan->scan->id, analysis, patience, &answer);
	if (err)
		return explain(kept, scan, err, patience);
	err = repeat_first(scan, answer->scan);
	if (err) {
		goheapd__answer__free_unpacked(answer, NULL);
		return err;
	}
	key.parts = 0;
	key.labels = NULL;
	key.analysis = analysis;
	return scan_new(&key, scan->scan->id, scan->scan->started_us, answer, ret);
}

/* What the detail of label sets is told with is the first result's, but for the labels. */
static struct error *ask_for_detail(struct kept_scans *kept, struct kept_scan *scan,
				    const Goheapd__Analysis *analysis,
				    const struct patience *patience, struct scan **ret)
{
	struct scan *asked scoped(scan_releasep) = NULL;
	struct error *err = kept_scan_ask(kept, scan, analysis, patience, &asked);
	Goheapd__ScanResult *copy, *result;

	if (err)
		return err;
	result = asked->answer->scan;
	if (!result->labels)
		return error_new(ERROR_SYSTEM, "the agent says nothing of labels");
	err = copy_usage(scan->scan->answer->scan, &copy);
	if (err)
		return err;
	SWAP(result->memory, copy->memory);
	SWAP(result->stacks, copy->stacks);
	SWAP(result->gc, copy->gc);
	SWAP(result->cgroup, copy->cgroup);
	result->has_rss_bytes = copy->has_rss_bytes;
	result->rss_bytes = copy->rss_bytes;
	goheapd__scan_result__free_unpacked(copy, NULL);
	*ret = take(asked);
	return NULL;
}

static const struct {
	unsigned part;
	const char *name;
} part_names[] = {
	{ SCAN_MEMORY, "memory" },
	{ SCAN_LABELS, "labels" },
	{ SCAN_MAPPINGS, "mappings" },
	{ SCAN_GOROUTINES, "goroutines" },
	{ SCAN_DEAD_GOROUTINES, "dead goroutines" },
};

/* Detail can be asked of the graph. */
static bool labels_answer(const struct kept_scan *scan, const struct label_query *labels,
			  const Goheapd__Analysis *analysis)
{
	const struct label_query *had = scan->scan->key.labels;
	struct label_query wanted = *labels;

	if (analysis && (analysis->label_types || analysis->has_globals))
		wanted.detail = had && had->detail;
	return label_query_is_empty(&wanted) || scan_labels_answer(had, &wanted);
}

static struct error *check_parts(const struct kept_scan *scan, unsigned parts,
				 const struct label_query *labels,
				 const Goheapd__Analysis *analysis)
{
	unsigned lacking = parts & ~scan->scan->key.parts;

	for (size_t i = 0; i < sizeof(part_names) / sizeof(*part_names); i++) {
		if (lacking & part_names[i].part)
			return error_new(
			    ERROR_BAD_REQUEST,
			    "scan %s was made without %s; ask without scan= for a new one",
			    scan->scan->id, part_names[i].name);
	}
	if (parts & SCAN_LABELS && labels && !labels_answer(scan, labels, analysis))
		return error_new(ERROR_BAD_REQUEST,
				 "scan %s was made with other label=, by= or detail=; ask without "
				 "scan= for a new one",
				 scan->scan->id);
	return NULL;
}

struct error *kept_scan_answer(struct kept_scans *kept, struct kept_scan *scan, unsigned parts,
			       const struct label_query *labels, const Goheapd__Analysis *analysis,
			       const struct patience *patience, struct scan **ret)
{
	struct error *err = check_parts(scan, parts, labels, analysis);

	if (err)
		return err;
	if (analysis_answers(scan->scan->key.analysis, analysis)) {
		*ret = scan_acquire(scan->scan);
		return NULL;
	}
	if (parts & SCAN_LABELS)
		return ask_for_detail(kept, scan, analysis, patience, ret);
	if (parts)
		return error_new(ERROR_BAD_REQUEST,
				 "scan %s was made without retained sizes of goroutines; ask "
				 "without scan= for a new one",
				 scan->scan->id);
	return kept_scan_ask(kept, scan, analysis, patience, ret);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct error *kept_scan_extend(struct kept_scans *kept, struct kept_scan *scan, uint64_t keep_us,
			       bool implied, const struct patience *patience)
{
	uint64_t now_us = clock_now_us(), until_us = scan->until_us;
	struct error *err = NULL;

	if (now_us + keep_us <= until_us && (implied || !scan->implied))
		return NULL;
	keep_us = max(now_us + keep_us, until_us) - now_us;
	if (scan->has_graph)
		err = kept_ask_extend(kept->agent, scan->scan->id, keep_us, implied, patience);
	if (err && error_code(err) != ERROR_NOT_FOUND)
		return err;
	if (err)
		scan->has_graph = false;
	error_free(err);
	keep_for(scan, keep_us);
	if (!implied)
		scan->implied = false;
	return NULL;
}

struct error *kept_scans_extend(struct kept_scans *kept, const char *id, uint64_t keep_us,
				bool implied, const struct patience *patience)
{
	struct kept_scan *scan scoped(kept_scan_releasep) = NULL;
	struct error *err = kept_scans_find(kept, id, &scan);

	if (!err)
		err = kept_scan_extend(kept, scan, keep_us, implied, patience);
	if (!err && !scan->has_graph)
		err = no_graph(scan);
	return err;
}
