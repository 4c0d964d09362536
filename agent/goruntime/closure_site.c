#include "agent/goruntime/closure_site.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/closure_site_code.h"
#include "agent/goruntime/module.h"

enum {
	PIECE_SIZE = 1 << 20, /* of text, at a time */
	SITE_COUNT_MAX = 1 << 22,
	DISAGREED = 1, /* for the descriptor of a function whose sites differ */
};

struct closure_sites {
	struct closure_site *sites; /* by code, once they are all there */
	size_t count, capacity;
};

static struct error *add_site(void *arg, const struct closure_site *site)
{
	struct closure_sites *all = arg;

	if (all->count == all->capacity) {
		size_t capacity = all->capacity ? 2 * all->capacity : 1024;
		struct closure_site *sites;

		if (all->count >= SITE_COUNT_MAX)
			return error_new(ERROR_LIMIT, "more than %d closures", SITE_COUNT_MAX);
		sites = reallocarray(all->sites, capacity, sizeof(*sites));
		if (!sites)
			return &error_nomem;
		all->sites = sites;
		all->capacity = capacity;
	}
	all->sites[all->count++] = *site;
	return NULL;
}

/* Pieces overlap, so that no site is cut in two; one that is seen twice is seen alike. */
static struct error *read_text(struct memory *memory, const struct module *module, uint8_t *piece,
			       struct closure_sites *all)
{
	for (taddr at = module->text; at < module->etext;) {
		uint64_t left = module->etext - at;
		size_t size = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
		struct error *err = memory_read_bulk(memory, at, piece, size);

		if (err && error_code(err) == ERROR_FAULT)
			error_free(take(err));
		else if (!err)
			err = closure_site_scan(piece, size, at, module, add_site, all);
		if (err)
			return error_context(err, "text of a module");
		if (size == left)
			break;
		at += size - CLOSURE_SITE_SIZE_MAX;
	}
	return NULL;
}

static int compare_sites(const void *a, const void *b)
{
	taddr left = ((const struct closure_site *)a)->code;
	taddr right = ((const struct closure_site *)b)->code;

	return left < right ? -1 : left > right;
}

/* One for each function; sites of one function agree, or none of them is believed. */
static void merge_sites(struct closure_sites *all)
{
	size_t kept = 0;

	if (all->count)
		qsort(all->sites, all->count, sizeof(*all->sites), compare_sites);
	for (size_t i = 0; i < all->count; i++) {
		const struct closure_site *site = &all->sites[i];

		if (!kept || all->sites[kept - 1].code != site->code)
			all->sites[kept++] = *site;
		else if (all->sites[kept - 1].type != site->type)
			all->sites[kept - 1].type = DISAGREED;
	}
	all->count = kept;
}

struct error *closure_sites_read(struct memory *memory, const struct module_table *modules,
				 struct closure_sites **ret)
{
	scoped(closure_sites_freep) struct closure_sites *all = calloc(1, sizeof(*all));
	scoped(freep) uint8_t *piece = malloc(PIECE_SIZE);

	if (!all || !piece)
		return &error_nomem;
	for (uint32_t i = 0; i < module_table_count(modules); i++) {
		struct error *err = read_text(memory, module_table_at(modules, i), piece, all);

		if (err)
			return err;
	}
	merge_sites(all);
	*ret = take(all);
	return NULL;
}

void closure_sites_free(struct closure_sites *sites)
{
	if (!sites)
		return;
	free(sites->sites);
	free(sites);
}

taddr closure_sites_find(const struct closure_sites *sites, taddr code)
{
	struct closure_site wanted = { .code = code };
	const struct closure_site *found =
	    sites->count
		? bsearch(&wanted, sites->sites, sites->count, sizeof(wanted), compare_sites)
		: NULL;

	return found && found->type != DISAGREED ? found->type : 0;
}
