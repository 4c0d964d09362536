#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/binary/elf_symbols.h"
#include "agent/decoder_keep.h"
#include "agent/decoder_plan.h"
#include "agent/decoder_plugin_types.h"
#include "agent/decoder_target.h"
#include "agent/decoder_types.h"
#include "agent/goruntime/collector.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/heap_extent.h"
#include "agent/report/analysis_report.h"
#include "agent/report/decode.h"
#include "agent/report/memory_need.h"
#include "agent/report/message.h"
#include "agent/target/live_memory.h"
#include "agent/target/snapshot_memory.h"
#include "proto/base/bytes.h"
#include "proto/base/log.h"

/* What the keeper hands over at the stop. */
struct stop {
	struct frame frame; /* with the descriptor of the memory */
	const Goheapd__TargetStopped *message;
	struct stopped_thread *threads;
	struct memory *memory;
};

static void stop_fini(struct stop *stop)
{
	memory_free(stop->memory);
	free(stop->threads);
	frame_fini(&stop->frame);
}

static struct error *receive_stop(struct decoder *decoder, struct stop *stop)
{
	const Goheapd__TargetEvent *event;
	enum frame_state state;
	struct error *err = frame_read(&decoder->events, &stop->frame, &state);

	if (err)
		return err;
	if (state != FRAME_COMPLETE)
		return error_new(ERROR_SYSTEM, "the keeper ended before the stop");
	event = (const Goheapd__TargetEvent *)stop->frame.message;
	if (event->body_case != GOHEAPD__TARGET_EVENT__BODY_STOPPED || stop->frame.fd_count != 1)
		return error_new(ERROR_FORMAT, "event %d of a keeper", event->body_case);
	stop->message = event->stopped;
	return NULL;
}

static struct error *take_thread(const Goheapd__StoppedThread *message, struct stopped_thread *ret)
{
	if (message->gpr.len != 8 * THREAD_GPR_COUNT)
		return error_new(ERROR_FORMAT, "%zu bytes of registers", message->gpr.len);
	*ret = (struct stopped_thread){
		.tid = message->tid,
		.target_tid = message->target_tid,
		.pc = message->pc,
		.sp = message->sp,
		.bp = message->bp,
		.tls = message->tls,
		.vector = message->has_vector ? message->vector.data : NULL,
		.vector_size = message->has_vector ? (uint32_t)message->vector.len : 0,
	};
	for (size_t i = 0; i < THREAD_GPR_COUNT; i++)
		ret->gpr[i] = load_u64le(message->gpr.data + 8 * i);
	return NULL;
}

static struct error *take_threads(struct stop *stop)
{
	stop->threads = calloc(stop->message->n_threads + 1, sizeof(*stop->threads));
	if (!stop->threads)
		return &error_nomem;
	for (size_t i = 0; i < stop->message->n_threads; i++) {
		struct error *err = take_thread(stop->message->threads[i], &stop->threads[i]);

		if (err)
			return err;
	}
	return NULL;
}

static struct error *open_memory(const struct decoder_target *target, struct stop *stop)
{
	const struct live_memory_files files = decoder_target_files(target, stop->frame.fds[0]);

	if (stop->message->mode == GOHEAPD__MODE__MODE_FORK)
		return snapshot_memory_open(files.mem, &stop->memory);
	return live_memory_open(&files, &stop->memory);
}

/*
 * While the target stands still, or pays for a snapshot, we must be quick. From here on only who
 * asked waits, so that on a machine with little to spare the target goes first. Threads that are
 * made later on are as nice as the one that makes them. That it cannot be had does no harm.
 */
static void make_way(void)
{
	enum { NICE = 5 };

	if (setpriority(PRIO_PROCESS, 0, NICE))
		log_debug("decoder", "it goes on at its priority err=\"%s\"", strerror(errno));
}

static struct error *release(void *arg)
{
	struct decoder *decoder = arg;
	Goheapd__PlanEvent event = GOHEAPD__PLAN_EVENT__INIT;
	Goheapd__Release message = GOHEAPD__RELEASE__INIT;
	struct error *err;

	event.body_case = GOHEAPD__PLAN_EVENT__BODY_RELEASE;
	event.release = &message;
	err = frame_send(decoder->keeper, &frame_plan_event, &event.base, NULL, 0);
	make_way();
	return err;
}

/* The executable as the kernel names its mappings: without the mark of a deleted file. */
static char *mapped_name(const Goheapd__TargetOpened *opened)
{
	static const char mark[] = " (deleted)";
	size_t size = opened->exe.len, mark_size = sizeof(mark) - 1;

	if (size >= mark_size && !memcmp(opened->exe.data + size - mark_size, mark, mark_size))
		size -= mark_size;
	return strndup((const char *)opened->exe.data, size);
}

static struct label_text text_of(ProtobufCBinaryData data)
{
	return (struct label_text){ .bytes = data.data, .size = data.len };
}

/* The labels to select by, borrowed from the task. */
static struct error *take_selection(const Goheapd__DecodeScan *task, struct label **ret)
{
	struct label *labels = calloc(task->n_select + 1, sizeof(*labels));

	if (!labels)
		return &error_nomem;
	for (size_t i = 0; i < task->n_select; i++)
		labels[i] = (struct label){ .key = text_of(task->select[i]->key),
					    .value = text_of(task->select[i]->value) };
	*ret = labels;
	return NULL;
}

/* A scan from the stop on. What the decoding borrows lives as long as what was decoded. */
struct work {
	struct stop stop;
	struct decoder_types types; /* empty unless objects are asked for */
	struct elf_symbols *symbols;
	char *exe;
	struct label *selected;
	struct decode_request request;
	struct decoded *decoded; /* NULL unless it is kept */
};

static void work_fini(struct work *work)
{
	decoded_free(work->decoded);
	free(work->selected);
	free(work->exe);
	elf_symbols_free(work->symbols);
	decoder_types_fini(&work->types);
	stop_fini(&work->stop);
}

static struct error *run(struct decoder *decoder, const Goheapd__DecodeScan *task,
			 const struct decoder_target *target, struct work *work,
			 Goheapd__ScanResult **ret)
{
	const struct stop *stop = &work->stop;
	struct error *err = take_selection(task, &work->selected);

	work->exe = mapped_name(target->opened);
	if (!err && !work->exe)
		err = &error_nomem;
	if (err)
		return err;
	work->request = (struct decode_request){
		.memory = stop->memory,
		.layout = target->layout,
		.threads = stop->threads,
		.thread_count = (uint32_t)stop->message->n_threads,
		.maps_fd = decoder_target_fd(target, TARGET_FILE_MAPS),
		.pagemap_fd = decoder_target_fd(target, TARGET_FILE_PAGEMAP),
		.status_fd = decoder_target_fd(target, TARGET_FILE_STATUS),
		.exe = work->exe,
		.stopped = stop->message->mode == GOHEAPD__MODE__MODE_STOP,
		.census = task->depth == GOHEAPD__DEPTH__DEPTH_CENSUS,
		.want_memory = task->want_memory,
		.want_goroutines = task->want_goroutines,
		.want_dead_goroutines = task->want_dead_goroutines,
		.want_mappings = task->want_mappings,
		.want_labels = task->want_labels,
		.want_label_detail = task->want_label_detail,
		.selection = { .labels = work->selected, .count = task->n_select },
		.has_group_by = task->has_group_by,
		.group_by = text_of(task->group_by),
		.build = target->info,
		.worker_count = task->workers,
		.memory_limit = task->memory_limit,
		.analysis = task->analysis,
		.keeps = task->keep,
		.type_index = work->types.index,
		.symbols = work->symbols,
		.type_bias = target->load_bias,
		.done_reading = release,
		.arg = decoder,
	};
	return task->keep ? decode_run_kept(&work->request, &work->decoded, ret)
			  : decode_run(&work->request, ret);
}

static struct error *add_refusals(const struct decoder_layout *source, Goheapd__ScanInfo *scan)
{
	struct error *err = NULL;

	for (unsigned i = 0; !err && i < source->refusal_count; i++)
		err = message_warn(scan, "debug_file_refused", "%s", source->refusals[i]);
	return err;
}

static struct error *add_warnings(const Goheapd__TargetStopped *stopped, Goheapd__ScanInfo *scan)
{
	for (size_t i = 0; i < stopped->n_warnings; i++) {
		const Goheapd__Warning *warning = stopped->warnings[i];
		struct error *err =
		    message_warn(scan, warning->code, "%.*s", (int)warning->message.len,
				 warning->message.len ? (const char *)warning->message.data : "");

		if (err)
			return err;
	}
	return NULL;
}

static uint64_t peak_memory_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

/* Where the program's types are from, if not from the runtime alone. */
static struct error *tell_types(const struct decoder_target *target,
				const struct decoder_types *types, Goheapd__ScanInfo *scan)
{
	if (types->reason && target->source.known_by == LAYOUT_BY_DWARF)
		return message_warn(scan, "types_unknown",
				    "the types of variables are not known: %s", types->reason);
	if (!types->index)
		return NULL;
	free(take(scan->detail->types));
	return message_string("dwarf", &scan->detail->types);
}

/* What decode_run leaves to its caller; the agent sets pause and whole time. */
static struct error *complete(struct decoder_target *target, const struct work *work,
			      Goheapd__ScanResult *result)
{
	const struct stop *stop = &work->stop;
	Goheapd__TargetOpened *opened = (Goheapd__TargetOpened *)(uintptr_t)target->opened;
	Goheapd__ScanInfo *scan = result->scan;
	struct error *err = decoder_target_identity(target, &result->identity);

	if (!err)
		err = decoder_target_detail(target, &scan->detail);
	if (!err)
		err = add_refusals(&target->source, scan);
	if (!err)
		err = add_warnings(stop->message, scan);
	if (!err)
		err = tell_types(target, &work->types, scan);
	result->cgroup = take(opened->cgroup);
	scan->started_at_ns = stop->message->stopped_at_ns;
	scan->mode = stop->message->mode;
	scan->has_index_used = true;
	scan->index_used =
	    target->source.index_used && (!work->types.index || work->types.from_index);
	scan->peak_memory_bytes = peak_memory_bytes();
	return err;
}

/* ---- a layout that is only the nearest known ---- */

static struct error *doubt_layout(const struct decoder_layout *source, struct error *err)
{
	return source->exact ? err
			     : layout_doubt(err, source->layout->version, source->table_version);
}

/* Everything must have added up. */
static struct error *verify_layout(const struct decoder_layout *source,
				   const Goheapd__ScanResult *result)
{
	const Goheapd__Trust *trust = result->scan->trust;
	ProtobufCBinaryData verdict = trust->self_check;

	if (source->exact)
		return NULL;
	if (verdict.len != strlen("ok") || memcmp(verdict.data, "ok", verdict.len) != 0)
		return doubt_layout(source,
				    error_new(ERROR_CORRUPT_TARGET, "%.*s", (int)verdict.len,
					      (const char *)verdict.data));
	if (trust->free_slot_hits)
		return doubt_layout(source,
				    error_new(ERROR_CORRUPT_TARGET,
					      "%" PRIu64 " exact pointers lead to no object",
					      trust->free_slot_hits));
	return message_warn(result->scan, "layout_nearest",
			    "nothing is known of %s; the layout of %s was used, and all totals of "
			    "the runtime agree with it",
			    source->layout->version, source->table_version);
}

static struct error *send_result(struct decoder *decoder, Goheapd__ScanResult *result)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;

	event.body_case = GOHEAPD__DECODER_EVENT__BODY_SCAN;
	event.scan = result;
	return decoder_tell_result(decoder, &event);
}

/* The target is nobody's business from now on: nothing of it stays open. */
static void let_go(struct decoder *decoder, struct decoder_target *target, struct work *work)
{
	decoded_trim(work->decoded);
	memory_free(take(work->stop.memory));
	frame_close_fds(&work->stop.frame);
	decoder_target_let_go(target);
	work->request.memory = NULL;
	work->request.maps_fd = work->request.pagemap_fd = work->request.status_fd = -1;
	closep(&decoder->keeper);
	decoder->keeper = -1;
	malloc_trim(0);
}

/* Of the first answer only what later ones repeat is held. */
static void slim_down(Goheapd__ScanResult **result)
{
	Goheapd__ScanResult *slim = malloc(sizeof(*slim));

	if (!slim)
		return;
	goheapd__scan_result__init(slim);
	slim->identity = take((*result)->identity);
	slim->scan = take((*result)->scan);
	slim->heap = take((*result)->heap);
	goheapd__scan_result__free_unpacked(*result, NULL);
	*result = slim;
}

static struct error *keep(struct decoder *decoder, struct work *work, Goheapd__ScanResult **result)
{
	slim_down(result);
	malloc_trim(0);
	return decoder_keep(decoder, work->decoded, *result);
}

static struct error *decode(struct decoder *decoder, const Goheapd__DecodeScan *task,
			    struct decoder_target *target, struct work *work)
{
	struct stop *stop = &work->stop;
	Goheapd__ScanResult *result = NULL;
	struct error *err = receive_stop(decoder, stop);

	if (!err)
		err = take_threads(stop);
	if (!err)
		err = open_memory(target, stop);
	if (!err)
		err = doubt_layout(&target->source, run(decoder, task, target, work, &result));
	if (!err)
		err = verify_layout(&target->source, result);
	if (!err)
		err = complete(target, work, result);
	if (!err && work->decoded)
		let_go(decoder, target, work);
	if (!err)
		err = send_result(decoder, result);
	if (!err && work->decoded)
		err = keep(decoder, work, &result);
	goheapd__scan_result__free_unpacked(result, NULL);
	return err;
}

/*
 * Refuses before the stop what cannot be done within the memory limit. What the running process
 * shows in mid-change decides nothing: after the stop all is reckoned again.
 */
static struct error *check_need(const struct decoder_target *target,
				const Goheapd__DecodeScan *task)
{
	struct heap_extent extent;
	struct memory_need need;
	uint64_t goroutines = 0;
	struct memory_need_input input = {
		.extent = &extent,
		.labels = task->want_labels,
		.threads = task->workers,
	};
	struct error *err;

	if (!task->memory_limit || task->depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		return NULL;
	err = heap_extent_read(target->memory, target->layout, &extent);
	if (!err)
		err = runtime_goroutine_count(target->memory, target->layout, &goroutines);
	if (err && error_code(err) != ERROR_GONE && error_code(err) != ERROR_NOMEM) {
		error_free(err);
		return NULL;
	}
	if (err)
		return err;
	input.base = memory_need_taken();
	input.questions = memory_need_questions(task->analysis, task->keep,
						target->opened->mode == GOHEAPD__MODE__MODE_STOP);
	input.goroutines = (uint32_t)goroutines;
	memory_need_find(&input, &need);
	return need.least > task->memory_limit ? memory_need_refuse(&need, task->memory_limit, NULL)
					       : NULL;
}

/* Before the stop, since it may take seconds: types and variables, if objects are asked for. */
static struct error *read_types(struct decoder *decoder, const Goheapd__DecodeScan *task,
				const struct decoder_target *target, struct work *work)
{
	bool names = task->keep || (task->analysis && analysis_wants_names(task->analysis));
	struct error *err;

	if (!names || task->depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		return NULL;
	err = decoder_types_read(decoder, target, &work->types);
	if (!err)
		err = elf_symbols_read(target->file, &work->symbols);
	return err ? err : decoder_plugin_types_read(target, &work->types, work->symbols);
}

struct error *decoder_scan(struct decoder *decoder, const Goheapd__DecodeScan *task)
{
	struct decoder_target target;
	struct work work = { 0 };
	struct error *err = decoder_target_open(decoder, &target);

	if (!err)
		err = check_need(&target, task);
	if (!err)
		err = read_types(decoder, task, &target, &work);
	if (!err)
		err = decoder_plan_send(decoder, &target);
	if (!err)
		err = decode(decoder, task, &target, &work);
	work_fini(&work);
	decoder_target_fini(&target);
	return err;
}
