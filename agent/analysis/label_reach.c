#include "agent/analysis/label_reach.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph_private.h"

enum {
	MASK_WORDS_MAX = 8,         /* a cache line: 512 classes at a time */
	MASK_BYTES_MAX = 512 << 20, /* of all groups, unless one word each takes more */
	REACHED_BY_GLOBAL = 1,
	REACHED_BY_SYSTEM = 2,
};

/* What is known of a group besides its size. */
struct group_share {
	uint64_t each, rest; /* bytes for every party, and what is left over */
	uint32_t parties;    /* that reach it */
	uint32_t first;      /* class of the first of them */
};

/* What every party of a class reaches of the shared part. */
struct class_usage {
	struct size_count reachable, global_overlap, system_overlap;
	uint64_t share;
	uint64_t rest; /* for its first party alone */
};

struct reach {
	const struct label_attribution *input;
	const struct groups *groups;
	const struct pair_list *entries;
	struct budget *budget;
	struct label_classes classes;
	struct class_usage *usage; /* by class */
	uint8_t *flags;            /* by group */
	struct group_share *shares;
	uint64_t *masks; /* by group, words of each */
	struct pages flag_pages, share_pages, mask_pages;
	unsigned words;
};

static void reach_fini(struct reach *r)
{
	label_classes_fini(&r->classes);
	free(r->usage);
	pages_fini(&r->flag_pages);
	pages_fini(&r->share_pages);
	pages_fini(&r->mask_pages);
}

static unsigned choose_words(const struct reach *r)
{
	unsigned words = 1;

	while (words < MASK_WORDS_MAX && words * 64 < r->classes.count &&
	       2 * words * (uint64_t)sizeof(uint64_t) * r->groups->count <= MASK_BYTES_MAX)
		words *= 2;
	return words;
}

static struct error *reach_init(struct reach *r, uint32_t party_count)
{
	uint64_t count = r->groups->count;
	struct error *err = label_classes_init(&r->classes, party_count, r->entries);

	if (err)
		return err;
	r->words = choose_words(r);
	r->usage = calloc(r->classes.count + (size_t)1, sizeof(*r->usage));
	if (!r->usage)
		return &error_nomem;
	err = pages_init(&r->flag_pages, r->budget, count);
	if (!err)
		err = pages_init(&r->share_pages, r->budget, count * sizeof(*r->shares));
	if (!err)
		err = pages_init(&r->mask_pages, r->budget, count * r->words * sizeof(uint64_t));
	r->flags = r->flag_pages.data;
	r->shares = r->share_pages.data;
	r->masks = r->mask_pages.data;
	return err;
}

static void flag_entries(struct reach *r, uint32_t party, uint8_t flag)
{
	const struct label_class *class;

	if (r->classes.of[party] == CLASS_NONE)
		return;
	class = &r->classes.classes[r->classes.of[party]];
	for (uint64_t i = 0; i < class->entry_count; i++)
		r->flags[pair_second(r->entries->pairs[class->entry + i])] |= flag;
}

static void flag_groups(struct reach *r)
{
	const struct pair_list *edges = &r->groups->edges;

	flag_entries(r, label_global_party(r->input), REACHED_BY_GLOBAL);
	flag_entries(r, label_system_party(r->input), REACHED_BY_SYSTEM);
	for (uint64_t i = 0; i < edges->count; i++)
		r->flags[pair_second(edges->pairs[i])] |= r->flags[pair_first(edges->pairs[i])];
}

/* ---- one block of classes ---- */

static void seed(struct reach *r, uint32_t first_class, uint32_t end_class)
{
	for (uint32_t c = first_class; c < end_class; c++) {
		const struct label_class *class = &r->classes.classes[c];
		uint32_t bit = c - first_class;

		for (uint64_t i = 0; i < class->entry_count; i++) {
			uint64_t group = pair_second(r->entries->pairs[class->entry + i]);

			r->masks[group * r->words + bit / 64] |= UINT64_C(1) << bit % 64;
		}
	}
}

static void spread(struct reach *r)
{
	const struct pair_list *edges = &r->groups->edges;
	unsigned words = r->words;

	for (uint64_t i = 0; i < edges->count; i++) {
		const uint64_t *from = r->masks + (uint64_t)pair_first(edges->pairs[i]) * words;
		uint64_t *to = r->masks + (uint64_t)pair_second(edges->pairs[i]) * words;

		for (unsigned w = 0; w < words; w++)
			to[w] |= from[w];
	}
}

typedef void class_visit(struct reach *r, uint32_t class, uint32_t group);

/* Calls visit for every class of the block that reaches each group. */
static void for_each(struct reach *r, uint32_t first_class, class_visit *visit)
{
	for (uint32_t group = 0; group < r->groups->count; group++) {
		const uint64_t *mask = r->masks + (uint64_t)group * r->words;

		for (unsigned w = 0; w < r->words; w++)
			for (uint64_t bits = mask[w]; bits; bits &= bits - 1)
				visit(r, first_class + 64 * w + (uint32_t)__builtin_ctzll(bits),
				      group);
	}
}

/* Blocks come in order: the first class of the first block that reaches a group has it first. */
static void count_class(struct reach *r, uint32_t class, uint32_t group)
{
	struct group_share *share = &r->shares[group];

	if (!share->parties)
		share->first = class;
	share->parties += r->classes.classes[class].party_count;
}

static void add_size(struct size_count *to, const struct size_count *size)
{
	to->bytes += size->bytes;
	to->objects += size->objects;
}

static void add_class(struct reach *r, uint32_t class, uint32_t group)
{
	const struct size_count *size = &r->groups->sizes[group];
	struct class_usage *usage = &r->usage[class];

	add_size(&usage->reachable, size);
	if (r->flags[group] & REACHED_BY_GLOBAL)
		add_size(&usage->global_overlap, size);
	if (r->flags[group] & REACHED_BY_SYSTEM)
		add_size(&usage->system_overlap, size);
	usage->share += r->shares[group].each;
	if (r->shares[group].first == class)
		usage->rest += r->shares[group].rest;
}

/* One pass over all classes; masks of a single block serve several passes. */
static void pass(struct reach *r, class_visit *visit)
{
	uint32_t at_once = 64 * r->words;
	bool single = r->classes.count <= at_once;

	for (uint32_t first = 0; first < r->classes.count; first += at_once) {
		uint32_t left = r->classes.count - first;

		if (!single || visit == count_class) {
			memset(r->masks, 0,
			       (uint64_t)r->groups->count * r->words * sizeof(uint64_t));
			seed(r, first, first + (left < at_once ? left : at_once));
			spread(r);
		}
		for_each(r, first, visit);
	}
}

/* Every object is divided by itself. */
static void divide(struct reach *r)
{
	const struct graph *graph = r->input->graph;

	for (uint32_t i = 0; i < span_table_count(graph->spans); i++) {
		const struct span *span = span_table_at(graph->spans, i);

		for (uint32_t slot = 0; slot < span->elem_count; slot++) {
			uint32_t group = r->groups->of[span->first_object + slot];
			struct group_share *share;

			if (group == GROUP_NONE)
				continue;
			share = &r->shares[group];
			share->each += span->elem_size / share->parties;
			share->rest += span->elem_size % share->parties;
		}
	}
}

static void give_to_parties(const struct reach *r, struct party_usage *usage)
{
	for (uint32_t party = 0; party < r->input->party_count; party++) {
		uint32_t class = r->classes.of[party];
		const struct class_usage *reached;

		if (class == CLASS_NONE)
			continue;
		reached = &r->usage[class];
		add_size(&usage[party].reachable, &reached->reachable);
		if (party != label_global_party(r->input))
			add_size(&usage[party].global_overlap, &reached->global_overlap);
		if (party != label_system_party(r->input))
			add_size(&usage[party].system_overlap, &reached->system_overlap);
		usage[party].share_bytes += reached->share;
		if (r->classes.classes[class].first_party == party)
			usage[party].share_bytes += reached->rest;
	}
}

struct error *label_reach(const struct label_attribution *input, const struct groups *groups,
			  const struct pair_list *entries, struct budget *budget,
			  struct party_usage *usage)
{
	struct reach r = { .input = input, .groups = groups, .entries = entries, .budget = budget };
	struct error *err = reach_init(&r, input->party_count);

	if (!err) {
		flag_groups(&r);
		pass(&r, count_class);
		divide(&r);
		pass(&r, add_class);
		give_to_parties(&r, usage);
	}
	reach_fini(&r);
	return err;
}
