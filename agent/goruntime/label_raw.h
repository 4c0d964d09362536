/*
 * Labels before their strings are read: what the forms that runtimes keep them in have in common.
 */
#ifndef AGENT_GORUNTIME_LABEL_RAW_H
#define AGENT_GORUNTIME_LABEL_RAW_H

#include <stdint.h>

#include "agent/goruntime/label.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

/* The header of a Go string. */
struct raw_text {
	taddr addr;
	uint64_t size;
};

struct raw_label {
	struct raw_text key, value;
};

struct raw_labels {
	struct raw_label labels[LABELS_MAX];
	uint32_t count;
	/* While reading: what is missing if memory cannot be read now. */
	enum label_status step;
};

/* Does this runtime keep labels in this form? Then the other function reads those at addr. */
bool label_list_known(const struct layout *layout);
must_check struct error *label_list_read(struct memory *memory, const struct layout *layout,
					 taddr addr, struct raw_labels *ret);

bool label_map_known(const struct layout *layout);
must_check struct error *label_map_read(struct memory *memory, const struct layout *layout,
					taddr addr, struct raw_labels *ret);

/* Takes one label, whose strings' headers lie at key and value; ERROR_LIMIT if there are too many.
 */
must_check struct error *raw_labels_add(struct raw_labels *labels, const uint8_t *key,
					const uint8_t *value);

#endif
