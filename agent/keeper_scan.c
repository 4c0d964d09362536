/*
 * One scan from the keeper's side:
 *
 *     find ─ open ─ wait for the plan ─ stop ─ check ─ settle ─┬─ fork: clone, resume, hand over,
 *                                                              │  wait for release, collect
 *                                                              └─ stop: hand over, wait for
 *                                                                 release, resume
 *
 * Everything that takes something from the target is an object whose _free gives it back, so
 * leaving by any way leaves the target as it was.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/keeper_plan.h"
#include "agent/keeper_search.h"
#include "agent/keeper_stopped.h"
#include "agent/keeper_watch.h"
#include "agent/target/fork_safety.h"
#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/snapshot.h"
#include "agent/target/threads.h"
#include "agent/target/tracee.h"
#include "proto/base/log.h"

enum {
	SETTLE_ROUNDS = 16,
	FORK_ATTEMPTS = 20,
	COLLECT_ATTEMPTS = 10,
	COLLECT_REST_NS = 20000000, /* doubled from time to time */
	COLLECT_REST_NS_MAX = 500000000,
	WARNING_SIZE = FORK_SAFETY_REASON_SIZE + 64,
};

struct scan {
	struct keeper *keeper;
	const Goheapd__KeeperScan *order;
	struct process *process;
	struct fork_safety_policy policy;
	struct fork_safety safety;
	struct frame plan_frame;
	struct keeper_plan plan;
	struct injector *injector; /* NULL: no call can be injected, and why */
	char no_injector[FORK_SAFETY_REASON_SIZE];
	struct keeper_watch watch;
	int pidfd, mem_fd;
	bool told_to_let_go;

	bool fork;
	char warning[WARNING_SIZE]; /* why a scan in mode auto does not fork; "" if it does */
	struct threads *threads;
	struct snapshot *snapshot;
	Goheapd__TargetStopped *stopped;
	uint64_t stopped_at_ns;
};

static void scan_fini(struct scan *scan)
{
	snapshot_free(scan->snapshot);
	threads_free(scan->threads);
	keeper_stopped_free(scan->stopped);
	injector_free(scan->injector);
	keeper_plan_fini(&scan->plan);
	frame_fini(&scan->plan_frame);
	closep(&scan->mem_fd);
	closep(&scan->pidfd);
	process_free(scan->process);
}

/* ---- before the stop ---- */

/* The agent or the decoder does not want it any more, which is no failure of ours. */
static bool goes_on(const struct scan *scan, const struct error *err)
{
	return !err && !scan->told_to_let_go;
}

static struct error *open_target(struct scan *scan)
{
	const Goheapd__KeeperScan *order = scan->order;
	const struct keeper_target target = { order->pid, order->start_ticks,
					      order->clone_allowed };
	const struct keeper_forecast forecast = { .mode = order->mode, .reason = "" };
	struct error *err = keeper_find(scan->keeper, &target, &scan->process);

	if (!err)
		err = process_open_pidfd(scan->process->pid, &scan->pidfd);
	if (!err)
		err = process_open(scan->process, "mem", O_RDONLY, &scan->mem_fd);
	if (err && error_code(err) == ERROR_DENIED) {
		error_free(err);
		return process_denied(scan->process);
	}
	if (err)
		return err;
	scan->watch.target_pidfd = scan->pidfd;
	scan->watch.target_mem_fd = scan->mem_fd;
	return keeper_open(scan->keeper, scan->process, &forecast);
}

/*
 * What does not change soon. It takes its time where there is much memory: the decoder has
 * something to do meanwhile.
 */
static void prepare_judgement(struct scan *scan)
{
	struct error *err = frame_queue_flush(&scan->keeper->to_decoder);

	/* a decoder that is gone is noticed when its plan is waited for */
	error_free(err);
	scan->policy = (struct fork_safety_policy){
		.can_suspend_filters =
		    scan->process->seccomp_filter && tracee_can_suspend_filters(),
		.huge_page_bytes = fork_safety_huge_page_bytes(scan->process),
	};
}

static struct error *pause_exceeded(const struct scan *scan)
{
	return error_new(ERROR_PAUSE_EXCEEDED,
			 "the process would have stayed stopped longer than %.3g s (max_pause)",
			 (double)scan->order->max_pause_us / 1e6);
}

/* Waits for a message of the decoder's. */
static struct error *wait_for_message(struct scan *scan, struct frame *ret)
{
	enum keeper_wake wake;
	struct error *err = keeper_wait(&scan->watch, ret, &wake);

	if (err)
		return err;
	if (wake == KEEPER_DEADLINE)
		return pause_exceeded(scan);
	if (wake == KEEPER_LET_GO) {
		scan->told_to_let_go = true;
		return NULL;
	}
	return NULL;
}

static Goheapd__PlanEvent__BodyCase body_of(const struct frame *frame)
{
	return ((const Goheapd__PlanEvent *)frame->message)->body_case;
}

/* Leaves the one message that may come now. */
static struct error *check_body(struct frame *frame, Goheapd__PlanEvent__BodyCase body)
{
	struct error *err;

	if (body_of(frame) == body)
		return NULL;
	err =
	    error_new(ERROR_FORMAT, "message %d of the decoder's may not come now", body_of(frame));
	frame_fini(frame);
	return err;
}

static struct error *wait_for(struct scan *scan, Goheapd__PlanEvent__BodyCase body,
			      struct frame *ret)
{
	struct error *err = wait_for_message(scan, ret);

	return goes_on(scan, err) ? check_body(ret, body) : err;
}

static const Goheapd__Plan *plan_message(const struct scan *scan)
{
	return ((const Goheapd__PlanEvent *)scan->plan_frame.message)->plan;
}

/* The decoder may ask for files first, once for each kind. */
static struct error *receive_plan(struct scan *scan)
{
	struct keeper_searches searches = { scan->keeper, scan->process, scan->order->debug_dir,
					    false, false };
	struct frame frame;
	bool answered = true;
	struct error *err = NULL;

	while (goes_on(scan, err) && answered) {
		err = wait_for_message(scan, &frame);
		if (goes_on(scan, err))
			err = keeper_search(&searches, &frame, &answered);
	}
	if (goes_on(scan, err))
		err = check_body(&frame, GOHEAPD__PLAN_EVENT__BODY_PLAN);
	if (!goes_on(scan, err))
		return err;
	scan->plan_frame = frame;
	return keeper_plan_take(&scan->plan, plan_message(scan));
}

/* Checks what the decoder found against the target; that it does not fit is no failure yet. */
static struct error *prepare_injection(struct scan *scan)
{
	struct error *err;

	if (scan->order->mode == GOHEAPD__MODE__MODE_STOP)
		return NULL;
	if (!scan->plan.has_injection) {
		snprintf(scan->no_injector, sizeof(scan->no_injector), "%s",
			 scan->plan.no_injection);
		return NULL;
	}
	err = injector_new(scan->process, &scan->plan.injection, &scan->injector);
	if (!err ||
	    (error_code(err) != ERROR_UNSUPPORTED && error_code(err) != ERROR_UNSUPPORTED_ARCH))
		return err;
	snprintf(scan->no_injector, sizeof(scan->no_injector), "%s", error_message(err));
	error_free(err);
	return NULL;
}

/* The process as it is now, and not as it was before the decoder read its executable. */
static struct error *judge(struct scan *scan)
{
	const Goheapd__KeeperScan *order = scan->order;
	const struct fork_safety_scan planned = {
		.max_pause_us = order->max_pause_us,
		.census = order->depth == GOHEAPD__DEPTH__DEPTH_CENSUS,
		.stacks_us = plan_message(scan)->stacks_us,
		.span_count = plan_message(scan)->span_count, /* 0 where absent */
		.huge_page_weight = order->huge_page_weight,
	};
	struct error *err = process_refresh(scan->process);

	if (!err)
		err = fork_safety_judge(scan->process, &scan->policy, &scan->safety);
	if (!err)
		fork_safety_predict(scan->process, &planned, &scan->safety);
	return err;
}

/* Refused beforehand, with why it is not shorter, and with what would be short enough. */
static struct error *check_forecast(const struct scan *scan)
{
	const struct fork_safety *safety = &scan->safety;
	uint64_t max_us = scan->order->max_pause_us;
	uint64_t pause_us = scan->fork ? safety->fork_pause_us : safety->stop_pause_us;
	char census[64] = "";

	if (!max_us || pause_us <= max_us)
		return NULL;
	if (scan->order->depth != GOHEAPD__DEPTH__DEPTH_CENSUS && safety->census_pause_us <= max_us)
		snprintf(census, sizeof(census), "; depth=census would take about %.3g s",
			 (double)safety->census_pause_us / 1e6);
	return error_new(ERROR_PAUSE_EXCEEDED,
			 "the process would be stopped for about %.3g s, longer than %.3g s "
			 "(max_pause)%s%s%s",
			 (double)pause_us / 1e6, (double)max_us / 1e6,
			 scan->warning[0] ? "; no snapshot, since " : "", scan->warning, census);
}

/* Mode auto: a snapshot where it can be taken and is the better choice. */
static struct error *choose_mode(struct scan *scan)
{
	const char *reason = scan->injector ? scan->safety.reason : scan->no_injector;

	if (!scan->safety.stoppable)
		return error_new(ERROR_NOT_STOPPABLE, "process %d cannot be stopped: %s",
				 (int)scan->process->pid, scan->safety.reason);
	switch (scan->order->mode) {
	case GOHEAPD__MODE__MODE_FORK:
		if (!scan->injector || !scan->safety.safe)
			return error_new(ERROR_FORK_UNSAFE,
					 "no snapshot can be taken of process %d: %s",
					 (int)scan->process->pid, reason);
		scan->fork = true;
		break;
	case GOHEAPD__MODE__MODE_AUTO:
		scan->fork = scan->injector && scan->safety.preferred;
		if (!scan->fork)
			snprintf(scan->warning, sizeof(scan->warning), "%s", reason);
		break;
	default:
		break;
	}
	return check_forecast(scan);
}

/* ---- the stop ---- */

static uint64_t epoch_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static Goheapd__Mode current_mode(const struct scan *scan)
{
	return scan->fork ? GOHEAPD__MODE__MODE_FORK : GOHEAPD__MODE__MODE_STOP;
}

/* Lets the agent know what it has to do should this keeper die. */
static struct error *tell_stopping(struct scan *scan)
{
	Goheapd__KeeperEvent event = GOHEAPD__KEEPER_EVENT__INIT;
	Goheapd__KeeperStopping stopping = GOHEAPD__KEEPER_STOPPING__INIT;

	stopping.mode = current_mode(scan);
	if (scan->fork)
		stopping.injection = plan_message(scan)->injection;
	event.body_case = GOHEAPD__KEEPER_EVENT__BODY_STOPPING;
	event.stopping = &stopping;
	return keeper_tell_agent(scan->keeper, &event, NULL, 0);
}

static struct error *stop(struct scan *scan)
{
	struct keeper_outcome *outcome = &scan->keeper->outcome;
	struct stop_limits limits = stop_limits_default;
	uint64_t begun_ns = tracee_now_ns();
	struct error *err;

	limits.max_pause_us = scan->order->max_pause_us;
	if (limits.max_pause_us) {
		if (outcome->pause_us >= limits.max_pause_us)
			return pause_exceeded(scan);
		limits.max_pause_us -= outcome->pause_us;
	}
	scan->stopped_at_ns = epoch_ns();
	err = threads_stop(scan->process, &limits, &scan->threads);
	if (!err) {
		outcome->mode = current_mode(scan);
	} else if (error_code(err) == ERROR_NOT_STOPPABLE ||
		   error_code(err) == ERROR_PAUSE_EXCEEDED) {
		/* some threads did stand still, for no longer than this */
		outcome->mode = current_mode(scan);
		outcome->pause_us += (tracee_now_ns() - begun_ns) / 1000;
	}
	return err;
}

static struct error *settle(struct scan *scan)
{
	uint32_t left;

	/* who is still there after all rounds is scanned conservatively, and counted as such */
	return threads_settle(scan->threads, scan->plan.unwalkable, scan->plan.unwalkable_count,
			      SETTLE_ROUNDS, &left);
}

/* ---- handing over ---- */

static struct error *hand_over(struct scan *scan, int mem_fd)
{
	Goheapd__TargetEvent event = GOHEAPD__TARGET_EVENT__INIT;
	Goheapd__Warning warning = GOHEAPD__WARNING__INIT;
	Goheapd__Warning *warnings[] = { &warning };
	char code[] = "stop_mode";
	struct error *err;

	scan->stopped->mode = current_mode(scan);
	scan->stopped->stopped_at_ns = scan->stopped_at_ns;
	if (scan->warning[0]) {
		warning.code = code;
		warning.message =
		    (ProtobufCBinaryData){ strlen(scan->warning), (uint8_t *)scan->warning };
		scan->stopped->warnings = warnings;
		scan->stopped->n_warnings = 1;
	}
	event.body_case = GOHEAPD__TARGET_EVENT__BODY_STOPPED;
	event.stopped = scan->stopped;
	err = frame_queue_add(&scan->keeper->to_decoder, &event.base, &mem_fd, 1);
	scan->stopped->warnings = NULL;
	scan->stopped->n_warnings = 0;
	return err;
}

static struct error *wait_for_release(struct scan *scan)
{
	struct frame frame;
	struct error *err = wait_for(scan, GOHEAPD__PLAN_EVENT__BODY_RELEASE, &frame);

	if (!goes_on(scan, err))
		return err;
	frame_fini(&frame);
	scan->keeper->outcome.released = true;
	return NULL;
}

static struct error *tell_snapshot(struct scan *scan)
{
	Goheapd__KeeperEvent event = GOHEAPD__KEEPER_EVENT__INIT;
	Goheapd__KeeperSnapshot snapshot = GOHEAPD__KEEPER_SNAPSHOT__INIT;

	snapshot.pid = (uint32_t)snapshot_pid(scan->snapshot);
	event.body_case = GOHEAPD__KEEPER_EVENT__BODY_SNAPSHOT;
	event.snapshot = &snapshot;
	return keeper_tell_agent(scan->keeper, &event, NULL, 0);
}

/*
 * The decoder computes by then, on every processor there is, and a thread of the target's, which is
 * stopped and set going three times, could wait for one each time. So the decoder stands still
 * meanwhile, the first time, which nearly always is the last. If we die then the agent ends it.
 */
static struct error *collect_once(struct scan *scan, bool first)
{
	struct keeper *keeper = scan->keeper;
	uint64_t pause_us = 0;
	struct error *err = snapshot_end(scan->snapshot);

	if (err)
		return err;
	if (first)
		keeper_signal_decoder(keeper, SIGSTOP);
	err = snapshot_collect(scan->snapshot, &pause_us);
	if (first)
		keeper_signal_decoder(keeper, SIGCONT);
	keeper->outcome.pause_us += pause_us;
	return err;
}

/*
 * Busy threads may keep it from being collected at first, or the program is being run again and has
 * not begun yet; the snapshot is dead from the first try on.
 */
static struct error *collect(struct scan *scan)
{
	struct timespec rest = { 0, COLLECT_REST_NS };
	struct error *err = NULL;

	for (unsigned i = 0; i < COLLECT_ATTEMPTS; i++) {
		error_free(err);
		if (i)
			nanosleep(&rest, NULL);
		if (i && rest.tv_nsec < COLLECT_REST_NS_MAX)
			rest.tv_nsec *= 2;
		err = collect_once(scan, i == 0);
		if (!err)
			return NULL;
		/* the target took everything with it */
		if (error_code(err) == ERROR_GONE) {
			error_free(err);
			return NULL;
		}
		if (error_code(err) == ERROR_PROCESS_CHANGED)
			break;
	}
	return error_context(err, "collect the snapshot");
}

/* The first of two errors travels on; the other stops here. */
static struct error *first_error(struct error *err, struct error *collect_err)
{
	char escaped[1024];

	if (!err)
		return collect_err;
	if (collect_err)
		log_error("keeper",
			  "what a scan left in a process could not be collected, the process runs "
			  "on err=\"%s\"",
			  log_escape(error_message(collect_err), escaped, sizeof(escaped)));
	error_free(collect_err);
	return err;
}

static struct error *use_snapshot(struct scan *scan)
{
	int mem_fd scoped(closep) = -1;
	struct error *err;

	scan->watch.snapshot_pidfd = snapshot_pidfd(scan->snapshot);
	err = tell_snapshot(scan);
	if (!err)
		err = snapshot_open(scan->snapshot, "mem", &mem_fd);
	if (!err)
		err = hand_over(scan, mem_fd);
	if (!err)
		err = wait_for_release(scan);
	return first_error(err, collect(scan));
}

/* All threads run again, and the time that they stood still is counted. */
static void resume(struct scan *scan)
{
	threads_resume(scan->threads);
	scan->keeper->outcome.pause_us += threads_pause_us(scan->threads);
	threads_free(take(scan->threads));
}

static struct error *use_stopped_target(struct scan *scan)
{
	uint64_t left_us = threads_pause_left_us(scan->threads);
	struct error *err;

	scan->watch.deadline_ns =
	    left_us == UINT64_MAX ? UINT64_MAX : tracee_now_ns() + left_us * 1000;
	err = hand_over(scan, scan->mem_fd);
	if (!err)
		err = wait_for_release(scan);
	resume(scan);
	return err;
}

/* No snapshot can be taken after all: mode auto goes on without. Consumes err. */
static struct error *fall_back(struct scan *scan, struct error *err)
{
	if (scan->order->mode == GOHEAPD__MODE__MODE_FORK)
		return error_recode(err, ERROR_FORK_UNSAFE);
	snprintf(scan->warning, sizeof(scan->warning), "%s", error_message(err));
	error_free(err);
	scan->fork = false;
	scan->keeper->outcome.mode = current_mode(scan);
	return check_forecast(scan);
}

/*
 * With all threads stopped. *ret_again: they run again, since none of them could be used for the
 * call just then.
 */
static struct error *take_snapshot(struct scan *scan, bool last_attempt, bool *ret_again)
{
	struct error *err = snapshot_take(scan->threads, scan->injector, &scan->snapshot);

	if (err && error_code(err) == ERROR_BUSY && !last_attempt) {
		error_free(err);
		*ret_again = true;
		return NULL;
	}
	if (err && (error_code(err) == ERROR_BUSY || error_code(err) == ERROR_UNSUPPORTED ||
		    error_code(err) == ERROR_FORK_UNSAFE))
		err = fall_back(scan, err);
	return err;
}

/* Is it the process that was meant? One that is ending has lost what tells it from others. */
static struct error *check_identity(const struct scan *scan)
{
	struct error *err = process_check(scan->process);

	if (err && error_code(err) == ERROR_PROCESS_CHANGED && process_image_gone(scan->mem_fd))
		return error_recode(err, ERROR_GONE);
	return err;
}

/* Looks at the stopped target and takes the snapshot, if there is to be one. */
static struct error *look(struct scan *scan, bool last_attempt, bool *ret_again)
{
	struct error *err = check_identity(scan);

	*ret_again = false;
	if (!err)
		err = settle(scan);
	if (!err) {
		keeper_stopped_free(take(scan->stopped));
		err = keeper_stopped_read(scan->threads, &scan->stopped);
	}
	if (!err && scan->fork)
		err = take_snapshot(scan, last_attempt, ret_again);
	return err;
}

static struct error *stop_and_look(struct scan *scan)
{
	for (unsigned round = 0;; round++) {
		bool again = false;
		struct error *err = stop(scan);

		if (err)
			return err;
		err = look(scan, round + 1 == FORK_ATTEMPTS, &again);
		if (err || again || scan->snapshot)
			resume(scan);
		if (err || !again)
			return err;
		tracee_rest(round);
	}
}

struct error *keeper_scan(struct keeper *keeper, const Goheapd__KeeperScan *order)
{
	struct scan scan = { .keeper = keeper,
			     .order = order,
			     .pidfd = -1,
			     .mem_fd = -1,
			     .watch = { .keeper = keeper,
					.target_pidfd = -1,
					.target_mem_fd = -1,
					.snapshot_pidfd = -1,
					.deadline_ns = UINT64_MAX } };
	struct error *err = open_target(&scan);

	if (!err) {
		prepare_judgement(&scan);
		err = receive_plan(&scan);
	}
	if (goes_on(&scan, err))
		err = prepare_injection(&scan);
	if (goes_on(&scan, err))
		err = judge(&scan);
	if (goes_on(&scan, err))
		err = choose_mode(&scan);
	if (goes_on(&scan, err))
		err = tell_stopping(&scan);
	if (goes_on(&scan, err))
		err = stop_and_look(&scan);
	if (goes_on(&scan, err))
		err = scan.snapshot ? use_snapshot(&scan) : use_stopped_target(&scan);
	scan_fini(&scan);
	return err;
}
