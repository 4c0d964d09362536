/*
 * Reference chains as tables for people: the largest roots, types and chains.
 */
#ifndef DAEMON_RENDER_TEXT_PROFILE_H
#define DAEMON_RENDER_TEXT_PROFILE_H

#include "daemon/name_sums.h"
#include "daemon/render.h"

struct chain_page {
	const struct chain_tree *tree;
	const struct name_sums *types; /* sorted; NULL: as the ends of chains tell */
	bool is_change;                /* figures have signs */
	size_t row_count;              /* of each table; 0: as many as are read at once */
	const uint8_t *marks; /* of nodes: only these chains, and no other table; NULL: all */
};

void text_chains(struct text *text, const struct chain_page *page);

#endif
