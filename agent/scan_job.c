#include "agent/scan_job.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#include "agent/audit.h"
#include "agent/helper.h"
#include "agent/supervise.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

enum {
	OVERVIEW_TIMEOUT_MS = 10000,
	/* A keeper that was told to let go and has not by then is stuck, and is killed. */
	LET_GO_MS = 5000,
	/* The same for one that is to collect, which may have to wait for a snapshot to end. */
	COLLECT_MS = 20000,
	/* Keepers that may die over one scan: the first, and those that are to collect. */
	KEEPERS_MAX = 4,
	WORKERS_MAX = 4,
	OVERVIEW_DECODER_MEMORY = 1 << 30,
};

struct scan_job {
	struct job job;
	struct helper keeper, decoder;
	struct event_timer timer; /* the request's time, then the time to let go */
	Goheapd__Scan *scan;      /* what was asked for; NULL: an overview */
	pid_t pid;
	uint64_t begun_us;
	unsigned keepers; /* started so far */

	/* Of the keeper. */
	Goheapd__FileKey executable;
	bool opened;
	bool stopping;                 /* the target may have been stopped since */
	Goheapd__Injection *injection; /* and forked, by this; NULL: not that */
	bool keeper_done;              /* the target is as it was */
	bool released;                 /* the decoder has read all it needs */
	uint64_t pause_us;
	Goheapd__Mode mode;

	/* Of the decoder: a scan or an overview, in the answer that it will be. */
	Goheapd__Answer *result;

	/* Why there will be no result, by who says so. */
	struct error *own_failure, *keeper_failure, *decoder_failure;
};

#define scan_of(pointer, member)                                                                   \
	((struct scan_job *)((char *)(pointer)-offsetof(struct scan_job, member)))

/* Lets everything go at once. Consumes err; the first reason counts. */
static void give_up(struct scan_job *scan, struct error *err)
{
	if (scan->own_failure)
		error_free(err);
	else
		scan->own_failure = err;
	helper_kill(&scan->decoder);
	helper_hang_up(&scan->keeper);
	event_timer_set(&scan->timer, LET_GO_MS);
}

/* ---- the answer ---- */

static void answer_result(struct scan_job *scan)
{
	if (scan->scan) {
		/* what only the agent knows: all stops, and the whole time */
		Goheapd__ScanInfo *info = scan->result->scan->scan;

		info->pause_us = scan->pause_us;
		info->mode = scan->mode;
		info->total_us = supervisor_now_us() - scan->begun_us;
	}
	job_answer(&scan->job, scan->result);
}

/* The keeper knows best why the decoder could not go on: the target has ended. */
static void answer_failure(struct scan_job *scan)
{
	struct error *err = take(scan->own_failure);

	if (!err)
		err = take(scan->keeper_failure);
	if (!err)
		err = take(scan->decoder_failure);
	if (!err)
		err = error_new(ERROR_SYSTEM, "the decoder has no result");
	job_fail(&scan->job, err);
}

/*
 * Answers as soon as the target is as it was and the decoder has said its last word; a keeper's
 * failure does not touch a decoder that had read all it needs.
 */
static void settle(struct scan_job *scan)
{
	bool decoding = helper_runs(&scan->decoder) && !scan->decoder_failure && !scan->result;

	if (!decoding && !scan->result)
		helper_hang_up(&scan->keeper);
	if (!scan->keeper_done)
		return;
	if (scan->result && !scan->own_failure && scan->job.reply)
		answer_result(scan);
	else if (scan->job.reply &&
		 (!decoding || scan->own_failure || (scan->keeper_failure && !scan->released)))
		answer_failure(scan);
	if (!scan->job.reply) {
		helper_kill(&scan->decoder);
		scan->job.target = 0;
	}
	if (!helper_runs(&scan->keeper) && !helper_runs(&scan->decoder))
		supervisor_remove(&scan->job);
}

/* ---- what the keeper says ---- */

static struct error *hear_opened(struct scan_job *scan, const Goheapd__KeeperOpened *opened)
{
	int fd scoped(closep) =
	    index_store_open(&scan->job.supervisor->indexes, opened->executable);
	Goheapd__DecoderOrder order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__IndexFile file = GOHEAPD__INDEX_FILE__INIT;

	if (scan->opened)
		return error_new(ERROR_FORMAT, "the target's files were opened twice");
	scan->opened = true;
	scan->executable = *opened->executable;
	file.key = &scan->executable;
	order.body_case = GOHEAPD__DECODER_ORDER__BODY_INDEX;
	order.index = &file;
	return helper_send(&scan->decoder, &order.base, &fd, fd < 0 ? 0 : 1);
}

/* A copy of a message that is about to be freed. */
static Goheapd__Injection *copy_injection(const Goheapd__Injection *injection)
{
	size_t size = goheapd__injection__get_packed_size(injection);
	uint8_t *bytes scoped(freep) = malloc(size + 1);

	if (!bytes)
		return NULL;
	goheapd__injection__pack(injection, bytes);
	return goheapd__injection__unpack(NULL, size, bytes);
}

static struct error *hear_stopping(struct scan_job *scan, const Goheapd__KeeperStopping *stopping)
{
	if (scan->stopping || !scan->scan)
		return error_new(ERROR_FORMAT, "a stop that was not asked for");
	scan->stopping = true;
	scan->mode = stopping->mode;
	if (!stopping->injection)
		return NULL;
	scan->injection = copy_injection(stopping->injection);
	return scan->injection ? NULL : &error_nomem;
}

static const char *outcome(const struct scan_job *scan)
{
	const struct error *err = scan->own_failure ? scan->own_failure : scan->keeper_failure;

	if (!err)
		err = scan->decoder_failure;
	return err ? error_message(err) : "ok";
}

/* The target stood still and runs again, as far as one can tell. */
static void note_stop(struct scan_job *scan)
{
	struct supervisor *supervisor = scan->job.supervisor;
	struct audit_stop stop = {
		.caller_uid = scan->scan->caller_uid,
		.pid = scan->pid,
		.start_ticks = scan->scan->start_ticks,
		.path = scan->scan->path,
		.mode = scan->mode,
		.pause_us = scan->pause_us,
		.outcome = outcome(scan),
	};

	audit_log_stop(&stop);
	/* without memory the next stop may come too early, which is no reason to fail this one */
	error_free(
	    floor_note(&supervisor->floor, stop.pid, stop.start_ticks, supervisor_now_us() / 1000));
}

static void keeper_is_done(struct scan_job *scan, struct error *failure)
{
	scan->keeper_done = true;
	scan->job.snapshot = 0;
	scan->keeper_failure = failure;
	if (scan->stopping)
		note_stop(scan);
}

/* Nobody will: the target keeps a dead child until its own end. */
static void note_leftover(const struct scan_job *scan, const char *reason)
{
	char escaped[1024];

	log_error("scan",
		  "what a scan left in a process could not be collected, the process runs on "
		  "pid=%d snapshot=%d err=\"%s\"",
		  (int)scan->pid, (int)scan->job.snapshot,
		  log_escape(reason, escaped, sizeof(escaped)));
}

static struct error *hear_done(struct scan_job *scan, const Goheapd__KeeperDone *done)
{
	struct error *failure = done->failure ? failure_make_error(done->failure) : NULL;

	if (scan->keeper_done) {
		error_free(failure);
		return error_new(ERROR_FORMAT, "the keeper was done twice");
	}
	if (scan->keepers == 1) {
		scan->pause_us = done->pause_us;
		scan->stopping = done->has_mode;
		scan->mode = done->mode;
		scan->released = done->released;
	} else if (failure) {
		note_leftover(scan, error_message(failure));
	}
	keeper_is_done(scan, failure);
	settle(scan);
	return NULL;
}

static struct error *hear_keeper(struct helper *helper, struct frame *frame)
{
	struct scan_job *scan = scan_of(helper, keeper);
	const Goheapd__KeeperEvent *event = (const Goheapd__KeeperEvent *)frame->message;

	switch (event->body_case) {
	case GOHEAPD__KEEPER_EVENT__BODY_OPENED:
		return hear_opened(scan, event->opened);
	case GOHEAPD__KEEPER_EVENT__BODY_STOPPING:
		return hear_stopping(scan, event->stopping);
	case GOHEAPD__KEEPER_EVENT__BODY_SNAPSHOT:
		scan->job.snapshot = (pid_t)event->snapshot->pid;
		return NULL;
	case GOHEAPD__KEEPER_EVENT__BODY_DONE:
		return hear_done(scan, event->done);
	default:
		return error_new(ERROR_FORMAT, "event %d of a scan", event->body_case);
	}
}

/* ---- a keeper that died ---- */

static const struct helper_kind scan_keeper;

/* A fresh keeper, to kill and collect what the one before has left in the target. */
static struct error *start_collector(struct scan_job *scan)
{
	Goheapd__KeeperOrder order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperCollect collect = GOHEAPD__KEEPER_COLLECT__INIT;
	struct error *err =
	    helper_start(&scan->keeper, &scan_keeper, scan->job.supervisor->loop, -1, 0);

	if (err)
		return err;
	scan->keepers++;
	scan->job.keeper = scan->keeper.child.pid;
	event_timer_set(&scan->timer, COLLECT_MS);
	collect.pid = (uint32_t)scan->pid;
	collect.start_ticks = scan->scan->start_ticks;
	collect.has_snapshot_pid = scan->job.snapshot != 0;
	collect.snapshot_pid = (uint32_t)scan->job.snapshot;
	collect.injection = scan->injection;
	order.body_case = GOHEAPD__KEEPER_ORDER__BODY_COLLECT;
	order.collect = &collect;
	return helper_send(&scan->keeper, &order.base, NULL, 0);
}

/* The kernel lets stopped threads go when their tracer dies; a snapshot is for us to collect. */
static void keeper_died(struct scan_job *scan)
{
	struct error *err;

	log_warning("scan", "a keeper died, the target runs on pid=%d keeper=%u snapshot=%d",
		    (int)scan->pid, scan->keepers, (int)scan->job.snapshot);
	give_up(scan, error_new(ERROR_SYSTEM, "the keeper died"));
	if (scan->injection) {
		err = scan->keepers < KEEPERS_MAX ? start_collector(scan)
						  : error_new(ERROR_SYSTEM, "every keeper died");
		if (!err)
			return;
		note_leftover(scan, error_message(err));
		error_free(err);
	}
	keeper_is_done(scan, NULL);
}

static void keeper_ended(struct helper *helper, int status)
{
	struct scan_job *scan = scan_of(helper, keeper);

	(void)status;
	scan->job.keeper = 0;
	if (!scan->keeper_done)
		keeper_died(scan);
	settle(scan);
}

static const struct helper_kind scan_keeper = {
	"keeper", &frame_keeper_order, &frame_keeper_event, { hear_keeper, keeper_ended }
};

/* ---- what the decoder says ---- */

/* An index is kept for next time; that it cannot be is no reason to fail. */
static struct error *hear_index(struct scan_job *scan, const Goheapd__IndexContent *index)
{
	struct error *err;

	if (!scan->opened || index->content.len > LIMIT_INDEX_BYTES)
		return error_new(ERROR_FORMAT, "an index of %zu bytes", index->content.len);
	err = index_store_write(&scan->job.supervisor->indexes, &scan->executable,
				index->content.data, index->content.len);
	if (err)
		log_warning("scan",
			    "an index could not be kept, the next scan makes it anew "
			    "err=\"%s\"",
			    error_message(err));
	error_free(err);
	return NULL;
}

/* The decoder is the one that may be taken over: it speaks of its own target or not at all. */
static bool is_of_target(const struct scan_job *scan, const Goheapd__Identity *identity)
{
	return identity->pid == (uint32_t)scan->pid;
}

static struct error *take_result(struct scan_job *scan, Goheapd__DecoderEvent *event)
{
	Goheapd__Answer *answer;

	if (scan->result || scan->decoder_failure)
		return error_new(ERROR_FORMAT, "a second result");
	answer = malloc(sizeof(*answer));
	if (!answer)
		return &error_nomem;
	goheapd__answer__init(answer);
	if (event->body_case == GOHEAPD__DECODER_EVENT__BODY_SCAN) {
		answer->body_case = GOHEAPD__ANSWER__BODY_SCAN;
		answer->scan = take(event->scan);
	} else {
		answer->body_case = GOHEAPD__ANSWER__BODY_OVERVIEW;
		answer->overview = take(event->overview);
	}
	event->body_case = GOHEAPD__DECODER_EVENT__BODY__NOT_SET;
	scan->result = answer;
	settle(scan);
	return NULL;
}

static struct error *hear_failure(struct scan_job *scan, const Goheapd__Failure *failure)
{
	if (scan->result || scan->decoder_failure)
		return error_new(ERROR_FORMAT, "a second result");
	scan->decoder_failure = failure_make_error(failure);
	settle(scan);
	return NULL;
}

static struct error *hear_decoder(struct helper *helper, struct frame *frame)
{
	struct scan_job *scan = scan_of(helper, decoder);
	Goheapd__DecoderEvent *event = (Goheapd__DecoderEvent *)frame->message;

	switch (event->body_case) {
	case GOHEAPD__DECODER_EVENT__BODY_INDEX:
		return hear_index(scan, event->index);
	case GOHEAPD__DECODER_EVENT__BODY_SCAN:
		if (scan->scan && is_of_target(scan, event->scan->identity))
			return take_result(scan, event);
		break;
	case GOHEAPD__DECODER_EVENT__BODY_OVERVIEW:
		if (!scan->scan && is_of_target(scan, event->overview->identity))
			return take_result(scan, event);
		break;
	case GOHEAPD__DECODER_EVENT__BODY_FAILURE:
		return hear_failure(scan, event->failure);
	default:
		break;
	}
	return error_new(ERROR_FORMAT, "event %d of a scan", event->body_case);
}

static struct error *describe_death(const struct helper *helper, int status)
{
	if (helper->distrusted)
		return error_new(ERROR_SYSTEM, "the decoder said what no decoder of ours says");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return error_new(ERROR_OUT_OF_MEMORY,
				 "the decoder was killed, most likely for lack of memory");
	if (WIFSIGNALED(status))
		return error_new(ERROR_SYSTEM, "the decoder died of signal %d", WTERMSIG(status));
	return error_new(ERROR_SYSTEM, "the decoder ended with status %d without a result",
			 WEXITSTATUS(status));
}

static void decoder_ended(struct helper *helper, int status)
{
	struct scan_job *scan = scan_of(helper, decoder);

	if (!scan->result && !scan->decoder_failure)
		scan->decoder_failure = describe_death(helper, status);
	settle(scan);
}

static const struct helper_kind scan_decoder = {
	"decoder", &frame_decoder_order, &frame_decoder_event, { hear_decoder, decoder_ended }
};

/* ---- time ---- */

static void time_is_up(struct event_timer *timer)
{
	struct scan_job *scan = scan_of(timer, timer);

	if (scan->own_failure) {
		/* told to let go, and did not */
		helper_kill(&scan->keeper);
		return;
	}
	give_up(scan,
		error_new(ERROR_TIMEOUT, "process %d was not scanned in time", (int)scan->pid));
}

static void scan_stop(struct job *job)
{
	give_up(scan_of(job, job), error_new(ERROR_AGENT_UNAVAILABLE, "the scan was given up"));
}

/* ---- its beginning ---- */

static void scan_free(struct job *job)
{
	struct scan_job *scan = scan_of(job, job);

	helper_fini(&scan->keeper);
	helper_fini(&scan->decoder);
	event_timer_fini(&scan->timer);
	goheapd__scan__free_unpacked(scan->scan, NULL);
	goheapd__injection__free_unpacked(scan->injection, NULL);
	goheapd__answer__free_unpacked(scan->result, NULL);
	error_free(scan->own_failure);
	error_free(scan->keeper_failure);
	error_free(scan->decoder_failure);
	free(scan);
}

static const struct job_ops scan_ops = { "scan", scan_stop, scan_free };
static const struct job_ops overview_ops = { "overview", scan_stop, scan_free };

static struct error *start_helpers(struct scan_job *scan, uint64_t memory_limit)
{
	struct event_loop *loop = scan->job.supervisor->loop;
	int keeper_side scoped(closep) = -1, decoder_side scoped(closep) = -1;
	int sockets[2];
	struct error *err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return error_system(errno, "socketpair");
	keeper_side = sockets[0];
	decoder_side = sockets[1];
	err = event_timer_init(&scan->timer, loop, time_is_up);
	if (!err)
		err = helper_start(&scan->decoder, &scan_decoder, loop, decoder_side, memory_limit);
	if (!err)
		err = helper_start(&scan->keeper, &scan_keeper, loop, keeper_side, 0);
	scan->keepers = 1;
	scan->job.keeper = scan->keeper.child.pid;
	return err;
}

static struct error *send_scan(struct scan_job *scan, uint64_t memory_limit)
{
	const Goheapd__Scan *request = scan->scan;
	Goheapd__DecoderOrder decoder_order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__DecodeScan decode = GOHEAPD__DECODE_SCAN__INIT;
	Goheapd__KeeperOrder keeper_order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperScan keep = GOHEAPD__KEEPER_SCAN__INIT;
	int cpus = get_nprocs();
	struct error *err;

	decode.depth = request->depth;
	decode.want_memory = request->want_memory;
	decode.want_goroutines = request->want_goroutines;
	decode.want_dead_goroutines = request->want_dead_goroutines;
	decode.want_mappings = request->want_mappings;
	decode.workers = (uint32_t)(cpus < WORKERS_MAX ? cpus : WORKERS_MAX);
	decode.memory_limit = memory_limit;
	decoder_order.body_case = GOHEAPD__DECODER_ORDER__BODY_SCAN;
	decoder_order.scan = &decode;
	err = helper_send(&scan->decoder, &decoder_order.base, NULL, 0);
	if (err)
		return err;
	keep.pid = request->pid;
	keep.start_ticks = request->start_ticks;
	keep.mode = request->mode;
	keep.max_pause_us = request->max_pause_us;
	keeper_order.body_case = GOHEAPD__KEEPER_ORDER__BODY_SCAN;
	keeper_order.scan = &keep;
	return helper_send(&scan->keeper, &keeper_order.base, NULL, 0);
}

static struct error *send_overview(struct scan_job *scan, const Goheapd__Overview *request)
{
	Goheapd__DecoderOrder decoder_order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__DecodeOverview decode = GOHEAPD__DECODE_OVERVIEW__INIT;
	Goheapd__KeeperOrder keeper_order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperObserve observe = GOHEAPD__KEEPER_OBSERVE__INIT;
	struct error *err;

	decoder_order.body_case = GOHEAPD__DECODER_ORDER__BODY_OVERVIEW;
	decoder_order.overview = &decode;
	err = helper_send(&scan->decoder, &decoder_order.base, NULL, 0);
	if (err)
		return err;
	observe.pid = request->pid;
	observe.start_ticks = request->start_ticks;
	keeper_order.body_case = GOHEAPD__KEEPER_ORDER__BODY_OBSERVE;
	keeper_order.observe = &observe;
	return helper_send(&scan->keeper, &keeper_order.base, NULL, 0);
}

static struct scan_job *scan_new(struct supervisor *supervisor, struct reply *reply,
				 const struct job_ops *ops)
{
	struct scan_job *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return NULL;
	scan->job = (struct job){ .supervisor = supervisor, .ops = ops, .reply = reply };
	scan->job.is_scan = ops == &scan_ops;
	scan->timer.source.fd = -1;
	scan->timer.loop = supervisor->loop;
	scan->begun_us = supervisor_now_us();
	return scan;
}

/* Takes the job into the list, or frees it after an error. */
static struct error *enter(struct scan_job *scan, struct error *err, struct job **ret)
{
	if (err) {
		scan_free(&scan->job);
		return err;
	}
	supervisor_add(scan->job.supervisor, &scan->job);
	*ret = &scan->job;
	return NULL;
}

static Goheapd__Scan *copy_request(const Goheapd__Scan *request)
{
	size_t size = goheapd__scan__get_packed_size(request);
	uint8_t *bytes scoped(freep) = malloc(size + 1);

	if (!bytes)
		return NULL;
	goheapd__scan__pack(request, bytes);
	return goheapd__scan__unpack(NULL, size, bytes);
}

struct error *scan_job_start(struct supervisor *supervisor, const Goheapd__Scan *request,
			     struct reply *reply, struct job **ret)
{
	struct scan_job *scan = scan_new(supervisor, reply, &scan_ops);
	uint64_t memory_limit = supervisor->config.max_scan_memory;
	struct error *err;

	if (!scan)
		return &error_nomem;
	scan->pid = scan->job.target = (pid_t)request->pid;
	scan->scan = copy_request(request);
	err = scan->scan ? start_helpers(scan, memory_limit) : &error_nomem;
	if (!err)
		err = send_scan(scan, memory_limit);
	if (!err)
		event_timer_set(&scan->timer, request->timeout_ms);
	return enter(scan, err, ret);
}

struct error *scan_job_start_overview(struct supervisor *supervisor,
				      const Goheapd__Overview *request, struct reply *reply,
				      struct job **ret)
{
	struct scan_job *scan = scan_new(supervisor, reply, &overview_ops);
	struct error *err;

	if (!scan)
		return &error_nomem;
	scan->pid = (pid_t)request->pid;
	err = start_helpers(scan, OVERVIEW_DECODER_MEMORY);
	if (!err)
		err = send_overview(scan, request);
	if (!err)
		event_timer_set(&scan->timer, OVERVIEW_TIMEOUT_MS);
	return enter(scan, err, ret);
}
