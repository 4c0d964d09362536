#include <stdlib.h>

#include "agent/audit.h"
#include "agent/scan_state.h"
#include "agent/supervise.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

enum {
	/* Keepers that may die over one scan: the first, and those that are to collect. */
	KEEPERS_MAX = 4,
	/* One that collects may have to wait for a snapshot to end. */
	COLLECT_MS = 20000,
};

/* ---- what the keeper says ---- */

static struct error *hear_opened(struct scan_job *scan, const Goheapd__KeeperOpened *opened)
{
	int fd scoped(closep) =
	    index_store_open(&scan->job.supervisor->indexes, INDEX_LAYOUT, opened->executable);
	Goheapd__DecoderOrder order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__IndexFile file = GOHEAPD__INDEX_FILE__INIT;

	if (scan->opened)
		return error_new(ERROR_FORMAT, "the target's files were opened twice");
	scan->opened = true;
	scan->executable = *opened->executable;
	file.key = &scan->executable;
	order.body_case = GOHEAPD__DECODER_ORDER__BODY_INDEX;
	order.index = &file;
	return helper_send(scan->decoder, &order.base, &fd, fd < 0 ? 0 : 1);
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
	scan->prepare_us = supervisor_now_us() - scan->begun_us;
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
		.start_ticks = scan->start_ticks,
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
	scan_settle(scan);
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

/* A fresh keeper, to kill and collect what the one before has left in the target. */
static struct error *start_collector(struct scan_job *scan)
{
	Goheapd__KeeperOrder order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperCollect collect = GOHEAPD__KEEPER_COLLECT__INIT;
	Goheapd__CloneAllowed allowed = scan_clone_allowed(scan);
	struct error *err =
	    helper_start(&scan->keeper, &scan_keeper_kind, scan->job.supervisor->loop, -1, 0);

	if (err)
		return err;
	scan->keepers++;
	scan->job.keeper = scan->keeper.child.pid;
	event_timer_set(&scan->timer, COLLECT_MS);
	collect.pid = (uint32_t)scan->pid;
	collect.start_ticks = scan->start_ticks;
	collect.has_snapshot_pid = scan->job.snapshot != 0;
	collect.snapshot_pid = (uint32_t)scan->job.snapshot;
	collect.injection = scan->injection;
	collect.clone_allowed = &allowed;
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
	scan_give_up(scan, error_new(ERROR_SYSTEM, "the keeper died"));
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
	scan_settle(scan);
}

const struct helper_kind scan_keeper_kind = {
	"keeper", &frame_keeper_order, &frame_keeper_event, { hear_keeper, keeper_ended }
};
