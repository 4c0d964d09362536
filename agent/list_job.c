#include "agent/list_job.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/facts.h"
#include "agent/file_key.h"
#include "agent/helper.h"
#include "agent/report/message.h"
#include "agent/supervise.h"
#include "agent/target/process.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

/* A process that may be in the answer, by the key of its executable. */
struct candidate {
	pid_t pid;
	uint64_t start_ticks;
	Goheapd__FileKey key;
};

enum {
	CANDIDATES_MAX = 1 << 16,
	LIST_TIMEOUT_MS = 20000,
	/* a hostile executable may cost the decoder this much */
	LIST_DECODER_MEMORY = 1 << 30,
};

struct list_job {
	struct job job;
	struct helper keeper, decoder;
	struct event_timer timeout;
	struct candidate *candidates;
	size_t count, capacity;
	bool keeper_done;   /* it has been through all processes */
	size_t asked, told; /* executables that the decoder was and has been asked about */
};

static struct list_job *list_of(struct job *job)
{
	return (struct list_job *)job;
}

#define list_of_helper(helper, member)                                                             \
	((struct list_job *)((char *)(helper)-offsetof(struct list_job, member)))

static void stop_helpers(struct list_job *list)
{
	helper_kill(&list->keeper);
	helper_kill(&list->decoder);
}

static void fail(struct list_job *list, struct error *err)
{
	job_fail(&list->job, err);
	stop_helpers(list);
}

/* ---- the answer ---- */

static struct error *set_identity(Goheapd__Process *message, const struct identity *identity)
{
	if (!identity->inspectable && message->inspectable) {
		message->inspectable = false;
		message->has_reason = true;
		return message_text(identity->reason, &message->reason);
	}
	return NULL;
}

static struct error *make_process(const struct process *process, const struct identity *identity,
				  Goheapd__Process **ret)
{
	Goheapd__Process *message;
	struct error *err = facts_process(process, &message);

	if (err)
		return err;
	err = set_identity(message, identity);
	if (!err && identity->go_version[0]) {
		message->has_go_version = true;
		err = message_text(identity->go_version, &message->go_version);
	}
	if (err) {
		goheapd__process__free_unpacked(message, NULL);
		return err;
	}
	*ret = message;
	return NULL;
}

/* Adds a candidate if it is a Go program and still that process. */
static struct error *add_process(struct list_job *list, const struct candidate *candidate,
				 Goheapd__ProcessList *answer)
{
	struct supervisor *supervisor = list->job.supervisor;
	const struct identity *identity =
	    identity_cache_find(&supervisor->identities, &candidate->key);
	struct process *process scoped(process_freep) = NULL;
	struct error *err;

	if (!identity || !identity->is_go)
		return NULL;
	err = process_read(&supervisor->procfs, candidate->pid, &process);
	if (err) {
		/* it ended meanwhile: ordinary life */
		error_free(err);
		return NULL;
	}
	if (process->start_ticks != candidate->start_ticks ||
	    supervisor_owns(supervisor, process->pid, process->tracer_pid) ||
	    facts_is_snapshot(process))
		return NULL;
	err = message_reserve((void ***)&answer->processes, answer->n_processes);
	if (err)
		return err;
	err = make_process(process, identity, &answer->processes[answer->n_processes]);
	if (!err)
		answer->n_processes++;
	return err;
}

static void answer(struct list_job *list)
{
	Goheapd__Answer message = GOHEAPD__ANSWER__INIT;
	Goheapd__ProcessList *processes = malloc(sizeof(*processes));
	struct error *err = processes ? NULL : &error_nomem;

	if (processes)
		goheapd__process_list__init(processes);
	for (size_t i = 0; !err && i < list->count; i++)
		err = add_process(list, &list->candidates[i], processes);
	if (err) {
		job_fail(&list->job, err);
	} else {
		message.body_case = GOHEAPD__ANSWER__BODY_PROCESS_LIST;
		message.process_list = processes;
		job_answer(&list->job, &message);
	}
	goheapd__process_list__free_unpacked(processes, NULL);
	stop_helpers(list);
}

static void answer_when_complete(struct list_job *list)
{
	if (list->job.reply && list->keeper_done && list->told == list->asked)
		answer(list);
}

/* ---- what the keeper says ---- */

static struct error *add_candidate(struct list_job *list, const Goheapd__KeeperListed *listed)
{
	if (list->count == CANDIDATES_MAX)
		return error_new(ERROR_LIMIT, "more than %d processes", CANDIDATES_MAX);
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct candidate *candidates =
		    reallocarray(list->candidates, capacity, sizeof(*candidates));

		if (!candidates)
			return &error_nomem;
		list->candidates = candidates;
		list->capacity = capacity;
	}
	list->candidates[list->count++] = (struct candidate){ .pid = (pid_t)listed->pid,
							      .start_ticks = listed->start_ticks,
							      .key = *listed->executable };
	return NULL;
}

/* Whether an earlier candidate of this listing has the same executable. */
static bool is_asked(const struct list_job *list, const Goheapd__FileKey *key)
{
	for (size_t i = 0; i + 1 < list->count; i++)
		if (file_key_equal(&list->candidates[i].key, key))
			return true;
	return false;
}

static struct error *identify(struct list_job *list, int exe_fd)
{
	Goheapd__DecoderOrder order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__Identify identify = GOHEAPD__IDENTIFY__INIT;
	struct error *err;

	identify.id = (uint32_t)(list->count - 1);
	order.body_case = GOHEAPD__DECODER_ORDER__BODY_IDENTIFY;
	order.identify = &identify;
	err = helper_send(&list->decoder, &order.base, &exe_fd, 1);
	if (!err)
		list->asked++;
	return err;
}

static struct error *hear_listed(struct list_job *list, const Goheapd__KeeperListed *listed,
				 struct frame *frame)
{
	int exe_fd scoped(closep) = frame_take_fd(frame, 0);
	struct error *err;

	if (exe_fd < 0)
		return error_new(ERROR_FORMAT, "a process without its executable");
	err = add_candidate(list, listed);
	if (err || identity_cache_find(&list->job.supervisor->identities, listed->executable) ||
	    is_asked(list, listed->executable))
		return err;
	return identify(list, exe_fd);
}

static struct error *hear_keeper(struct helper *helper, struct frame *frame)
{
	struct list_job *list = list_of_helper(helper, keeper);
	const Goheapd__KeeperEvent *event = (const Goheapd__KeeperEvent *)frame->message;

	switch (event->body_case) {
	case GOHEAPD__KEEPER_EVENT__BODY_LISTED:
		return hear_listed(list, event->listed, frame);
	case GOHEAPD__KEEPER_EVENT__BODY_DONE:
		list->keeper_done = true;
		if (event->done->failure)
			fail(list, failure_make_error(event->done->failure));
		answer_when_complete(list);
		return NULL;
	default:
		return error_new(ERROR_FORMAT, "event %d of a listing", event->body_case);
	}
}

/* ---- what the decoder says ---- */

static struct error *hear_decoder(struct helper *helper, struct frame *frame)
{
	struct list_job *list = list_of_helper(helper, decoder);
	const Goheapd__DecoderEvent *event = (const Goheapd__DecoderEvent *)frame->message;
	struct error *err;

	if (event->body_case != GOHEAPD__DECODER_EVENT__BODY_IDENTIFIED ||
	    event->identified->id >= list->count || list->told == list->asked)
		return error_new(ERROR_FORMAT, "event %d of a listing", event->body_case);
	err = identity_cache_add(&list->job.supervisor->identities,
				 &list->candidates[event->identified->id].key, event->identified);
	list->told++;
	if (!err)
		answer_when_complete(list);
	return err;
}

/* ---- its end ---- */

static void end_if_alone(struct list_job *list)
{
	if (helper_runs(&list->keeper) || helper_runs(&list->decoder))
		return;
	if (list->job.reply)
		job_fail(&list->job, error_new(ERROR_SYSTEM, "a helper of the listing died"));
	supervisor_remove(&list->job);
}

static void keeper_ended(struct helper *helper, int status)
{
	struct list_job *list = list_of_helper(helper, keeper);

	(void)status;
	if (!list->keeper_done)
		stop_helpers(list);
	end_if_alone(list);
}

static void decoder_ended(struct helper *helper, int status)
{
	struct list_job *list = list_of_helper(helper, decoder);

	(void)status;
	stop_helpers(list);
	end_if_alone(list);
}

static const struct helper_kind list_keeper = {
	"keeper", &frame_keeper_order, &frame_keeper_event, { hear_keeper, keeper_ended }
};
static const struct helper_kind list_decoder = {
	"decoder", &frame_decoder_order, &frame_decoder_event, { hear_decoder, decoder_ended }
};

static void list_timeout(struct event_timer *timer)
{
	struct list_job *list =
	    (struct list_job *)((char *)timer - offsetof(struct list_job, timeout));

	fail(list, error_new(ERROR_TIMEOUT, "the processes were not listed within %d s",
			     LIST_TIMEOUT_MS / 1000));
}

static void list_stop(struct job *job)
{
	stop_helpers(list_of(job));
}

static void list_free(struct job *job)
{
	struct list_job *list = list_of(job);

	helper_fini(&list->keeper);
	helper_fini(&list->decoder);
	event_timer_fini(&list->timeout);
	free(list->candidates);
	free(list);
}

static const struct job_ops list_ops = { "listing", list_stop, list_free };

static struct error *start_helpers(struct list_job *list)
{
	struct event_loop *loop = list->job.supervisor->loop;
	Goheapd__KeeperOrder order = GOHEAPD__KEEPER_ORDER__INIT;
	Goheapd__KeeperList keeper_list = GOHEAPD__KEEPER_LIST__INIT;
	struct error *err =
	    helper_start(&list->decoder, &list_decoder, loop, -1, LIST_DECODER_MEMORY);

	if (!err)
		err = helper_start(&list->keeper, &list_keeper, loop, -1, 0);
	if (!err)
		err = event_timer_init(&list->timeout, loop, list_timeout);
	if (err)
		return err;
	list->job.keeper = list->keeper.child.pid;
	event_timer_set(&list->timeout, LIST_TIMEOUT_MS);
	order.body_case = GOHEAPD__KEEPER_ORDER__BODY_LIST;
	order.list = &keeper_list;
	return helper_send(&list->keeper, &order.base, NULL, 0);
}

struct error *list_job_start(struct supervisor *supervisor, struct reply *reply, struct job **ret)
{
	struct list_job *list = calloc(1, sizeof(*list));
	struct error *err;

	if (!list)
		return &error_nomem;
	list->job = (struct job){ .supervisor = supervisor, .ops = &list_ops, .reply = reply };
	list->timeout.source.fd = -1;
	list->timeout.loop = supervisor->loop;
	err = start_helpers(list);
	if (err) {
		list_free(&list->job);
		return err;
	}
	supervisor_add(supervisor, &list->job);
	*ret = &list->job;
	return NULL;
}
