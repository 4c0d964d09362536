/*
 * A partition is refined: at first all parties are of one class; then, group by group, of every
 * class those parties that enter the group part from those that do not. Which parties enter a group
 * may come in any order, and more than once.
 */
#include "agent/analysis/label_class.h"

#include <stdlib.h>

struct refinement {
	uint32_t *of;     /* by party: its class so far */
	uint32_t *seen;   /* by party: the last group it entered, plus 1 */
	uint32_t *size;   /* by class */
	uint32_t *parted; /* by class: the last group that parted it, plus 1 */
	uint32_t *part;   /* by class: where those went that enter that group */
	uint32_t *unused; /* classes */
	uint32_t unused_count;
};

static void refinement_fini(struct refinement *r)
{
	free(r->of);
	free(r->seen);
	free(r->size);
	free(r->parted);
	free(r->part);
	free(r->unused);
}

/* No more classes than parties, and one that is about to lose its last party. */
static struct error *refinement_init(struct refinement *r, uint32_t party_count)
{
	size_t room = party_count + (size_t)1;

	*r = (struct refinement){
		.of = calloc(room, sizeof(*r->of)),
		.seen = calloc(room, sizeof(*r->seen)),
		.size = calloc(room, sizeof(*r->size)),
		.parted = calloc(room, sizeof(*r->parted)),
		.part = calloc(room, sizeof(*r->part)),
		.unused = calloc(room, sizeof(*r->unused)),
	};
	if (!r->of || !r->seen || !r->size || !r->parted || !r->part || !r->unused) {
		refinement_fini(r);
		return &error_nomem;
	}
	r->size[0] = party_count;
	for (uint32_t class = party_count; class; class --)
		r->unused[r->unused_count++] = class;
	return NULL;
}

/* The class of those of a class that enter a group. */
static uint32_t part_of(struct refinement *r, uint32_t class, uint32_t group)
{
	if (r->parted[class] != group + 1) {
		r->parted[class] = group + 1;
		r->part[class] = r->unused[--r->unused_count];
	}
	return r->part[class];
}

static void enter(struct refinement *r, uint32_t party, uint32_t group)
{
	uint32_t class = r->of[party], part;

	if (r->seen[party] == group + 1)
		return;
	r->seen[party] = group + 1;
	/* One that is alone stays so, unless others of its class entered this group before it. */
	if (r->size[class] == 1 && r->parted[class] != group + 1)
		return;
	part = part_of(r, class, group);
	r->of[party] = part;
	r->size[part]++;
	if (!--r->size[class])
		r->unused[r->unused_count++] = class;
}

/* Classes are numbered by their first parties. */
static void number_classes(struct refinement *r, struct label_classes *classes,
			   uint32_t party_count)
{
	uint32_t *numbers = r->part;

	for (uint32_t class = 0; class <= party_count; class ++)
		numbers[class] = CLASS_NONE;
	for (uint32_t party = 0; party < party_count; party++) {
		uint32_t *number = &numbers[r->of[party]];

		classes->of[party] = CLASS_NONE;
		if (!r->seen[party])
			continue;
		if (*number == CLASS_NONE) {
			*number = classes->count++;
			classes->classes[*number].first_party = party;
		}
		classes->classes[*number].party_count++;
		classes->of[party] = *number;
	}
}

struct error *label_classes_init(struct label_classes *classes, uint32_t party_count,
				 const struct pair_list *entries)
{
	struct refinement r;
	struct error *err = refinement_init(&r, party_count);

	*classes = (struct label_classes){ 0 };
	if (err)
		return err;
	classes->classes = calloc(party_count, sizeof(*classes->classes));
	classes->of = malloc(party_count * sizeof(*classes->of));
	if (!classes->classes || !classes->of) {
		refinement_fini(&r);
		label_classes_fini(classes);
		return &error_nomem;
	}
	for (uint64_t i = 0; i < entries->count; i++)
		enter(&r, pair_second(entries->pairs[i]), pair_first(entries->pairs[i]));
	number_classes(&r, classes, party_count);
	refinement_fini(&r);
	return NULL;
}

void label_classes_fini(struct label_classes *classes)
{
	free(classes->classes);
	free(classes->of);
	*classes = (struct label_classes){ 0 };
}
