#include "agent/analysis/label_holder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/analysis/graph_private.h"
#include "agent/analysis/label_color.h"

struct label_holders {
	struct label_attribution input;
	struct budget budget;
	struct coloring coloring;
	bool is_colored;
};

struct error *label_holders_find(const struct label_attribution *input, struct label_holders **ret)
{
	struct label_holders *holders scoped(label_holders_freep) = calloc(1, sizeof(*holders));
	struct error *err;

	if (!holders)
		return &error_nomem;
	if (input->party_count > PARTIES_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu32 " parties that hold memory",
				 input->party_count);
	holders->input = *input;
	holders->budget = graph_budget_left(input->graph);
	err = coloring_init(&holders->coloring, &holders->input, &holders->budget);
	if (err)
		return error_context(err, "holders");
	holders->is_colored = true;
	*ret = take(holders);
	return NULL;
}

void label_holders_free(struct label_holders *holders)
{
	if (!holders)
		return;
	if (holders->is_colored)
		coloring_fini(&holders->coloring);
	free(holders);
}

uint32_t label_holder(const struct label_holders *holders, uint32_t object)
{
	uint32_t color = color_of(&holders->coloring, object);

	return color_is_party(color) ? (color & COLOR_MASK) - 1 : LABEL_NO_HOLDER;
}
