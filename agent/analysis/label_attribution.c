#include "agent/analysis/label_attribution.h"

#include <inttypes.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/label_color.h"
#include "agent/analysis/label_group.h"
#include "agent/analysis/label_owner.h"
#include "agent/analysis/label_reach.h"
#include "agent/analysis/mark.h"
#include "agent/analysis/root_set.h"

uint32_t label_party_of_root(const struct label_attribution *input, const struct heap_root *root)
{
	if (root->goroutine != ROOT_NO_GOROUTINE)
		return input->party_of[root->goroutine];
	if (root->kind == ROOT_SYSTEM_STACK)
		return label_system_party(input);
	return label_global_party(input);
}

uint32_t label_party_of_owner(const struct label_attribution *input,
			      const struct label_owner *owner)
{
	return owner->goroutine == ROOT_NO_GOROUTINE ? label_global_party(input)
						     : input->party_of[owner->goroutine];
}

static struct error *attribute_shared(struct coloring *coloring, uint64_t shared_count,
				      struct party_usage *usage)
{
	struct pair_list entries;
	struct groups groups;
	struct error *err;

	pair_list_init(&entries, coloring->budget);
	err = coloring_entries(coloring, &entries);
	if (!err)
		err = groups_find(coloring, shared_count, &entries, &groups);
	if (!err) {
		err = label_reach(coloring->input, &groups, &entries, coloring->budget, usage);
		groups_fini(&groups);
	}
	pair_list_fini(&entries);
	return err;
}

/* What the walk that coloured says of liveness is what marking would say. */
static struct error *make_mark(const struct coloring *coloring, struct mark *mark,
			       const struct party_usage *usage, const struct size_count *shared)
{
	const struct label_attribution *input = coloring->input;
	uint64_t objects = shared->objects, bytes[MARK_PHASE_COUNT];

	bytes[MARK_SYSTEM_STACK] = shared->bytes;
	for (uint32_t i = 0; i < input->party_count; i++) {
		objects += usage[i].exclusive.objects;
		bytes[MARK_SYSTEM_STACK] += usage[i].exclusive.bytes;
	}
	bytes[MARK_CONSERVATIVE] =
	    bytes[MARK_SYSTEM_STACK] - coloring->later_bytes[MARK_SYSTEM_STACK];
	bytes[MARK_EXACT] = bytes[MARK_CONSERVATIVE] - coloring->later_bytes[MARK_CONSERVATIVE];
	return mark_complete(mark, input->roots, input->specials, input->thread_count, objects,
			     bytes);
}

/* Fills the mark too, unless it is NULL. */
static struct error *attribute(struct coloring *coloring, struct mark *mark,
			       struct party_usage *usage)
{
	struct size_count shared;
	struct error *err =
	    coloring_count(coloring, mark ? mark_states(mark) : NULL, usage, &shared);

	if (!err && mark)
		err = make_mark(coloring, mark, usage, &shared);
	if (err)
		return err;
	for (uint32_t i = 0; i < coloring->input->party_count; i++) {
		usage[i].reachable = usage[i].exclusive;
		usage[i].share_bytes = usage[i].exclusive.bytes;
	}
	return shared.objects ? attribute_shared(coloring, shared.objects, usage) : NULL;
}

static struct error *attribute_to_many(const struct label_attribution *input, struct mark *mark,
				       struct party_usage *usage)
{
	struct budget budget = graph_budget_left(input->graph);
	struct coloring coloring;
	struct error *err;

	if (input->party_count > PARTIES_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu32 " parties to attribute memory to",
				 input->party_count);
	err = coloring_init(&coloring, input, &budget);
	if (err)
		return err;
	err = attribute(&coloring, mark, usage);
	coloring_fini(&coloring);
	return err;
}

static struct error *mark_and_attribute(const struct label_attribution *input, bool second,
					struct party_usage *usage, struct mark **ret)
{
	struct mark *mark scoped(mark_freep) = NULL;
	struct error *err;

	if (input->party_count <= MARK_PARTIES_MAX) {
		err = mark_run_parties(input, second, &mark);
		if (!err)
			err = mark_count_parties(mark, input->thread_count, usage);
	} else {
		err = mark_begin(input->graph, &mark);
		if (!err)
			err = attribute_to_many(input, mark, usage);
	}
	if (err)
		return error_context(err, "attribution");
	*ret = take(mark);
	return NULL;
}

struct error *label_mark(const struct label_attribution *input, struct party_usage *usage,
			 struct mark **ret)
{
	return mark_and_attribute(input, false, usage, ret);
}

struct error *label_attribute(const struct label_attribution *input, struct party_usage *usage)
{
	struct mark *mark scoped(mark_freep) = NULL;
	struct error *err;

	if (input->party_count <= MARK_PARTIES_MAX)
		return mark_and_attribute(input, true, usage, &mark);
	err = attribute_to_many(input, NULL, usage);
	return err ? error_context(err, "attribution") : NULL;
}
