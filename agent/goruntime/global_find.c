#include "agent/goruntime/global_find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/data_ref.h"
#include "agent/binary/pclntab.h"
#include "agent/goruntime/module.h"
#include "proto/base/log.h"

enum {
	AGREE_PERCENT = 60,       /* of the witnesses that could be heard */
	VOTES_MAX = 1 << 20,      /* of all witnesses together */
	GLOBAL_ALIGNMENT_MAX = 8, /* of a variable that is as large or larger */
};

/* A witness says that a global may begin at an address. */
struct vote {
	taddr addr;
	uint32_t ref; /* its place in the table */
};

struct search {
	struct memory *memory;
	const struct module *module;
	const struct global_ref *refs;
	size_t ref_count;
	struct layout *layout;
	const struct global_ref **by_function; /* refs ordered by function */
	struct vote *votes;
	size_t vote_count, vote_capacity;
	uint32_t heard[LAYOUT_GLOBAL_COUNT]; /* witnesses whose function is in the program */
};

static void search_fini(struct search *search)
{
	free(search->by_function);
	free(search->votes);
}

static int compare_by_function(const void *a, const void *b)
{
	const struct global_ref *left = *(const struct global_ref *const *)a;
	const struct global_ref *right = *(const struct global_ref *const *)b;

	return strcmp(left->function, right->function);
}

/* ---- witnesses ---- */

/* Whether all of the variable would lie in one of the module's segments, rightly aligned. */
static bool can_be_at(const struct module *module, taddr addr, uint64_t size)
{
	const struct {
		taddr start, end;
	} segments[] = {
		{ module->noptrdata, module->enoptrdata },
		{ module->data, module->edata },
		{ module->bss, module->ebss },
		{ module->noptrbss, module->enoptrbss },
	};

	if (size >= GLOBAL_ALIGNMENT_MAX && addr % GLOBAL_ALIGNMENT_MAX)
		return false;
	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		if (addr >= segments[i].start && addr < segments[i].end)
			return size <= segments[i].end - addr;
	}
	return false;
}

static struct error *add_vote(struct search *search, taddr addr, const struct global_ref *ref)
{
	if (search->vote_count == search->vote_capacity) {
		size_t capacity = search->vote_capacity ? 2 * search->vote_capacity : 1024;
		struct vote *votes = reallocarray(search->votes, capacity, sizeof(*votes));

		if (capacity > VOTES_MAX || !votes)
			return capacity > VOTES_MAX
				   ? error_new(ERROR_LIMIT, "references to globals: too many")
				   : &error_nomem;
		search->votes = votes;
		search->vote_capacity = capacity;
	}
	search->votes[search->vote_count++] = (struct vote){ addr, (uint32_t)(ref - search->refs) };
	return NULL;
}

/* What one witness says, given all references of its function. */
static struct error *hear(struct search *search, const struct global_ref *ref,
			  const struct data_ref *found, size_t count)
{
	uint64_t size = layout_global(search->layout, ref->global)->size;

	search->heard[ref->global]++;
	for (size_t i = 0; i < count; i++) {
		taddr addr = found[i].addr - ref->offset;
		struct error *err;

		if (found[i].width != ref->width || !can_be_at(search->module, addr, size))
			continue;
		err = add_vote(search, addr, ref);
		if (err)
			return err;
	}
	return NULL;
}

/* Hears all witnesses of one function: those from first on that name it. */
static struct error *hear_function(struct search *search, const struct pclntab_func *func,
				   size_t first)
{
	uint64_t size = func->end - func->entry;
	uint8_t *code scoped(freep) = NULL;
	struct data_ref *found scoped(freep) = NULL;
	size_t count;
	struct error *err;

	if (func->end <= func->entry)
		return NULL;
	if (size > DATA_REF_FUNCTION_MAX)
		size = DATA_REF_FUNCTION_MAX;
	code = malloc(size);
	if (!code)
		return &error_nomem;
	err = memory_read_bulk(search->memory, func->entry, code, size);
	if (!err)
		err = data_ref_read(code, size, func->entry, &found, &count);
	for (size_t i = first; !err && i < search->ref_count; i++) {
		if (strcmp(search->by_function[i]->function, func->name) != 0)
			break;
		err = hear(search, search->by_function[i], found, count);
	}
	return err;
}

/* The first of the refs, ordered by function, that name this one; ref_count if none does. */
static size_t first_ref(const struct search *search, const char *function)
{
	size_t low = 0, high = search->ref_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(search->by_function[middle]->function, function) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < search->ref_count && !strcmp(search->by_function[low]->function, function)
		   ? low
		   : search->ref_count;
}

static struct error *hear_all(struct search *search)
{
	const struct pclntab *pclntab = search->module->pclntab;

	for (uint32_t i = 0; i < pclntab_func_count(pclntab); i++) {
		struct pclntab_func func;
		struct error *err = pclntab_at(pclntab, i, &func);
		size_t first;

		if (err)
			return err;
		first = first_ref(search, func.name);
		if (first < search->ref_count)
			err = hear_function(search, &func, first);
		if (err)
			return error_context(err, "%s", func.name);
	}
	return NULL;
}

/* ---- the count ---- */

static int compare_votes(const void *a, const void *b)
{
	const struct vote *left = a, *right = b;

	if (left->addr != right->addr)
		return left->addr < right->addr ? -1 : 1;
	return left->ref < right->ref ? -1 : left->ref > right->ref;
}

/* Whether a place is taken by another global that has been found. */
static bool is_taken(struct search *search, taddr addr, uint64_t size, enum layout_global_id self)
{
	for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++) {
		const struct layout_global *other = layout_global(search->layout, id);

		if (id != self && other->addr && addr < other->addr + other->size &&
		    other->addr < addr + size)
			return true;
	}
	return false;
}

struct outcome {
	taddr addr;
	uint32_t votes, second;
};

/* A witness has one vote for a place, however often its function refers to it. */
static struct outcome count_votes(struct search *search, enum layout_global_id id)
{
	uint64_t size = layout_global(search->layout, id)->size;
	struct outcome outcome = { 0 };

	for (size_t i = 0; i < search->vote_count;) {
		taddr addr = search->votes[i].addr;
		uint32_t votes = 0, last = UINT32_MAX;

		for (; i < search->vote_count && search->votes[i].addr == addr; i++) {
			uint32_t ref = search->votes[i].ref;

			votes += search->refs[ref].global == id && ref != last;
			last = ref;
		}
		if (!votes || is_taken(search, addr, size, id))
			continue;
		if (votes > outcome.votes) {
			outcome.second = outcome.votes;
			outcome.votes = votes;
			outcome.addr = addr;
		} else if (votes > outcome.second) {
			outcome.second = votes;
		}
	}
	return outcome;
}

static bool is_clear(const struct search *search, enum layout_global_id id,
		     const struct outcome *outcome)
{
	return outcome->votes > outcome->second &&
	       (uint64_t)outcome->votes * 100 >= (uint64_t)search->heard[id] * AGREE_PERCENT;
}

/* Places every global that is clear by now; whether there was one. */
static bool place_clear(struct search *search)
{
	bool placed = false;

	for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++) {
		struct layout_global *global = layout_global(search->layout, id);
		struct outcome outcome;

		if (!global->size || global->addr)
			continue;
		outcome = count_votes(search, id);
		log_debug("globals",
			  "%s: %" PRIu32 " of %" PRIu32 " for 0x%" PRIx64 ", next %" PRIu32,
			  layout_global_name(id), outcome.votes, search->heard[id], outcome.addr,
			  outcome.second);
		if (!is_clear(search, id, &outcome))
			continue;
		global->addr = outcome.addr;
		placed = true;
	}
	return placed;
}

struct error *global_find(struct memory *memory, const struct module *module,
			  const struct global_ref *refs, size_t ref_count, struct layout *layout)
{
	struct search search scoped(search_fini) = {
		.memory = memory,
		.module = module,
		.refs = refs,
		.ref_count = ref_count,
		.layout = layout,
	};
	struct error *err;

	search.by_function = calloc(ref_count + 1, sizeof(*search.by_function));
	if (!search.by_function)
		return &error_nomem;
	for (size_t i = 0; i < ref_count; i++)
		search.by_function[i] = &refs[i];
	qsort(search.by_function, ref_count, sizeof(*search.by_function), compare_by_function);
	err = hear_all(&search);
	if (err)
		return err;
	qsort(search.votes, search.vote_count, sizeof(*search.votes), compare_votes);
	/* What is placed narrows the choice of the others. */
	while (place_clear(&search))
		;
	return NULL;
}
