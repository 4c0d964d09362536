#include "agent/scan_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>

#include "agent/facts.h"
#include "agent/report/message.h"
#include "agent/scan_state.h"
#include "agent/supervise.h"

enum {
	OVERVIEW_TIMEOUT_MS = 10000,
	WORKERS_MAX = 4,
	OVERVIEW_DECODER_MEMORY = 1 << 30,
};

void scan_give_up(struct scan_job *scan, struct error *err)
{
	if (scan->own_failure)
		error_free(err);
	else
		scan->own_failure = err;
	helper_kill(scan->decoder);
	helper_hang_up(&scan->keeper);
	event_timer_set(&scan->timer, SCAN_LET_GO_MS);
}

/* ---- the answer ---- */

/* Hands the decoder over to what is kept; the answer says until when, or why not. */
static struct error *keep(struct scan_job *scan, Goheapd__ScanResult *result)
{
	const struct kept_offer offer = {
		.asker = scan->job.reply->asker,
		.id = scan->scan->keep->id,
		.ms = scan->scan->keep->ms,
		.implied = scan->scan->keep->implied,
		.pid = scan->pid,
		.start_ticks = scan->start_ticks,
	};
	struct error *err = kept_table_add(&scan->job.supervisor->kept, &offer, scan->decoder,
					   &result->kept_until_ns);
	struct error *warn_err;

	result->has_kept_until_ns = !err;
	if (!err) {
		scan->decoder = NULL;
		return NULL;
	}
	warn_err = message_warn(result->scan, "not_kept", "the graph of this scan is not kept: %s",
				error_message(err));
	error_free(err);
	return warn_err;
}

/* What the agent knows better than the decoder: whom it was about, and how long it all took. */
static void answer_result(struct scan_job *scan)
{
	Goheapd__Answer *answer = scan->result;
	Goheapd__Identity *identity =
	    scan->scan ? answer->scan->identity : answer->overview->identity;
	struct error *err = NULL;

	identity->start_ticks = scan->start_ticks;
	identity->start_time_ns =
	    facts_start_time_ns(&scan->job.supervisor->procfs, scan->start_ticks);
	if (scan->scan) {
		answer->scan->scan->pause_us = scan->pause_us;
		answer->scan->scan->mode = scan->mode;
		answer->scan->scan->total_us = supervisor_now_us() - scan->begun_us;
		answer->scan->scan->has_prepare_us = true;
		answer->scan->scan->prepare_us = scan->prepare_us;
		answer->scan->has_kept_until_ns = false;
	}
	if (scan->scan && scan->scan->keep)
		err = keep(scan, answer->scan);
	if (err)
		job_fail(&scan->job, err);
	else
		job_answer(&scan->job, answer);
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
 * failure does not touch a decoder that had read all it needs. A thread that did not stop in time
 * is traced until its keeper has ended: before that, the next scan would find it in other hands.
 */
void scan_settle(struct scan_job *scan)
{
	bool decoding = helper_runs(scan->decoder) && !scan->decoder_failure && !scan->result;

	if (!decoding && !scan->result)
		helper_hang_up(&scan->keeper);
	if (!scan->keeper_done || helper_runs(&scan->keeper))
		return;
	if (scan->result && !scan->own_failure && scan->job.reply)
		answer_result(scan);
	else if (scan->job.reply &&
		 (!decoding || scan->own_failure || (scan->keeper_failure && !scan->released)))
		answer_failure(scan);
	if (!scan->job.reply) {
		helper_kill(scan->decoder);
		scan->job.target = 0;
	}
	if (!helper_runs(&scan->keeper) && !helper_runs(scan->decoder))
		supervisor_remove(&scan->job);
}

/* ---- time ---- */

static void time_is_up(struct event_timer *timer)
{
	struct scan_job *scan = scan_of(timer, timer);

	if (scan->own_failure) {
		/* told to let go, and did not */
		helper_kill(&scan->keeper);
		return;
	}
	scan_give_up(
	    scan, error_new(ERROR_TIMEOUT, "process %d was not scanned in time", (int)scan->pid));
}

static void scan_stop(struct job *job)
{
	scan_give_up(scan_of(job, job),
		     error_new(ERROR_AGENT_UNAVAILABLE, "the scan was given up"));
}

/* ---- its beginning ---- */

static void scan_free(struct job *job)
{
	struct scan_job *scan = scan_of(job, job);

	helper_fini(&scan->keeper);
	helper_fini(scan->decoder);
	free(scan->decoder);
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
		err = helper_start(scan->decoder, &scan_decoder_kind, loop, decoder_side,
				   memory_limit);
	scan->decoder->owner = scan;
	if (!err)
		err = helper_start(&scan->keeper, &scan_keeper_kind, loop, keeper_side, 0);
	scan->keepers = 1;
	scan->job.keeper = scan->keeper.child.pid;
	return err;
}

Goheapd__CloneAllowed scan_clone_allowed(const struct scan_job *scan)
{
	const struct agent_config *config = &scan->job.supervisor->config;
	Goheapd__CloneAllowed allowed = GOHEAPD__CLONE_ALLOWED__INIT;

	allowed.n_cgroups = config->clone_allowed_cgroups.count;
	allowed.cgroups = config->clone_allowed_cgroups.items;
	allowed.n_units = config->clone_allowed_units.count;
	allowed.units = config->clone_allowed_units.items;
	return allowed;
}

/* Borrowed from the configuration. */
static ProtobufCBinaryData debug_dir_of(const struct scan_job *scan)
{
	static char usual[] = AGENT_CONFIG_DEBUG_DIR;
	char *dir = scan->job.supervisor->config.debug_dir;

	if (!dir)
		dir = usual;
	return (ProtobufCBinaryData){ strlen(dir), (uint8_t *)dir };
}

static uint32_t worker_count(void)
{
	int cpus = get_nprocs();

	return (uint32_t)(cpus < WORKERS_MAX ? cpus : WORKERS_MAX);
}

static struct error *send_scan(struct scan_job *scan, uint64_t memory_limit)
{
	const Goheapd__Scan *request = scan->scan;
	Goheapd__DecoderOrder decoder_order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__DecodeScan decode = GOHEAPD__DECODE_SCAN__INIT;
	Goheapd__KeeperOrder keeper_order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperScan keep = GOHEAPD__KEEPER_SCAN__INIT;
	Goheapd__CloneAllowed allowed = scan_clone_allowed(scan);
	struct error *err;

	decode.depth = request->depth;
	decode.want_memory = request->want_memory;
	decode.want_goroutines = request->want_goroutines;
	decode.want_dead_goroutines = request->want_dead_goroutines;
	decode.want_mappings = request->want_mappings;
	decode.has_want_labels = decode.has_want_label_detail = true;
	decode.want_labels = request->want_labels;
	decode.want_label_detail = request->want_label_detail;
	decode.n_select = request->n_select; /* borrowed for the sending */
	decode.select = request->select;
	decode.has_group_by = request->has_group_by;
	decode.group_by = request->group_by;
	decode.workers = worker_count();
	decode.memory_limit = memory_limit;
	decode.analysis = request->analysis;
	decode.has_keep = true;
	decode.keep = request->keep && scan->job.supervisor->config.max_kept_scans > 0;
	decoder_order.body_case = GOHEAPD__DECODER_ORDER__BODY_SCAN;
	decoder_order.scan = &decode;
	err = helper_send(scan->decoder, &decoder_order.base, NULL, 0);
	if (err)
		return err;
	keep.pid = request->pid;
	keep.start_ticks = request->start_ticks;
	keep.mode = request->mode;
	keep.max_pause_us = request->max_pause_us;
	keep.depth = request->depth;
	keep.clone_allowed = &allowed;
	keep.huge_page_weight = scan->job.supervisor->config.huge_page_weight;
	keep.debug_dir = debug_dir_of(scan);
	keeper_order.body_case = GOHEAPD__KEEPER_ORDER__BODY_SCAN;
	keeper_order.scan = &keep;
	return helper_send(&scan->keeper, &keeper_order.base, &scan->decoder->child.pidfd, 1);
}

static struct error *send_overview(struct scan_job *scan, const Goheapd__Overview *request)
{
	Goheapd__DecoderOrder decoder_order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__DecodeOverview decode = GOHEAPD__DECODE_OVERVIEW__INIT;
	Goheapd__KeeperOrder keeper_order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperObserve observe = GOHEAPD__KEEPER_OBSERVE__INIT;
	Goheapd__CloneAllowed allowed = scan_clone_allowed(scan);
	struct error *err;

	decode.workers = worker_count();
	decoder_order.body_case = GOHEAPD__DECODER_ORDER__BODY_OVERVIEW;
	decoder_order.overview = &decode;
	err = helper_send(scan->decoder, &decoder_order.base, NULL, 0);
	if (err)
		return err;
	observe.pid = request->pid;
	observe.start_ticks = request->start_ticks;
	observe.clone_allowed = &allowed;
	observe.huge_page_weight = scan->job.supervisor->config.huge_page_weight;
	observe.debug_dir = debug_dir_of(scan);
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
	scan->decoder = calloc(1, sizeof(*scan->decoder));
	if (!scan->decoder) {
		free(scan);
		return NULL;
	}
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
	scan->start_ticks = request->start_ticks;
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
	scan->start_ticks = request->start_ticks;
	err = start_helpers(scan, OVERVIEW_DECODER_MEMORY);
	if (!err)
		err = send_overview(scan, request);
	if (!err)
		event_timer_set(&scan->timer, OVERVIEW_TIMEOUT_MS);
	return enter(scan, err, ret);
}
