#include <stdio.h>
#include <stdlib.h>

#include "agent/decoder_target.h"
#include "agent/goruntime/stack.h"
#include "agent/report/message.h"
#include "agent/report/overview.h"

static struct error *warn(Goheapd__OverviewResult *result, const char *code, const char *message)
{
	Goheapd__Warning *warning;
	struct error *err = message_reserve((void ***)&result->warnings, result->n_warnings);

	if (err)
		return err;
	warning = malloc(sizeof(*warning));
	if (!warning)
		return &error_nomem;
	goheapd__warning__init(warning);
	result->warnings[result->n_warnings++] = warning;
	err = message_string(code, &warning->code);
	return err ? err : message_text(message, &warning->message);
}

/* Only a stopped process can be held against all that must agree; here it is said, not verified. */
static struct error *warn_of_layout(Goheapd__OverviewResult *result,
				    const struct decoder_layout *source)
{
	char message[3 * LAYOUT_VERSION_SIZE];

	if (source->exact)
		return NULL;
	snprintf(
	    message, sizeof(message),
	    "nothing is known of %s; the layout of %s was used, and only a scan can say whether "
	    "it fits",
	    source->layout->version, source->table_version);
	return warn(result, "layout_nearest", message);
}

/* What cannot be read of a running process is left out, with a warning. Consumes err. */
static struct error *forgive(Goheapd__OverviewResult *result, struct error *err)
{
	struct error *warn_err;

	if (!err || error_code(err) == ERROR_GONE || error_code(err) == ERROR_NOMEM)
		return err;
	warn_err = warn(result, "incomplete", error_message(err));
	error_free(err);
	return warn_err;
}

static struct error *read_gc(const struct decoder_target *target, Goheapd__OverviewResult *result)
{
	struct error *err =
	    forgive(result, overview_gc(target->memory, target->layout, &result->gc));

	if (err || result->gc)
		return err;
	result->gc = malloc(sizeof(*result->gc));
	if (!result->gc)
		return &error_nomem;
	goheapd__gc_state__init(result->gc);
	return NULL;
}

static struct error *read_memory(const struct decoder_target *target,
				 Goheapd__OverviewResult *result)
{
	struct error *err =
	    forgive(result, overview_memory(target->memory, target->layout, &result->memory));

	if (err)
		return err;
	if (!result->memory) {
		result->memory = malloc(sizeof(*result->memory));
		if (!result->memory)
			return &error_nomem;
		goheapd__runtime_memory__init(result->memory);
	}
	result->memory->has_rss_bytes = true;
	result->memory->rss_bytes = target->opened->rss_bytes;
	return NULL;
}

static struct error *read_goroutines(const struct decoder_target *target,
				     Goheapd__OverviewResult *result)
{
	struct error *err = forgive(
	    result, overview_goroutines(target->memory, target->layout, &result->goroutines));

	result->has_goroutines = result->goroutines != 0;
	return err;
}

static struct error *read_cost(const struct decoder_target *target, unsigned workers,
			       Goheapd__OverviewResult *result)
{
	const Goheapd__TargetOpened *opened = target->opened;
	struct overview_cost figures = { 0 };
	Goheapd__Cost *cost = malloc(sizeof(*cost));
	struct error *err;

	if (!cost)
		return &error_nomem;
	goheapd__cost__init(cost);
	result->cost = cost;
	err = forgive(result, overview_cost(target->memory, target->layout, workers, &figures));
	cost->mode = opened->mode;
	cost->pause_us = opened->pause_us;
	if (opened->mode == GOHEAPD__MODE__MODE_STOP)
		cost->pause_us += result->goroutines * STACK_SCAN_US;
	cost->read_bytes = figures.read_bytes;
	cost->memory_bytes = figures.memory_bytes;
	cost->has_why = opened->has_why;
	if (err || !opened->has_why)
		return err;
	return message_bytes(opened->why.data, opened->why.len, &cost->why);
}

static struct error *fill(struct decoder_target *target, unsigned workers,
			  Goheapd__OverviewResult *result)
{
	Goheapd__TargetOpened *opened = (Goheapd__TargetOpened *)(uintptr_t)target->opened;
	struct error *err = decoder_target_identity(target, &result->identity);

	result->threads = opened->threads;
	result->cgroup = take(opened->cgroup);
	if (!err)
		err = decoder_target_detail(target, &result->detail);
	for (unsigned i = 0; !err && i < target->source.refusal_count; i++)
		err = warn(result, "debug_file_refused", target->source.refusals[i]);
	if (!err)
		err = warn_of_layout(result, &target->source);
	if (!err)
		err = read_gc(target, result);
	if (!err)
		err = read_memory(target, result);
	if (!err)
		err = read_goroutines(target, result);
	return err ? err : read_cost(target, workers, result);
}

static struct error *send_result(struct decoder *decoder, Goheapd__OverviewResult *result)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;

	event.body_case = GOHEAPD__DECODER_EVENT__BODY_OVERVIEW;
	event.overview = result;
	return decoder_tell_result(decoder, &event);
}

struct error *decoder_overview(struct decoder *decoder, const Goheapd__DecodeOverview *task)
{
	struct decoder_target target;
	Goheapd__OverviewResult *result = NULL;
	struct error *err = decoder_target_open(decoder, &target);

	if (!err) {
		result = malloc(sizeof(*result));
		err = result ? NULL : &error_nomem;
	}
	if (!err) {
		goheapd__overview_result__init(result);
		err = fill(&target, task->workers, result);
	}
	if (!err)
		err = send_result(decoder, result);
	goheapd__overview_result__free_unpacked(result, NULL);
	decoder_target_fini(&target);
	return err;
}
