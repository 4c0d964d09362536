/*
 * Goroutines by the value of something (?by=): of a label, or of what is known without labels, the
 * function that created them (@created_by), their first function (@entry), its module (@module).
 */
#ifndef AGENT_REPORT_LABEL_GROUPING_H
#define AGENT_REPORT_LABEL_GROUPING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/goruntime/label.h"
#include "proto/base/error.h"

struct decoded;

#define GROUPING_NONE UINT32_MAX

struct label_grouping {
	/* By goroutine: 0 where there is no value, GROUPING_NONE for those left out. */
	uint32_t *group_of;
	struct label_text *values; /* by group, sorted; borrowed but for the array; [0] is none */
	uint32_t count;
	bool by_label; /* so all goroutines of a label set are in the same group */
};

/*
 * Groups the goroutines that are alive and not system's, if there is a selection only those that
 * match. ERROR_BAD_REQUEST for a key that begins with @ and is none of these. The decoded parts are
 * borrowed for its life. Give *ret back with _fini.
 */
must_check struct error *label_grouping_init(struct label_grouping *grouping,
					     const struct decoded *decoded, struct label_text key);
void label_grouping_fini(struct label_grouping *grouping);

#endif
