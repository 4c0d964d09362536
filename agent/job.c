#include "agent/job.h"

#include <inttypes.h>
#include <sys/random.h>

#include "proto/base/log.h"
#include "proto/wire/failure.h"

void job_answer(struct job *job, Goheapd__Answer *answer)
{
	struct reply *reply = take(job->reply);

	if (reply)
		reply->answer(reply, answer);
}

/* A failure of our own: the message stays in the log, the asker gets the id to find it by. */
static struct error *hide_internal(const struct job *job, struct error *err)
{
	uint64_t id = 0;
	char message[1024];

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) < 0)
		id = (uint64_t)(uintptr_t)job;
	log_error(job->ops->name, "a request failed, others go on id=%016" PRIx64 " err=\"%s\"", id,
		  log_escape(error_message(err), message, sizeof(message)));
	error_free(err);
	return error_new(ERROR_SYSTEM,
			 "the %s failed inside goheapd; the log has more under id %016" PRIx64,
			 job->ops->name, id);
}

void job_fail(struct job *job, struct error *err)
{
	Goheapd__Answer answer = GOHEAPD__ANSWER__INIT;
	Goheapd__Failure failure;

	if (failure_of_error(error_code(err)) == GOHEAPD__FAILURE_CODE__FAILURE_INTERNAL)
		err = hide_internal(job, err);
	failure_from_error(err, &failure);
	answer.body_case = GOHEAPD__ANSWER__BODY_FAILURE;
	answer.failure = &failure;
	job_answer(job, &answer);
	error_free(err);
}

void job_abandon(struct job *job)
{
	job->reply = NULL;
	job->ops->stop(job);
}
