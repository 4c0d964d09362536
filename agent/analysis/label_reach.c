/*
 * Groups are visited in their order, every one after all that lead to it. A mask with a bit for
 *each class of a block travels along: a group adds the classes that enter it, tells what it found,
 *and hands its mask on to the groups it leads to. So a mask is needed from the first time that one
 *of those before hands something on until the group's turn, and a few places serve all groups by
 * turns, small enough for the cache:
 *
 *	group     0    1    2    3    4         0 --> 1 --> 3      before group 1's turn there are
 *	place     a    b    c    a    b         0 --> 2 --> 4      masks of 1 and 2: two places do
 *
 * Threads take blocks of classes. All blocks go once to count who reaches each group, which tells
 * what a party's share of it is, and once more to give.
 */
#include "agent/analysis/label_reach.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/workers.h"

enum {
	MASK_WORDS_MAX = 16,       /* 1,024 classes in a block */
	MASK_BYTES_MAX = 64 << 20, /* of one thread, unless one word for each place takes more */
	SPANS_AT_ONCE = 256,
	REACHED_BY_GLOBAL = 1,
	REACHED_BY_SYSTEM = 2,
};

#define PLACE_NONE UINT32_MAX

/* What is known of a group besides its size. Blocks are counted at the same time. */
struct group_share {
	_Atomic uint64_t rest;    /* what is left over when each of its objects is divided */
	_Atomic uint32_t parties; /* that reach it */
	_Atomic uint32_t first;   /* class of the first of them, counted from the last class down */
};

struct sum {
	uint64_t bytes, objects, share;
};

/* What every party of a class reaches of the shared part. */
struct class_usage {
	struct sum reachable, global_overlap, system_overlap;
	uint64_t rest; /* for its first party alone */
};

struct reach {
	const struct label_attribution *input;
	const struct groups *groups;
	struct pair_list *entries; /* later: of group and class, one for each class */
	struct budget *budget;
	struct label_classes classes;
	struct class_usage *usage; /* by class */
	uint8_t *flags;            /* by group */
	struct group_share *shares;
	uint32_t *places; /* by group */
	uint32_t place_count;
	struct pages flag_pages, share_pages, place_pages;
	unsigned words; /* of a mask */
	unsigned threads;
};

static void reach_fini(struct reach *r)
{
	label_classes_fini(&r->classes);
	free(r->usage);
	pages_fini(&r->flag_pages);
	pages_fini(&r->share_pages);
	pages_fini(&r->place_pages);
}

/* ---- places ---- */

struct places {
	struct pages free_pages;
	uint32_t *free; /* given back */
	uint32_t free_count, count;
};

static void take_place(struct places *places, uint32_t *place)
{
	if (*place != PLACE_NONE)
		return;
	*place = places->free_count ? places->free[--places->free_count] : places->count++;
}

static void place_all(struct reach *r, struct places *places)
{
	const struct pair_list *edges = &r->groups->edges;
	uint64_t e = 0;

	memset(r->places, 0xff, r->groups->count * sizeof(*r->places));
	for (uint32_t group = 0; group < r->groups->count; group++) {
		take_place(places, &r->places[group]);
		for (; e < edges->count && pair_first(edges->pairs[e]) == group; e++)
			take_place(places, &r->places[pair_second(edges->pairs[e])]);
		places->free[places->free_count++] = r->places[group];
	}
	r->place_count = places->count;
}

static struct error *find_places(struct reach *r)
{
	struct places places = { .count = 0 };
	uint64_t size = r->groups->count * (uint64_t)sizeof(uint32_t);
	struct error *err = pages_init(&r->place_pages, r->budget, size);

	if (!err)
		err = pages_init(&places.free_pages, r->budget, size);
	if (err)
		return err;
	r->places = r->place_pages.data;
	places.free = places.free_pages.data;
	place_all(r, &places);
	pages_fini(&places.free_pages);
	return NULL;
}

/* So that there is a block for each thread, if masks are not too large then. */
static unsigned choose_words(const struct reach *r)
{
	uint64_t wanted = ((uint64_t)r->classes.count + 63) / 64, words = 1;

	wanted = (wanted + r->threads - 1) / r->threads;
	while (words < wanted && words < MASK_WORDS_MAX &&
	       2 * words * sizeof(uint64_t) * r->place_count <= MASK_BYTES_MAX)
		words *= 2;
	return (unsigned)words;
}

static struct error *reach_init(struct reach *r)
{
	uint64_t count = r->groups->count;
	struct error *err;

	err = label_classes_init(&r->classes, r->input->party_count, r->entries);
	if (err)
		return err;
	r->usage = calloc(r->classes.count + (size_t)1, sizeof(*r->usage));
	if (!r->usage)
		return &error_nomem;
	err = find_places(r);
	if (!err)
		err = pages_init(&r->flag_pages, r->budget, count);
	if (!err)
		err = pages_init(&r->share_pages, r->budget, count * sizeof(*r->shares));
	r->flags = r->flag_pages.data;
	r->shares = r->share_pages.data;
	r->words = choose_words(r);
	return err;
}

static bool flag_entries(struct reach *r, uint32_t party, uint8_t flag)
{
	if (r->classes.of[party] == CLASS_NONE)
		return false;
	for (uint64_t i = 0; i < r->entries->count; i++)
		if (pair_second(r->entries->pairs[i]) == party)
			r->flags[pair_first(r->entries->pairs[i])] |= flag;
	return true;
}

static void flag_groups(struct reach *r)
{
	const struct pair_list *edges = &r->groups->edges;
	bool global = flag_entries(r, label_global_party(r->input), REACHED_BY_GLOBAL);
	bool system = flag_entries(r, label_system_party(r->input), REACHED_BY_SYSTEM);

	if (!global && !system)
		return;
	for (uint64_t i = 0; i < edges->count; i++)
		r->flags[pair_second(edges->pairs[i])] |= r->flags[pair_first(edges->pairs[i])];
}

/* Parties of a class enter the same groups: its first one stands for all. */
static void keep_first_parties(struct reach *r)
{
	struct pair_list *entries = r->entries;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < entries->count; i++) {
		uint32_t party = pair_second(entries->pairs[i]), class = r->classes.of[party];

		if (r->classes.classes[class].first_party == party)
			entries->pairs[kept++] =
			    (uint64_t)pair_first(entries->pairs[i]) << 32 | class;
	}
	entries->count = kept;
}

/* ---- blocks of classes ---- */

/* Sums for the classes of a block. */
struct tally {
	struct sum each[64 * MASK_WORDS_MAX];
	struct sum all; /* for each of them */
};

/* One thread's. */
struct carrier {
	struct reach *r;
	struct pages mask_pages;
	uint64_t *masks; /* by place, words of each; zero while the place is free */
	uint32_t first_class, end_class;
	uint64_t several[MASK_WORDS_MAX]; /* classes of more than one party */
	struct tally reachable, global_overlap, system_overlap;
	uint64_t rest[64 * MASK_WORDS_MAX];
};

typedef void group_visit(struct carrier *c, uint32_t group, const uint64_t *mask);

/* All blocks, by all threads. */
struct pass {
	struct reach *r;
	group_visit *visit;
	bool gives;
	_Atomic uint32_t next_block;
};

static uint64_t *mask_of(const struct carrier *c, uint32_t group)
{
	return c->masks + (uint64_t)c->r->places[group] * c->r->words;
}

static void hand_on(const struct carrier *c, const uint64_t *mask, uint32_t group)
{
	uint64_t *to = mask_of(c, group);

	for (unsigned w = 0; w < c->r->words; w++)
		to[w] |= mask[w];
}

static void enter(const struct carrier *c, uint64_t *mask, uint32_t class)
{
	uint32_t bit = class - c->first_class;

	if (class >= c->first_class && class < c->end_class)
		mask[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void carry(struct carrier *c, group_visit *visit)
{
	const struct pair_list *edges = &c->r->groups->edges;
	const struct pair_list *entries = c->r->entries;
	uint64_t edge = 0, entry = 0;

	for (uint32_t group = 0; group < c->r->groups->count; group++) {
		uint64_t *mask = mask_of(c, group);

		for (; entry < entries->count && pair_first(entries->pairs[entry]) == group;
		     entry++)
			enter(c, mask, pair_second(entries->pairs[entry]));
		visit(c, group, mask);
		for (; edge < edges->count && pair_first(edges->pairs[edge]) == group; edge++)
			hand_on(c, mask, pair_second(edges->pairs[edge]));
		memset(mask, 0, c->r->words * sizeof(*mask));
	}
}

/* The lowest class of all blocks: kept as its distance from the highest, so that 0 is none. */
static void note_first(struct reach *r, struct group_share *share, uint32_t class)
{
	uint32_t mine = r->classes.count - class;
	uint32_t seen = atomic_load_explicit(&share->first, memory_order_relaxed);

	while (seen < mine &&
	       !atomic_compare_exchange_weak_explicit(&share->first, &seen, mine,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* How many bits of a mask are set: first in each byte, of which 16 words' add up to 128 at most. */
static uint32_t count_bits(const uint64_t *mask, unsigned words)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t bytes = 0;

	static_assert(MASK_WORDS_MAX * 8 <= UINT8_MAX, "sums in bytes");
	for (unsigned w = 0; w < words; w++) {
		uint64_t bits = mask[w];

		bits -= bits >> 1 & 0x55 * ones;
		bits = (bits & 0x33 * ones) + (bits >> 2 & 0x33 * ones);
		bytes += (bits + (bits >> 4)) & 0x0f * ones;
	}
	bytes = (bytes & 0x00ff00ff00ff00ff) + (bytes >> 8 & 0x00ff00ff00ff00ff);
	return (uint32_t)(bytes * 0x0001000100010001 >> 48);
}

/* The parties of classes that are more than one. */
static uint32_t count_other_parties(const struct carrier *c, const uint64_t *mask)
{
	const struct label_class *classes = c->r->classes.classes + c->first_class;
	uint32_t count = 0;

	for (unsigned w = 0; w < c->r->words; w++)
		for (uint64_t bits = mask[w] & c->several[w]; bits; bits &= bits - 1)
			count += classes[64 * w + (unsigned)__builtin_ctzll(bits)].party_count - 1;
	return count;
}

static void count_parties(struct carrier *c, uint32_t group, const uint64_t *mask)
{
	struct group_share *share = &c->r->shares[group];
	uint32_t parties = count_bits(mask, c->r->words);
	unsigned w = 0;

	if (!parties)
		return;
	parties += count_other_parties(c, mask);
	atomic_fetch_add_explicit(&share->parties, parties, memory_order_relaxed);
	while (!mask[w])
		w++;
	note_first(c->r, share, c->first_class + 64 * w + (uint32_t)__builtin_ctzll(mask[w]));
}

static void add(struct sum *to, const struct sum *what)
{
	to->bytes += what->bytes;
	to->objects += what->objects;
	to->share += what->share;
}

/* Sums are modulo 2^64 on the way; in the end they are right. */
static struct sum negative(const struct sum *what)
{
	return (struct sum){ -what->bytes, -what->objects, -what->share };
}

/* What is not set in a mask of mostly set bits is taken from what all classes have. */
static void add_to_classes(struct tally *tally, const uint64_t *mask, unsigned words,
			   bool mostly_set, const struct sum *what)
{
	const struct sum less = negative(what), *each = mostly_set ? &less : what;
	uint64_t invert = mostly_set ? UINT64_MAX : 0;

	if (mostly_set)
		add(&tally->all, what);
	for (unsigned w = 0; w < words; w++)
		for (uint64_t bits = mask[w] ^ invert; bits; bits &= bits - 1)
			add(&tally->each[64 * w + (unsigned)__builtin_ctzll(bits)], each);
}

static void give(struct carrier *c, uint32_t group, const uint64_t *mask)
{
	const struct size_count *size = &c->r->groups->sizes[group];
	const struct group_share *share = &c->r->shares[group];
	uint32_t parties = share->parties, first = c->r->classes.count - share->first;
	uint64_t rest = share->rest;
	const struct sum what = { size->bytes, size->objects, (size->bytes - rest) / parties };
	unsigned words = c->r->words;
	bool mostly_set = count_bits(mask, words) > 32 * words;

	add_to_classes(&c->reachable, mask, words, mostly_set, &what);
	if (c->r->flags[group] & REACHED_BY_GLOBAL)
		add_to_classes(&c->global_overlap, mask, words, mostly_set, &what);
	if (c->r->flags[group] & REACHED_BY_SYSTEM)
		add_to_classes(&c->system_overlap, mask, words, mostly_set, &what);
	if (first >= c->first_class && first < c->end_class)
		c->rest[first - c->first_class] += rest;
}

static struct sum sum_of(const struct tally *tally, uint32_t bit)
{
	struct sum sum = tally->each[bit];

	add(&sum, &tally->all);
	return sum;
}

static void keep_usage(const struct carrier *c)
{
	for (uint32_t class = c->first_class; class < c->end_class; class ++) {
		uint32_t bit = class - c->first_class;

		c->r->usage[class] = (struct class_usage){
			.reachable = sum_of(&c->reachable, bit),
			.global_overlap = sum_of(&c->global_overlap, bit),
			.system_overlap = sum_of(&c->system_overlap, bit),
			.rest = c->rest[bit],
		};
	}
}

static void note_several(struct carrier *c)
{
	memset(c->several, 0, sizeof(c->several));
	for (uint32_t class = c->first_class; class < c->end_class; class ++) {
		uint32_t bit = class - c->first_class;

		if (c->r->classes.classes[class].party_count > 1)
			c->several[bit / 64] |= UINT64_C(1) << bit % 64;
	}
}

static void carry_block(struct carrier *c, const struct pass *pass, uint32_t first_class)
{
	uint32_t left = c->r->classes.count - first_class, at_once = 64 * c->r->words;

	c->first_class = first_class;
	c->end_class = first_class + (left < at_once ? left : at_once);
	note_several(c);
	memset(&c->reachable, 0, sizeof(c->reachable));
	memset(&c->global_overlap, 0, sizeof(c->global_overlap));
	memset(&c->system_overlap, 0, sizeof(c->system_overlap));
	memset(c->rest, 0, sizeof(c->rest));
	carry(c, pass->visit);
	if (pass->gives)
		keep_usage(c);
}

static struct error *run_pass(void *arg, unsigned i)
{
	struct pass *pass = arg;
	struct reach *r = pass->r;
	struct carrier *c scoped(freep) = calloc(1, sizeof(*c));
	uint32_t at_once = 64 * r->words, block_count = (r->classes.count - 1) / at_once + 1;
	uint32_t block = atomic_fetch_add(&pass->next_block, 1);
	struct error *err;

	(void)i;
	if (!c)
		return &error_nomem;
	if (block >= block_count)
		return NULL;
	c->r = r;
	err = pages_init(&c->mask_pages, r->budget,
			 r->place_count * (uint64_t)r->words * sizeof(uint64_t));
	if (err)
		return err;
	c->masks = c->mask_pages.data;
	for (; block < block_count; block = atomic_fetch_add(&pass->next_block, 1))
		carry_block(c, pass, block * at_once);
	pages_fini(&c->mask_pages);
	return NULL;
}

static struct error *count_all(struct reach *r)
{
	struct pass pass = { .r = r, .visit = count_parties };

	return workers_run(r->threads, run_pass, &pass);
}

static struct error *give_all(struct reach *r)
{
	struct pass pass = { .r = r, .visit = give, .gives = true };

	return workers_run(r->threads, run_pass, &pass);
}

/* ---- shares ---- */

struct division {
	struct reach *r;
	_Atomic uint32_t next_span;
};

/* Every object is divided by itself. */
static void divide_span(const struct reach *r, const struct span *span)
{
	for (uint32_t slot = 0; slot < span->elem_count; slot++) {
		uint32_t group = r->groups->of[span->first_object + slot];
		uint64_t rest;

		if (group == GROUP_NONE)
			continue;
		rest = span->elem_size % r->shares[group].parties;
		if (rest)
			atomic_fetch_add_explicit(&r->shares[group].rest, rest,
						  memory_order_relaxed);
	}
}

static struct error *run_divide(void *arg, unsigned thread)
{
	struct division *division = arg;
	const struct span_table *spans = division->r->input->graph->spans;
	uint32_t span_count = span_table_count(spans), start;

	(void)thread;
	while ((start = atomic_fetch_add(&division->next_span, SPANS_AT_ONCE)) < span_count)
		for (uint32_t i = start; i < span_count && i - start < SPANS_AT_ONCE; i++)
			divide_span(division->r, span_table_at(spans, i));
	return NULL;
}

static void add_size(struct size_count *to, const struct sum *sum)
{
	to->bytes += sum->bytes;
	to->objects += sum->objects;
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
		usage[party].share_bytes += reached->reachable.share;
		if (r->classes.classes[class].first_party == party)
			usage[party].share_bytes += reached->rest;
	}
}

static struct error *attribute(struct reach *r, struct party_usage *usage)
{
	struct division division = { .r = r };
	struct error *err;

	flag_groups(r);
	keep_first_parties(r);
	err = count_all(r);
	if (!err)
		err = workers_run(r->threads, run_divide, &division);
	if (!err)
		err = give_all(r);
	if (!err)
		give_to_parties(r, usage);
	return err;
}

struct error *label_reach(const struct label_attribution *input, const struct groups *groups,
			  struct pair_list *entries, struct budget *budget,
			  struct party_usage *usage)
{
	struct reach r = {
		.input = input,
		.groups = groups,
		.entries = entries,
		.budget = budget,
		.threads = workers_clamp(input->thread_count),
	};
	struct error *err = reach_init(&r);

	if (!err)
		err = attribute(&r, usage);
	reach_fini(&r);
	return err;
}
