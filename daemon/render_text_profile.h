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
	ProtobufCBinaryData through;   /* of chains, only those with this in a frame; empty: all */
};

void text_chains(struct text *text, const struct chain_page *page);

#endif
