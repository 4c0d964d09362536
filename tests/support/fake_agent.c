/*
 * An agent without a target, for tests of the daemon and of goheap: it answers every request with
 * canned messages, or with the failure that the pid asks for. goheapd --agent starts it like the
 * real one.
 *
 *   4242          the canned process "checkout", of the agent's own user
 *   4243          another one of that name
 *   4244          "mine", of the user and group in FAKE_AGENT_UID, else the agent's own
 *   4250 + N      a process whose scan fails with failure code N
 *   4290          a process whose scan waits until it is cancelled
 *   4291          a process whose scan makes the agent die
 *   4292          a process whose scan takes a second
 *   4293          a process whose overview lacks every optional field
 *   4294          a process with more reference chains than a profile may have
 *   4295          a process in which each scan finds 120 more sessions, half a minute later
 *
 * Scans are kept as long as they are wanted, their graphs until they are dropped.
 *
 * Whoever selects by tenant=acme gets some goroutines, anybody else none.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/wire/failure.h"
#include "proto/wire/frame.h"
#include "tests/support/canned.h"
#include "tests/support/canned_labels.h"
#include "tests/support/canned_objects.h"
#include "tests/support/canned_profile.h"

enum {
	PID_MINE = 4244,
	PID_FAILURES = 4250,
	PID_FAILURES_END = PID_FAILURES + 27,
	PID_WAITS = 4290,
	PID_DIES = 4291,
	PID_SLOW = 4292,
	PID_BARE = 4293,
	PID_HUGE = 4294,
	PID_GROWS = 4295,
	SLOW_MS = 1000,
};

static int connection;
/* Scans whose graphs are kept; beyond so many the oldest goes. */
enum { KEPT_MAX = 32 };
static struct kept {
	char id[64];
	uint32_t pid;
	uint64_t until_ns;
	unsigned growth;
} kept_scans[KEPT_MAX];
static unsigned kept_count;
/* The scan that waits, of which there is one at a time. */
static uint32_t waiting_id;
/* The scan that takes its time, also one; its id is 0 while there is none. */
static struct {
	uint32_t id;
	Goheapd__Scan scan;
	int64_t due_ms;
} slow;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void send_answer(Goheapd__Answer *answer, uint32_t id)
{
	struct error *err;

	answer->id = id;
	err = frame_send(connection, &frame_answer, &answer->base, NULL, 0);
	if (err)
		exit(1);
}

static void send_failure(uint32_t id, Goheapd__FailureCode code, const char *message)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__Failure failure = GOHEAPD__FAILURE__INIT;

	failure.code = code;
	failure.message.data = (uint8_t *)(uintptr_t)message;
	failure.message.len = strlen(message);
	failure.has_retry_after_ms = code == GOHEAPD__FAILURE_CODE__FAILURE_BUSY;
	failure.retry_after_ms = 2500;
	answer.body_case = GOHEAPD__ANSWER__BODY_FAILURE;
	answer.failure = &failure;
	send_answer(&answer, id);
}

static Goheapd__Process make_process(uint32_t pid)
{
	const char *uid = getenv("FAKE_AGENT_UID");
	Goheapd__Process process = canned_process();

	process.pid = pid;
	if (pid == PID_MINE) {
		process.comm.data = (uint8_t *)(uintptr_t) "mine";
		process.comm.len = 4;
	} else if (pid == PID_BARE) {
		process = (Goheapd__Process)GOHEAPD__PROCESS__INIT;
		process.pid = pid;
		process.access = canned_process().access;
		process.has_reason = true;
		process.reason.data = (uint8_t *)(uintptr_t) "it is bare";
		process.reason.len = 10;
	}
	process.uid = pid == PID_MINE && uid ? (uint32_t)atoi(uid) : getuid();
	process.access->uids[0] = process.uid;
	process.access->gids[0] = pid == PID_MINE && uid ? process.uid : getgid();
	return process;
}

static bool exists(uint32_t pid)
{
	return pid == CANNED_PID || pid == CANNED_NAMESAKE || pid == PID_MINE ||
	       (pid >= PID_FAILURES && pid < PID_FAILURES_END) ||
	       (pid >= PID_WAITS && pid <= PID_GROWS);
}

static void answer_hello(const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__HelloAnswer hello = GOHEAPD__HELLO_ANSWER__INIT;

	hello.protocol = WIRE_PROTOCOL;
	hello.version = "fake";
	answer.body_case = GOHEAPD__ANSWER__BODY_HELLO;
	answer.hello = &hello;
	send_answer(&answer, request->id);
}

/* Each process needs an access of its own: make_process has one for all. */
static void answer_list(const Goheapd__Request *request)
{
	static const uint32_t pids[] = { PID_MINE, CANNED_NAMESAKE, CANNED_PID, PID_BARE };
	enum { COUNT = sizeof(pids) / sizeof(*pids) };
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__ProcessList list = GOHEAPD__PROCESS_LIST__INIT;
	Goheapd__Process processes[COUNT], *pointers[COUNT];
	Goheapd__Access accesses[COUNT];
	uint32_t uids[COUNT], gids[COUNT];

	for (int i = 0; i < COUNT; i++) {
		processes[i] = make_process(pids[i]);
		accesses[i] = *processes[i].access;
		uids[i] = accesses[i].uids[0];
		gids[i] = accesses[i].gids[0];
		accesses[i].uids = &uids[i];
		accesses[i].gids = &gids[i];
		processes[i].access = &accesses[i];
		pointers[i] = &processes[i];
	}
	list.n_processes = COUNT;
	list.processes = pointers;
	answer.body_case = GOHEAPD__ANSWER__BODY_PROCESS_LIST;
	answer.process_list = &list;
	send_answer(&answer, request->id);
}

static void answer_look(const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__Process process;

	if (!exists(request->look_process->pid)) {
		send_failure(request->id, GOHEAPD__FAILURE_CODE__FAILURE_NO_SUCH_PROCESS,
			     "there is no such process");
		return;
	}
	process = make_process(request->look_process->pid);
	answer.body_case = GOHEAPD__ANSWER__BODY_PROCESS;
	answer.process = &process;
	send_answer(&answer, request->id);
}

/* What may be absent is absent. */
static Goheapd__OverviewResult *bare_overview(Goheapd__OverviewResult *full)
{
	static Goheapd__OverviewResult bare = GOHEAPD__OVERVIEW_RESULT__INIT;
	static Goheapd__GcState gc = GOHEAPD__GC_STATE__INIT;
	static Goheapd__RuntimeMemory memory = GOHEAPD__RUNTIME_MEMORY__INIT;
	static Goheapd__Build build = GOHEAPD__BUILD__INIT;

	bare.identity = full->identity;
	bare.identity->build = &build;
	bare.gc = &gc;
	bare.memory = &memory;
	bare.detail = full->detail;
	bare.detail->has_missing = false;
	bare.cost = full->cost;
	bare.cost->has_why = false;
	return &bare;
}

static void answer_overview(const Goheapd__Request *request)
{
	uint32_t pid = request->overview->pid;
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;

	answer.body_case = GOHEAPD__ANSWER__BODY_OVERVIEW;
	answer.overview = canned_overview();
	answer.overview->identity->pid = pid;
	if (pid == PID_BARE)
		answer.overview = bare_overview(answer.overview);
	send_answer(&answer, request->id);
}

/* A census does not divide what is allocated. */
static void make_census(Goheapd__ScanResult *result)
{
	Goheapd__MemoryNode *heap = result->memory->children[4];
	Goheapd__MemoryNode *alloc = heap->children[0]->children[0];

	alloc->n_children = 0;
	result->scan->depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	result->heap->has_live_bytes = result->heap->has_live_objects =
	    result->heap->has_finalizable_bytes = result->heap->has_finalizable_objects =
		result->heap->has_garbage_bytes = result->heap->has_garbage_objects = false;
	result->scan->trust->has_conservative_only_bytes = result->scan->trust->has_free_slot_hits =
	    result->scan->trust->has_system_stack_only_bytes = false;
}

static bool is_bytes(ProtobufCBinaryData bytes, const char *text)
{
	return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

static bool selects_acme(const Goheapd__Scan *scan)
{
	for (size_t i = 0; i < scan->n_select; i++) {
		if (!is_bytes(scan->select[i]->key, "tenant") ||
		    !is_bytes(scan->select[i]->value, "acme"))
			return false;
	}
	return true;
}

static void answer_labels(Goheapd__ScanResult *result, const Goheapd__Scan *scan)
{
	if (!scan->want_labels) {
		result->labels = NULL;
		return;
	}
	if (scan->n_select)
		canned_select(result->labels, selects_acme(scan) ? 212 : 0);
	if (scan->has_group_by)
		canned_group(result->labels);
	if (scan->want_label_detail)
		canned_detail();
	if (scan->depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		canned_label_census(result->labels);
}

static void answer_profile(Goheapd__ScanResult *result, const Goheapd__Scan *scan, unsigned growth)
{
	if (scan->pid == PID_HUGE) {
		result->profile = canned_huge_profile(40000, 2);
		result->heap->live_bytes = result->profile->bytes;
		result->heap->live_objects = result->profile->objects;
	} else {
		result->profile = canned_profile(result->heap, scan->analysis->profile, growth);
	}
}

/* By so many sessions, 120 in half a minute. */
static void grow(Goheapd__ScanResult *result, unsigned growth)
{
	result->scan->started_at_ns += (uint64_t)growth / 120 * 30000000000;
	result->heap->live_bytes += (uint64_t)growth * 96;
	result->heap->live_objects += growth;
	if (result->labels)
		canned_label_growth(result->labels, growth);
}

static void answer_histogram(Goheapd__ScanResult *result, const Goheapd__HistogramQuery *query)
{
	canned_histogram(result);
	for (size_t i = 0; i < result->histogram->n_types; i++)
		result->histogram->types[i]->has_retained_bytes = query->retained;
}

/* The object is wherever it is looked for. */
static void answer_object(Goheapd__ScanResult *result, const Goheapd__ObjectQuery *query)
{
	canned_object(result);
	result->object->address = query->address;
	for (size_t i = 0; i < result->object->n_fields; i++)
		result->object->fields[i]->has_text &= query->contents;
}

/* Of each list there are two pages, the second of which is empty. */
static void answer_pages(Goheapd__ScanResult *result, const Goheapd__Analysis *analysis)
{
	if (analysis->objects) {
		canned_objects(result);
		result->objects->has_next_after = !analysis->objects->has_after;
		result->objects->n_objects *= !analysis->objects->has_after;
	}
	if (analysis->dominators) {
		canned_dominators(result);
		result->dominators->has_next_node = !analysis->dominators->has_after_node;
		result->dominators->n_nodes *= !analysis->dominators->has_after_node;
	}
}

static void answer_analysis(Goheapd__ScanResult *result, const Goheapd__Scan *scan, unsigned growth)
{
	const Goheapd__Analysis *analysis = scan->analysis;

	if (analysis->profile)
		answer_profile(result, scan, growth);
	if (analysis->histogram && analysis->profile)
		result->histogram = canned_types(result->heap, growth); /* to compare */
	else if (analysis->histogram)
		answer_histogram(result, analysis->histogram);
	if (analysis->object)
		answer_object(result, analysis->object);
	for (size_t i = 0; analysis->goroutine_retained && i < result->n_goroutines; i++) {
		result->goroutines[i]->has_retained_bytes = true;
		result->goroutines[i]->retained_bytes = 4096 * (i + 1);
	}
	answer_pages(result, analysis);
}

static uint64_t until_ns(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ms * 1000000;
}

static void drop_kept(struct kept *kept)
{
	memmove(kept, kept + 1, (size_t)(kept_scans + --kept_count - kept) * sizeof(*kept));
}

static void keep(const Goheapd__Scan *scan, Goheapd__ScanResult *result, unsigned growth)
{
	struct kept *kept;

	result->has_kept_until_ns = scan->keep != NULL;
	if (!scan->keep)
		return;
	if (kept_count == KEPT_MAX)
		drop_kept(kept_scans);
	kept = &kept_scans[kept_count++];
	snprintf(kept->id, sizeof(kept->id), "%.*s", (int)scan->keep->id.len,
		 (const char *)scan->keep->id.data);
	kept->pid = scan->pid;
	kept->growth = growth;
	kept->until_ns = result->kept_until_ns = until_ns(scan->keep->ms);
}

static void answer_list_kept(const Goheapd__Request *request)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__KeptScans list = GOHEAPD__KEPT_SCANS__INIT;
	Goheapd__KeptScan scans[KEPT_MAX], *pointers[KEPT_MAX];

	for (unsigned i = 0; i < kept_count; i++) {
		goheapd__kept_scan__init(&scans[i]);
		scans[i].id.data = (uint8_t *)kept_scans[i].id;
		scans[i].id.len = strlen(kept_scans[i].id);
		scans[i].until_ns = kept_scans[i].until_ns;
		pointers[i] = &scans[i];
	}
	list.n_scans = kept_count;
	list.scans = pointers;
	answer.body_case = GOHEAPD__ANSWER__BODY_KEPT_SCANS;
	answer.kept_scans = &list;
	send_answer(&answer, request->id);
}

static void send_scan(uint32_t id, const Goheapd__Scan *scan, unsigned growth)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__ScanResult *result = canned_scan();

	result->identity->pid = scan->pid;
	result->scan->mode =
	    scan->mode == GOHEAPD__MODE__MODE_AUTO ? GOHEAPD__MODE__MODE_FORK : scan->mode;
	result->scan->depth = GOHEAPD__DEPTH__DEPTH_FULL;
	if (scan->depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		make_census(result);
	if (!scan->want_memory)
		result->memory = NULL;
	if (!scan->want_goroutines)
		result->n_goroutines = 0;
	else if (!scan->want_dead_goroutines)
		result->n_goroutines--;
	if (!scan->want_mappings)
		result->n_mappings = 0;
	answer_labels(result, scan);
	if (growth)
		grow(result, growth);
	if (scan->analysis)
		answer_analysis(result, scan, growth);
	keep(scan, result, growth);
	answer.body_case = GOHEAPD__ANSWER__BODY_SCAN;
	answer.scan = result;
	send_answer(&answer, id);
}

/* What was asked of labels, with sizes for long strings. */
static void log_labels(const Goheapd__Scan *scan)
{
	fprintf(stderr, "fake: labels want=%d detail=%d by=%.*s", scan->want_labels,
		scan->want_label_detail, (int)scan->group_by.len,
		scan->group_by.len ? (const char *)scan->group_by.data : "");
	for (size_t i = 0; i < scan->n_select; i++)
		fprintf(stderr, " %.*s=%zu bytes", (int)scan->select[i]->key.len,
			(const char *)scan->select[i]->key.data, scan->select[i]->value.len);
	fprintf(stderr, "\n");
}

static void answer_scan(const Goheapd__Request *request)
{
	static unsigned growth; /* of the one that grows with each scan */
	const Goheapd__Scan *scan = request->scan;

	fprintf(stderr, "fake: scan pid=%u mode=%d depth=%d pause=%lu uid=%u path=%.*s\n",
		scan->pid, scan->mode, scan->depth, (unsigned long)scan->max_pause_us,
		scan->caller_uid, (int)scan->path.len, (const char *)scan->path.data);
	log_labels(scan);
	if (scan->pid >= PID_FAILURES && scan->pid < PID_FAILURES_END) {
		send_failure(request->id, (Goheapd__FailureCode)(scan->pid - PID_FAILURES),
			     "the target said no");
	} else if (scan->pid == PID_WAITS) {
		waiting_id = request->id;
	} else if (scan->pid == PID_DIES) {
		raise(SIGKILL);
	} else if (scan->pid == PID_SLOW) {
		slow.id = request->id;
		slow.scan = *scan; /* of whose bytes nothing is used */
		slow.scan.n_select = 0;
		slow.scan.analysis = NULL;
		slow.due_ms = now_ms() + SLOW_MS;
	} else {
		growth += scan->pid == PID_GROWS ? 120 : 0;
		send_scan(request->id, scan, scan->pid == PID_GROWS ? growth : 0);
	}
}

/* Asked for everything else, a graph answers with nothing but the parts that are asked for. */
static void answer_ask(const Goheapd__Request *request)
{
	const Goheapd__Ask *ask = request->ask;
	Goheapd__Scan scan = GOHEAPD__SCAN__INIT;
	struct kept *kept = kept_scans;

	while (kept < kept_scans + kept_count && !is_bytes(ask->id, kept->id))
		kept++;
	fprintf(stderr, "fake: ask id=%.*s drop=%d keep=%lu\n", (int)ask->id.len,
		(const char *)ask->id.data, ask->drop, (unsigned long)ask->keep_ms);
	if (kept == kept_scans + kept_count) {
		send_failure(request->id, GOHEAPD__FAILURE_CODE__FAILURE_NOT_FOUND, "no such scan");
		return;
	}
	if (ask->drop)
		drop_kept(kept);
	else if (ask->has_keep_ms)
		kept->until_ns = until_ns(ask->keep_ms);
	if (ask->drop || ask->has_keep_ms) {
		answer_list_kept(request);
		return;
	}
	scan.pid = kept->pid;
	scan.analysis = ask->analysis;
	send_scan(request->id, &scan, kept->growth);
}

static void answer_cancel(const Goheapd__Request *request)
{
	if (request->cancel->request != waiting_id || !waiting_id)
		return;
	fprintf(stderr, "fake: cancelled\n");
	send_failure(waiting_id, GOHEAPD__FAILURE_CODE__FAILURE_TIMEOUT, "cancelled");
	waiting_id = 0;
}

static void answer(const Goheapd__Request *request)
{
	switch (request->body_case) {
	case GOHEAPD__REQUEST__BODY_HELLO:
		answer_hello(request);
		break;
	case GOHEAPD__REQUEST__BODY_LIST_PROCESSES:
		answer_list(request);
		break;
	case GOHEAPD__REQUEST__BODY_LOOK_PROCESS:
		answer_look(request);
		break;
	case GOHEAPD__REQUEST__BODY_OVERVIEW:
		answer_overview(request);
		break;
	case GOHEAPD__REQUEST__BODY_SCAN:
		answer_scan(request);
		break;
	case GOHEAPD__REQUEST__BODY_ASK:
		answer_ask(request);
		break;
	case GOHEAPD__REQUEST__BODY_LIST_KEPT:
		answer_list_kept(request);
		break;
	case GOHEAPD__REQUEST__BODY_CANCEL:
		answer_cancel(request);
		break;
	default:
		exit(1);
	}
}

/* Waits for a request, and meanwhile ends the slow scan in time. */
static void wait_for_request(void)
{
	struct pollfd readable = { .fd = connection, .events = POLLIN };

	while (slow.id) {
		int64_t left_ms = slow.due_ms - now_ms();

		if (left_ms > 0 && poll(&readable, 1, (int)left_ms) > 0)
			return;
		if (left_ms <= 0) {
			send_scan(slow.id, &slow.scan, 0);
			slow.id = 0;
		}
	}
}

static void serve(void)
{
	struct frame_reader reader;

	frame_reader_init(&reader, connection, &frame_request);
	for (;;) {
		struct frame frame = { 0 };
		enum frame_state state;
		struct error *err;

		wait_for_request();
		err = frame_read(&reader, &frame, &state);
		if (err || state == FRAME_END)
			break;
		answer((const Goheapd__Request *)frame.message);
		frame_fini(&frame);
	}
	frame_reader_fini(&reader);
}

/* Takes the real agent's options, and uses one of them. */
int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket-fd", required_argument, NULL, 's' },
		{ "config", required_argument, NULL, 'x' },
		{ "run-dir", required_argument, NULL, 'x' },
		{ "cache-dir", required_argument, NULL, 'x' },
		{ "max-scan-memory", required_argument, NULL, 'x' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			connection = atoi(optarg);
		else if (option == '?')
			return 2;
	}
	serve();
	return 0;
}
