#include "agent/kept_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/audit.h"
#include "agent/helper.h"
#include "agent/kept_question.h"
#include "agent/scan_state.h"
#include "agent/supervise.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

struct kept_scan {
	struct kept_scan *next; /* newer */
	struct kept_table *table;
	const void *asker;
	uint8_t id[KEPT_ID_MAX_BYTES];
	size_t id_size;
	struct helper *decoder;
	pid_t pid; /* of the target, while it was there */
	uint64_t start_ticks;
	uint64_t until_ns; /* since the epoch */
	bool implied;
	uint64_t memory_bytes;
	struct event_timer expiry, patience;
	/* The first is with the decoder if it is busy. */
	struct kept_question *first, **end;
	bool busy;
	bool expired; /* goes when the decoder has answered */
	bool dropped; /* goes when the decoder has ended */
};

#define kept_of(pointer, member)                                                                   \
	((struct kept_scan *)((char *)(pointer)-offsetof(struct kept_scan, member)))

static void drop(struct kept_scan *kept, const char *reason, enum error_code code);

/* ---- the table ---- */

static void leave_table(struct kept_scan *kept)
{
	struct kept_scan **link = &kept->table->oldest;

	while (*link != kept)
		link = &(*link)->next;
	*link = kept->next;
}

static void kept_free(struct kept_scan *kept)
{
	helper_fini(kept->decoder);
	free(kept->decoder);
	event_timer_fini(&kept->expiry);
	event_timer_fini(&kept->patience);
	free(kept);
}

static struct kept_scan *find(const struct kept_table *table, const void *asker,
			      ProtobufCBinaryData id)
{
	struct kept_scan *kept = table->oldest;

	while (kept && (kept->dropped || kept->asker != asker || kept->id_size != id.len ||
			memcmp(kept->id, id.data, id.len) != 0))
		kept = kept->next;
	return kept;
}

static struct error *not_kept(void)
{
	return error_new(ERROR_NOT_FOUND,
			 "the scan is kept no more: its time was over, or memory was short");
}

/* The next that is not being ended, from the oldest on. */
static struct kept_scan *alive(struct kept_scan *kept)
{
	while (kept && kept->dropped)
		kept = kept->next;
	return kept;
}

static unsigned count_kept(const struct kept_table *table)
{
	unsigned count = 0;

	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next))
		count++;
	return count;
}

static uint64_t sum_memory(const struct kept_table *table)
{
	uint64_t bytes = 0;

	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next))
		bytes += kept->memory_bytes;
	return bytes;
}

/* ---- memory ---- */

static uint64_t field_bytes(const struct procfs_text *status, const char *key)
{
	const char *pos = procfs_field(status, key);
	uint64_t kib;

	return pos && procfs_number(&pos, 10, &kib) && kib <= UINT64_MAX >> 11 ? kib << 10 : 0;
}

/* In RAM or swapped out; as before if it cannot be read, since the process is about to end then. */
static uint64_t read_memory(const struct kept_table *table, const struct helper *decoder,
			    uint64_t before)
{
	enum { STATUS_LIMIT = 64 << 10 };
	struct procfs_text status;
	struct error *err = procfs_read(&status, STATUS_LIMIT, "%s/%d/status", table->procfs->proc,
					(int)decoder->child.pid);
	uint64_t bytes;

	if (err) {
		error_free(err);
		return before;
	}
	bytes = field_bytes(&status, "VmRSS:") + field_bytes(&status, "VmSwap:");
	procfs_text_fini(&status);
	return bytes ? bytes : before;
}

static bool goes_before(const struct kept_scan *one, const struct kept_scan *other)
{
	return one->implied != other->implied ? one->implied : one->until_ns < other->until_ns;
}

/*
 * The one to do without, or NULL: of those that nobody has asked for, else of all, the one whose
 * time is over soonest.
 */
static struct kept_scan *first_to_go(const struct kept_table *table)
{
	struct kept_scan *first = alive(table->oldest);

	for (struct kept_scan *kept = first; kept; kept = alive(kept->next))
		if (goes_before(kept, first))
			first = kept;
	return first;
}

/* Drops others until one more of that size fits in. */
static void make_room(struct kept_table *table, unsigned count, uint64_t bytes)
{
	struct kept_scan *kept;

	while ((kept = first_to_go(table)) &&
	       (count_kept(table) + count > table->limits.count_max ||
		sum_memory(table) + bytes > table->limits.memory_max)) {
		bool by_count = count_kept(table) + count > table->limits.count_max;

		drop(kept,
		     by_count ? "there is no room for another (max_kept_scans)"
			      : "there is no room for all (max_kept_memory)",
		     by_count ? ERROR_NOT_FOUND : ERROR_OUT_OF_MEMORY);
	}
}

/* Memory that a decoder takes for an answer counts, too. */
static void look(struct event_timer *timer)
{
	struct kept_table *table =
	    (struct kept_table *)((char *)timer - offsetof(struct kept_table, look));
	char reason[PRESSURE_REASON_SIZE];

	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next))
		kept->memory_bytes = read_memory(table, kept->decoder, kept->memory_bytes);
	make_room(table, 0, 0);
	if (pressure_look(&table->pressure, supervisor_now_us(), reason) && alive(table->oldest))
		drop(first_to_go(table), reason, ERROR_OUT_OF_MEMORY);
	if (alive(table->oldest))
		event_timer_set(&table->look, table->limits.look_ms);
}

/* ---- questions ---- */

static void send_next(struct kept_scan *kept)
{
	Goheapd__DecoderOrder order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__DecodeAsk ask = GOHEAPD__DECODE_ASK__INIT;
	struct error *err;

	if (kept->busy || !kept->first)
		return;
	ask.analysis = kept->first->analysis;
	order.body_case = GOHEAPD__DECODER_ORDER__BODY_ASK;
	order.ask = &ask;
	kept->busy = true;
	event_timer_set(&kept->patience, kept->table->limits.answer_max_ms);
	err = helper_send(kept->decoder, &order.base, NULL, 0);
	if (err)
		helper_distrust(kept->decoder, err);
}

static struct kept_question *take_first(struct kept_scan *kept)
{
	struct kept_question *question = kept->first;

	kept->first = question->next;
	if (!kept->first)
		kept->end = &kept->first;
	return question;
}

/* What went wrong inside is about the one that the decoder had; the others find nobody to ask. */
static void fail_questions(struct kept_scan *kept, enum error_code code, const char *message)
{
	if (kept->busy)
		kept_question_fail(take_first(kept), error_new(code, "%s", message));
	if (code == ERROR_SYSTEM)
		code = ERROR_NOT_FOUND;
	while (kept->first)
		kept_question_fail(take_first(kept), error_new(code, "%s", message));
	kept->busy = false;
}

/* Nobody waits any more: one that waits in line goes, one that the decoder has is ended by it. */
static void question_given_up(struct kept_question *question)
{
	struct kept_scan *kept = question->owner;
	struct kept_question **link = &kept->first;

	if (kept->busy && question == kept->first)
		return;
	while (*link != question)
		link = &(*link)->next;
	*link = question->next;
	if (!*link)
		kept->end = link;
	kept_question_free(question);
}

/* ---- its end ---- */

/*
 * What is asked of it fails with code. The decoder is killed, and freed when it has ended, unless
 * it has already.
 */
static void drop(struct kept_scan *kept, const char *reason, enum error_code code)
{
	const struct audit_drop line = {
		.id = { .len = kept->id_size, .data = kept->id },
		.pid = kept->pid,
		.start_ticks = kept->start_ticks,
		.memory_bytes = kept->memory_bytes,
		.reason = reason,
	};
	char message[512];

	if (kept->dropped)
		return;
	audit_log_drop(&line);
	kept->dropped = true;
	snprintf(message, sizeof(message), "the kept scan was dropped: %s", reason);
	fail_questions(kept, code, message);
	helper_kill(kept->decoder);
}

static void time_is_over(struct event_timer *timer)
{
	struct kept_scan *kept = kept_of(timer, expiry);

	kept->expired = true;
	if (!kept->busy)
		drop(kept, "its time is over", ERROR_NOT_FOUND);
}

static void patience_is_over(struct event_timer *timer)
{
	struct kept_scan *kept = kept_of(timer, patience);

	char reason[64];

	if (!kept->busy)
		return;
	snprintf(reason, sizeof(reason), "it has not answered for %" PRIu64 " s",
		 kept->table->limits.answer_max_ms / 1000);
	drop(kept, reason, ERROR_TIMEOUT);
}

/* ---- what the decoder says ---- */

static void answered(struct kept_scan *kept)
{
	kept->busy = false;
	kept->memory_bytes = read_memory(kept->table, kept->decoder, kept->memory_bytes);
	if (kept->expired)
		drop(kept, "its time is over", ERROR_NOT_FOUND);
	else
		send_next(kept);
}

/* It speaks of its own target or not at all. */
static struct error *hear_result(struct kept_scan *kept, Goheapd__ScanResult *result)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	struct kept_question *question;

	if (result->identity->pid != (uint32_t)kept->pid)
		return error_new(ERROR_FORMAT, "a result of process %u", result->identity->pid);
	result->identity->start_ticks = kept->start_ticks;
	result->has_kept_until_ns = true;
	result->kept_until_ns = kept->until_ns;
	answer.body_case = GOHEAPD__ANSWER__BODY_SCAN;
	answer.scan = result;
	question = take_first(kept);
	if (question->job.reply)
		job_answer(&question->job, &answer);
	kept_question_free(question);
	answered(kept);
	return NULL;
}

static struct error *hear_decoder(struct helper *helper, struct frame *frame)
{
	struct kept_scan *kept = helper->owner;
	Goheapd__DecoderEvent *event = (Goheapd__DecoderEvent *)frame->message;

	if (kept->dropped)
		return NULL;
	if (!kept->busy)
		return error_new(ERROR_FORMAT, "event %d of a kept scan that nobody asked",
				 event->body_case);
	switch (event->body_case) {
	case GOHEAPD__DECODER_EVENT__BODY_SCAN:
		return hear_result(kept, event->scan);
	case GOHEAPD__DECODER_EVENT__BODY_FAILURE:
		kept_question_fail(take_first(kept), failure_make_error(event->failure));
		answered(kept);
		return NULL;
	default:
		return error_new(ERROR_FORMAT, "event %d of a kept scan", event->body_case);
	}
}

static void decoder_ended(struct helper *helper, int status)
{
	struct kept_scan *kept = helper->owner;

	if (!kept->dropped) {
		struct error *death scoped(error_freep) = scan_decoder_death(helper, status);

		drop(kept, error_message(death), error_code(death));
	}
	leave_table(kept);
	kept_free(kept);
}

static const struct helper_kind kept_decoder_kind = {
	"kept decoder", &frame_decoder_order, &frame_decoder_event, { hear_decoder, decoder_ended }
};

/* ---- from outside ---- */

struct error *kept_table_init(struct kept_table *table, struct event_loop *loop,
			      const struct procfs *procfs, const struct kept_limits *limits)
{
	*table = (struct kept_table){ .loop = loop, .procfs = procfs, .limits = *limits };
	pressure_init(&table->pressure, procfs);
	return event_timer_init(&table->look, loop, look);
}

void kept_table_fini(struct kept_table *table)
{
	while (table->oldest) {
		struct kept_scan *kept = table->oldest;

		table->oldest = kept->next;
		kept_free(kept);
	}
	if (table->loop)
		event_timer_fini(&table->look);
}

/* One that nobody has asked for takes the place of others of its kind at most. */
static struct error *check_room(const struct kept_table *table, uint64_t bytes)
{
	unsigned count = 1;

	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next)) {
		count += !kept->implied;
		bytes += kept->implied ? 0 : kept->memory_bytes;
	}
	if (count <= table->limits.count_max && bytes <= table->limits.memory_max)
		return NULL;
	return error_new(ERROR_LIMIT,
			 "there is no room beside those that keep= asked for (%s); with "
			 "keep= it takes the place of one of them",
			 count > table->limits.count_max ? "max_kept_scans" : "max_kept_memory");
}

static struct error *check_offer(struct kept_table *table, const struct kept_offer *offer,
				 const struct helper *decoder, uint64_t bytes)
{
	char reason[PRESSURE_REASON_SIZE];

	if (!table->limits.count_max)
		return error_new(ERROR_LIMIT, "the configuration keeps none (max_kept_scans = 0)");
	if (!helper_runs(decoder))
		return error_new(ERROR_SYSTEM, "its decoder has ended");
	if (!offer->id.len || offer->id.len > KEPT_ID_MAX_BYTES ||
	    find(table, offer->asker, offer->id))
		return error_new(ERROR_BAD_REQUEST, "its id is taken, or none");
	if (bytes > table->limits.memory_max)
		return error_new(ERROR_LIMIT,
				 "it takes %" PRIu64 " bytes of memory, and all that are kept may "
				 "take %" PRIu64 " (max_kept_memory)",
				 bytes, table->limits.memory_max);
	if (pressure_look(&table->pressure, supervisor_now_us(), reason))
		return error_new(ERROR_OUT_OF_MEMORY, "%s", reason);
	return offer->implied ? check_room(table, bytes) : NULL;
}

static uint64_t until_ns(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ms * 1000000;
}

static void set_expiry(struct kept_scan *kept, uint64_t ms)
{
	ms = ms < KEPT_MAX_MS ? ms : KEPT_MAX_MS;
	kept->until_ns = until_ns(ms);
	kept->expired = false;
	event_timer_set(&kept->expiry, ms);
}

static struct error *kept_new(struct kept_table *table, const struct kept_offer *offer,
			      struct kept_scan **ret)
{
	struct kept_scan *kept = calloc(1, sizeof(*kept));
	struct error *err;

	if (!kept)
		return &error_nomem;
	kept->table = table;
	kept->asker = offer->asker;
	kept->pid = offer->pid;
	kept->start_ticks = offer->start_ticks;
	kept->implied = offer->implied;
	kept->id_size = offer->id.len;
	memcpy(kept->id, offer->id.data, offer->id.len);
	kept->end = &kept->first;
	kept->patience.source.fd = -1;
	kept->patience.loop = table->loop;
	err = event_timer_init(&kept->expiry, table->loop, time_is_over);
	if (!err)
		err = event_timer_init(&kept->patience, table->loop, patience_is_over);
	if (err) {
		kept_free(kept);
		return err;
	}
	set_expiry(kept, offer->ms);
	*ret = kept;
	return NULL;
}

struct error *kept_table_add(struct kept_table *table, const struct kept_offer *offer,
			     struct helper *decoder, uint64_t *ret_until_ns)
{
	uint64_t bytes = helper_runs(decoder) ? read_memory(table, decoder, 0) : 0;
	struct error *err = check_offer(table, offer, decoder, bytes);
	struct kept_scan **link = &table->oldest;
	struct kept_scan *kept;

	if (!err)
		err = kept_new(table, offer, &kept);
	if (err)
		return err;
	make_room(table, 1, bytes);
	kept->memory_bytes = bytes;
	kept->decoder = decoder;
	helper_hand_over(decoder, &kept_decoder_kind, kept);
	while (*link)
		link = &(*link)->next;
	*link = kept;
	event_timer_set(&table->look, table->limits.look_ms);
	*ret_until_ns = kept->until_ns;
	return NULL;
}

struct error *kept_table_ask(struct kept_table *table, const void *asker,
			     const Goheapd__Ask *request, struct reply *reply, struct job **ret)
{
	struct kept_scan *kept = find(table, asker, request->id);
	struct kept_question *question;
	unsigned count = 0;
	struct error *err;

	if (!kept || kept->expired)
		return not_kept();
	if (goheapd__analysis__get_packed_size(request->analysis) > KEPT_QUESTION_MAX_BYTES)
		return error_new(ERROR_BAD_REQUEST, "a question to a kept scan has up to %d bytes",
				 KEPT_QUESTION_MAX_BYTES);
	for (question = kept->first; question; question = question->next)
		count++;
	if (count >= KEPT_QUESTIONS_MAX)
		return error_new(ERROR_BUSY, "%u questions wait for this kept scan", count);
	err = kept_question_new(table->loop, request, reply, question_given_up, kept, &question);
	if (err)
		return err;
	*kept->end = question;
	kept->end = &question->next;
	*ret = &question->job;
	send_next(kept);
	return NULL;
}

struct error *kept_table_change(struct kept_table *table, const void *asker,
				const Goheapd__Ask *request)
{
	struct kept_scan *kept = find(table, asker, request->id);

	if (!kept)
		return not_kept();
	if (request->drop) {
		drop(kept, "it was asked for", ERROR_NOT_FOUND);
		return NULL;
	}
	kept->implied &= request->keep_implied;
	set_expiry(kept, request->keep_ms);
	return NULL;
}

static struct error *describe(const struct kept_scan *kept, Goheapd__KeptScan **ret)
{
	Goheapd__KeptScan *scan = malloc(sizeof(*scan));

	if (!scan)
		return &error_nomem;
	goheapd__kept_scan__init(scan);
	scan->id.data = malloc(kept->id_size);
	if (!scan->id.data) {
		free(scan);
		return &error_nomem;
	}
	memcpy(scan->id.data, kept->id, kept->id_size);
	scan->id.len = kept->id_size;
	scan->until_ns = kept->until_ns;
	scan->memory_bytes = kept->memory_bytes;
	*ret = scan;
	return NULL;
}

static struct error *fill_list(const struct kept_table *table, const void *asker,
			       Goheapd__KeptScans *list)
{
	list->scans = calloc(count_kept(table) + (size_t)1, sizeof(*list->scans));
	if (!list->scans)
		return &error_nomem;
	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next)) {
		struct error *err;

		if (kept->asker != asker)
			continue;
		err = describe(kept, &list->scans[list->n_scans]);
		if (err)
			return err;
		list->n_scans++;
	}
	return NULL;
}

struct error *kept_table_list(const struct kept_table *table, const void *asker,
			      Goheapd__KeptScans **ret)
{
	Goheapd__KeptScans *list = malloc(sizeof(*list));
	struct error *err;

	if (!list)
		return &error_nomem;
	goheapd__kept_scans__init(list);
	err = fill_list(table, asker, list);
	if (err) {
		goheapd__kept_scans__free_unpacked(list, NULL);
		return err;
	}
	*ret = list;
	return NULL;
}

void kept_table_drop_all(struct kept_table *table, const void *asker, const char *reason)
{
	for (struct kept_scan *kept = alive(table->oldest); kept; kept = alive(kept->next)) {
		if (!asker || kept->asker == asker)
			drop(kept, reason, ERROR_AGENT_UNAVAILABLE);
	}
}
