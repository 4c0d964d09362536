#include "agent/kept_question.h"

#include <stdlib.h>

#define question_of(pointer, member)                                                               \
	((struct kept_question *)((char *)(pointer)-offsetof(struct kept_question, member)))

static void question_stop(struct job *job)
{
	struct kept_question *question = question_of(job, job);

	question->given_up(question);
}

static void question_free(struct job *job)
{
	kept_question_free(question_of(job, job));
}

static const struct job_ops question_ops = { "question", question_stop, question_free };

static void time_is_up(struct event_timer *timer)
{
	struct kept_question *question = question_of(timer, timer);

	job_fail(&question->job, error_new(ERROR_TIMEOUT, "the kept scan did not answer in time"));
	question->given_up(question);
}

static Goheapd__Analysis *copy_analysis(const Goheapd__Analysis *analysis)
{
	size_t size = goheapd__analysis__get_packed_size(analysis);
	uint8_t *bytes scoped(freep) = malloc(size + 1);

	if (!bytes)
		return NULL;
	goheapd__analysis__pack(analysis, bytes);
	return goheapd__analysis__unpack(NULL, size, bytes);
}

struct error *kept_question_new(struct event_loop *loop, const Goheapd__Ask *request,
				struct reply *reply,
				void (*given_up)(struct kept_question *question), void *owner,
				struct kept_question **ret)
{
	struct kept_question *question = calloc(1, sizeof(*question));
	struct error *err;

	if (!question)
		return &error_nomem;
	question->job = (struct job){ .ops = &question_ops, .reply = reply };
	question->given_up = given_up;
	question->owner = owner;
	err = event_timer_init(&question->timer, loop, time_is_up);
	if (!err) {
		question->analysis = copy_analysis(request->analysis);
		err = question->analysis ? NULL : &error_nomem;
	}
	if (err) {
		kept_question_free(question);
		return err;
	}
	event_timer_set(&question->timer, request->timeout_ms);
	*ret = question;
	return NULL;
}

void kept_question_free(struct kept_question *question)
{
	if (!question)
		return;
	event_timer_fini(&question->timer);
	goheapd__analysis__free_unpacked(question->analysis, NULL);
	free(question);
}

void kept_question_fail(struct kept_question *question, struct error *err)
{
	if (question->job.reply)
		job_fail(&question->job, err);
	else
		error_free(err);
	kept_question_free(question);
}
