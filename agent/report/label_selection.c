#include "agent/report/label_selection.h"

#include <inttypes.h>

#include "agent/goruntime/goroutine.h"

static bool might_match(const struct label_selection *selection, const struct label_set *set)
{
	for (size_t i = 0; i < selection->count; i++)
		if (!label_set_might_have(set, &selection->labels[i]))
			return false;
	return true;
}

bool label_selection_matches(const struct label_selection *selection, const struct label_set *set)
{
	return selection->count && set->status == LABEL_DECODED && might_match(selection, set);
}

static enum error_code code_of(enum label_status status)
{
	switch (status) {
	case LABEL_UNSUPPORTED:
		return ERROR_UNSUPPORTED;
	case LABEL_TEXT_MISSING:
		return ERROR_STRING_MISSING;
	default:
		return ERROR_LABEL_RECOVERY_FAILED;
	}
}

static struct error *check_goroutine(const struct label_selection *selection,
				     const struct goroutine *g, const struct label_set *set)
{
	if (g->system || set->status == LABEL_DECODED || set->status == LABEL_NONE ||
	    !might_match(selection, set))
		return NULL;
	return error_new(code_of(set->status),
			 "goroutine %" PRIu64 " might match, but its labels cannot be read: %s",
			 g->id, set->error);
}

struct error *label_selection_check(const struct label_selection *selection,
				    const struct goroutine_table *goroutines,
				    const struct label_table *labels)
{
	struct error *err = NULL;

	if (!selection->count)
		return NULL;
	if (label_table_status(labels, LABEL_G_MISSING))
		return error_new(ERROR_LABEL_RECOVERY_FAILED,
				 "%" PRIu64 " goroutines cannot be read and might match",
				 label_table_status(labels, LABEL_G_MISSING));
	for (uint32_t i = 0; i < goroutine_table_count(goroutines) && !err; i++) {
		const struct goroutine *g = goroutine_table_at(goroutines, i);

		if (goroutine_is_alive(g))
			err = check_goroutine(selection, g, label_table_of(labels, i));
	}
	return err;
}
