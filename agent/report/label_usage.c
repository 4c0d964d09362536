#include "agent/report/label_usage.h"

#include <stdlib.h>

#include "agent/goruntime/goroutine.h"
#include "agent/report/decoded.h"

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

struct error *label_usage_count(struct label_usage *usage, const struct decoded *decoded)
{
	const struct label_attribution input = {
		.graph = decoded->graph,
		.roots = decoded->roots,
		.specials = decoded->specials,
		.owners = &decoded->owners,
		.party_of = usage->party_of,
		.party_count = usage->party_count,
		.thread_count = decoded->request->worker_count,
	};

	count_goroutines(usage, decoded->goroutines);
	if (!decoded->graph)
		return NULL;
	usage->memory = calloc(usage->party_count, sizeof(*usage->memory));
	if (!usage->memory)
		return &error_nomem;
	return label_attribute(&input, usage->memory);
}
