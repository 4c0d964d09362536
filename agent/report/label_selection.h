/* The goroutines that have all labels of a selection (?label=k=v). */
#ifndef AGENT_REPORT_LABEL_SELECTION_H
#define AGENT_REPORT_LABEL_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/goruntime/label.h"
#include "proto/base/error.h"

struct goroutine_table;

/* Borrowed. */
struct label_selection {
	const struct label *labels;
	size_t count; /* 0: no selection, nothing matches */
};

/* Does a set that was decoded match? */
bool label_selection_matches(const struct label_selection *selection, const struct label_set *set);

/*
 * An error if a goroutine whose labels could not be read might match: by what is missing,
 * ERROR_UNSUPPORTED, ERROR_STRING_MISSING or ERROR_LABEL_RECOVERY_FAILED. System goroutines never
 * match.
 */
must_check struct error *label_selection_check(const struct label_selection *selection,
					       const struct goroutine_table *goroutines,
					       const struct label_table *labels);

#endif
