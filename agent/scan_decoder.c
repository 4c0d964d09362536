#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/scan_state.h"
#include "agent/supervise.h"
#include "proto/base/log.h"
#include "proto/wire/failure.h"

/* ---- what the decoder says ---- */

/* That an index could not be kept is no reason to fail. Consumes err. */
static void note_not_kept(struct error *err)
{
	if (err)
		log_warning("scan",
			    "an index could not be kept, the next scan makes it anew "
			    "err=\"%s\"",
			    error_message(err));
	error_free(err);
}

static struct error *hear_index(struct scan_job *scan, const Goheapd__IndexContent *index)
{
	if (!scan->opened || index->content.len > LIMIT_INDEX_BYTES)
		return error_new(ERROR_FORMAT, "an index of %zu bytes", index->content.len);
	note_not_kept(index_store_write(&scan->job.supervisor->indexes, INDEX_LAYOUT,
					&scan->executable, index->content.data,
					index->content.len));
	return NULL;
}

static struct error *hear_type_search(struct scan_job *scan)
{
	int fd scoped(closep) = -1;
	Goheapd__DecoderOrder order = GOHEAPD__DECODER_ORDER__INIT;
	Goheapd__TypeIndexFile file = GOHEAPD__TYPE_INDEX_FILE__INIT;

	if (!scan->opened || scan->types_asked)
		return error_new(ERROR_FORMAT, "types were asked for too early or twice");
	scan->types_asked = true;
	fd = index_store_open(&scan->job.supervisor->indexes, INDEX_TYPES, &scan->executable);
	order.body_case = GOHEAPD__DECODER_ORDER__BODY_TYPE_INDEX;
	order.type_index = &file;
	return helper_send(scan->decoder, &order.base, &fd, fd < 0 ? 0 : 1);
}

/* Once, since it is a lot to write. */
static struct error *hear_types(struct scan_job *scan, struct frame *frame)
{
	struct error *err;

	if (!scan->types_asked || scan->types_told || frame->fd_count != 1)
		return error_new(ERROR_FORMAT, "types that nobody waits for");
	scan->types_told = true;
	err = index_store_write_types(&scan->job.supervisor->indexes, &scan->executable,
				      frame->fds[0]);
	if (err && error_code(err) == ERROR_FORMAT)
		return err;
	note_not_kept(err);
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
	scan_settle(scan);
	return NULL;
}

static struct error *hear_failure(struct scan_job *scan, const Goheapd__Failure *failure)
{
	if (scan->result || scan->decoder_failure)
		return error_new(ERROR_FORMAT, "a second result");
	scan->decoder_failure = failure_make_error(failure);
	scan_settle(scan);
	return NULL;
}

static struct error *hear_decoder(struct helper *helper, struct frame *frame)
{
	struct scan_job *scan = helper->owner;
	Goheapd__DecoderEvent *event = (Goheapd__DecoderEvent *)frame->message;

	switch (event->body_case) {
	case GOHEAPD__DECODER_EVENT__BODY_INDEX:
		return hear_index(scan, event->index);
	case GOHEAPD__DECODER_EVENT__BODY_TYPE_INDEX_SEARCH:
		return hear_type_search(scan);
	case GOHEAPD__DECODER_EVENT__BODY_TYPE_INDEX:
		return hear_types(scan, frame);
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

struct error *scan_decoder_death(const struct helper *helper, int status)
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
	struct scan_job *scan = helper->owner;

	if (!scan->result && !scan->decoder_failure)
		scan->decoder_failure = scan_decoder_death(helper, status);
	scan_settle(scan);
}

const struct helper_kind scan_decoder_kind = {
	"decoder", &frame_decoder_order, &frame_decoder_event, { hear_decoder, decoder_ended }
};
