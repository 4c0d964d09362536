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

static struct error *attribute(struct coloring *coloring, struct party_usage *usage)
{
	uint64_t shared_count = coloring_count(coloring, usage);

	for (uint32_t i = 0; i < coloring->input->party_count; i++) {
		usage[i].reachable = usage[i].exclusive;
		usage[i].share_bytes = usage[i].exclusive.bytes;
	}
	return shared_count ? attribute_shared(coloring, shared_count, usage) : NULL;
}

/* Few are told apart by marking. */
static struct error *attribute_to_few(const struct label_attribution *input,
				      struct party_usage *usage)
{
	struct mark *mark scoped(mark_freep) = NULL;
	struct error *err = mark_run_parties(input, true, &mark);

	return err ? err : mark_count_parties(mark, input->thread_count, usage);
}

static struct error *attribute_to_many(const struct label_attribution *input,
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
	err = attribute(&coloring, usage);
	coloring_fini(&coloring);
	return err;
}

struct error *label_attribute(const struct label_attribution *input, struct party_usage *usage)
{
	struct error *err = input->party_count <= MARK_PARTIES_MAX
				? attribute_to_few(input, usage)
				: attribute_to_many(input, usage);

	return err ? error_context(err, "attribution") : NULL;
}
