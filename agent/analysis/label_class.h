/*
 * Parties that enter the shared part by the same groups reach the same of it: they are one class.
 */
#ifndef AGENT_ANALYSIS_LABEL_CLASS_H
#define AGENT_ANALYSIS_LABEL_CLASS_H

#include <stdint.h>

#include "agent/analysis/pair_list.h"

#define CLASS_NONE UINT32_MAX

struct label_class {
	uint32_t first_party;
	uint32_t party_count;
};

struct label_classes {
	struct label_class *classes; /* in the order of their first parties */
	uint32_t count;
	uint32_t *of; /* by party, or CLASS_NONE: it reaches nothing that is shared */
};

/* Entries are pairs of group and party, those of a group side by side; borrowed for the call. */
must_check struct error *label_classes_init(struct label_classes *classes, uint32_t party_count,
					    const struct pair_list *entries);
void label_classes_fini(struct label_classes *classes);

#endif
