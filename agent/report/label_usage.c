#include "agent/report/label_usage.h"

#include <stdlib.h>

#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/label.h"
#include "agent/report/decoded.h"
#include "agent/report/label_grouping.h"

void label_usage_fini(struct label_usage *usage)
{
	free(usage->party_of);
	free(usage->goroutines);
	free(usage->memory);
	*usage = (struct label_usage){ 0 };
}

struct error *label_usage_init(struct label_usage *usage, const struct decoded *decoded,
			       uint32_t named_count)
{
	uint32_t count = goroutine_table_count(decoded->goroutines);

	*usage = (struct label_usage){
		.party_count = named_count + 2,
		.party_of = calloc(count + (size_t)1, sizeof(*usage->party_of)),
		.goroutines = calloc(named_count + (size_t)2, sizeof(*usage->goroutines)),
	};
	if (!usage->party_of || !usage->goroutines) {
		label_usage_fini(usage);
		return &error_nomem;
	}
	for (uint32_t i = 0; i < count; i++)
		if (goroutine_table_at(decoded->goroutines, i)->system)
			usage->party_of[i] = named_count;
	return NULL;
}

static void count_goroutines(struct label_usage *usage, const struct goroutine_table *goroutines)
{
	for (uint32_t i = 0; i < goroutine_table_count(goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(goroutines, i);
		struct party_goroutines *party = &usage->goroutines[usage->party_of[i]];

		if (!goroutine_is_alive(g))
			continue;
		party->count++;
		party->stack_bytes += goroutine_stack_bytes(g);
		party->parked += g->status == GOROUTINE_WAITING || g->status == GOROUTINE_LEAKED;
	}
}

/* Goroutines whose labels could not be read are with those that have none. */
static uint32_t set_party(const struct label_table *labels, uint32_t goroutine)
{
	const struct label_set *set = label_table_of(labels, goroutine);

	return set->status == LABEL_DECODED ? set->set : label_table_count(labels);
}

struct error *label_usage_init_sets(struct label_usage *usage, const struct decoded *decoded)
{
	struct error *err =
	    label_usage_init(usage, decoded, label_table_count(decoded->labels) + 1);

	for (uint32_t i = 0; !err && i < goroutine_table_count(decoded->goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(decoded->goroutines, i);

		if (goroutine_is_alive(g) && !g->system)
			usage->party_of[i] = set_party(decoded->labels, i);
	}
	return err;
}

static bool is_selected(const struct decoded *d, uint32_t goroutine)
{
	const struct goroutine *g = goroutine_table_at(d->goroutines, goroutine);

	return goroutine_is_alive(g) && !g->system &&
	       label_selection_matches(&d->request->selection,
				       label_table_of(d->labels, goroutine));
}

struct error *label_usage_init_selection(struct label_usage *usage, const struct decoded *decoded)
{
	struct error *err = label_usage_init(usage, decoded, 2);

	for (uint32_t i = 0; !err && i < goroutine_table_count(decoded->goroutines); i++)
		if (!goroutine_table_at(decoded->goroutines, i)->system)
			usage->party_of[i] = !is_selected(decoded, i);
	return err;
}

struct error *label_usage_init_groups(struct label_usage *usage, const struct decoded *decoded,
				      const struct label_grouping *grouping)
{
	struct error *err = label_usage_init(usage, decoded, grouping->count + 1);

	for (uint32_t i = 0; !err && i < goroutine_table_count(decoded->goroutines); i++) {
		uint32_t group = grouping->group_of[i];

		if (!goroutine_table_at(decoded->goroutines, i)->system)
			usage->party_of[i] = group == GROUPING_NONE ? grouping->count : group;
	}
	return err;
}

struct label_attribution label_usage_attribution(const struct label_usage *usage,
						 const struct decoded *decoded)
{
	return (struct label_attribution){
		.graph = decoded->graph,
		.roots = decoded->roots,
		.specials = decoded->specials,
		.owners = &decoded->owners,
		.party_of = usage->party_of,
		.party_count = usage->party_count,
		.thread_count = decoded->request->worker_count,
	};
}

static struct error *make_memory(struct label_usage *usage)
{
	usage->memory = calloc(usage->party_count, sizeof(*usage->memory));
	return usage->memory ? NULL : &error_nomem;
}

struct error *label_usage_mark(struct label_usage *usage, const struct decoded *decoded,
			       struct mark **ret)
{
	const struct label_attribution input = label_usage_attribution(usage, decoded);
	struct error *err = make_memory(usage);

	return err ? err : label_mark(&input, usage->memory, ret);
}

struct error *label_usage_count(struct label_usage *usage, const struct decoded *decoded)
{
	const struct label_attribution input = label_usage_attribution(usage, decoded);
	struct error *err;

	count_goroutines(usage, decoded->goroutines);
	if (!decoded->graph || usage->memory)
		return NULL;
	err = make_memory(usage);
	return err ? err : label_attribute(&input, usage->memory);
}
