#include "agent/keeper_search.h"

#include "agent/keeper_debug.h"
#include "agent/keeper_plugins.h"

/* Marks a search as done; another of its kind is one too many. */
static struct error *begin(bool *done)
{
	if (*done)
		return error_new(ERROR_FORMAT, "a second search for the same files");
	*done = true;
	return NULL;
}

static struct error *answer(struct keeper_searches *s, const Goheapd__PlanEvent *event)
{
	bool debug = event->body_case == GOHEAPD__PLAN_EVENT__BODY_DEBUG_SEARCH;
	struct error *err = begin(debug ? &s->debug_done : &s->plugins_done);

	if (err)
		return err;
	return debug ? keeper_find_debug(s->keeper, s->process, s->debug_dir, event->debug_search)
		     : keeper_find_plugins(s->keeper, s->process, event->plugin_search);
}

struct error *keeper_search(struct keeper_searches *searches, struct frame *frame,
			    bool *ret_answered)
{
	const Goheapd__PlanEvent *event = (const Goheapd__PlanEvent *)frame->message;
	struct error *err;

	*ret_answered = event->body_case == GOHEAPD__PLAN_EVENT__BODY_DEBUG_SEARCH ||
			event->body_case == GOHEAPD__PLAN_EVENT__BODY_PLUGIN_SEARCH;
	if (!*ret_answered)
		return NULL;
	err = answer(searches, event);
	frame_fini(frame);
	return err;
}
