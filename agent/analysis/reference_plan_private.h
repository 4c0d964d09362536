/* What the files that put plans together share. */
#ifndef AGENT_ANALYSIS_REFERENCE_PLAN_PRIVATE_H
#define AGENT_ANALYSIS_REFERENCE_PLAN_PRIVATE_H

#include <pthread.h>

#include "agent/analysis/reference_plan.h"

struct plan_key {
	shape_id shape;
	uint32_t prefix;
	bool is_named;
};

struct plan_entry {
	struct plan_key key;
	const struct plan *plan; /* NULL: the entry is free */
};

struct plan_building {
	struct plan_slot *slots;
	uint32_t count, capacity;
	uint64_t words;
};

struct plan_table {
	pthread_mutex_t lock;
	const struct layout *layout;
	struct go_types *types;
	struct step_table *steps;
	struct plan_entry *entries;
	uint32_t count, capacity;
	uint64_t slot_count;
	struct plan_building building; /* under the lock */
};

extern const char *const plan_element_names[ELEMENT_CLASSES];

/* A step with one frame more, for something of a type. */
must_check struct error *plan_frame(struct plan_table *table, uint32_t step, const char *name,
				    type_id type, uint32_t *ret);

/* Adds a slot to the plan being built; one with too many is cut. Slots come by word. */
must_check struct error *plan_add_slot(struct plan_table *table, struct plan_slot slot);
must_check struct error *plan_add_pointer(struct plan_table *table, uint64_t offset, type_id elem,
					  uint32_t step);
must_check struct error *plan_add_interface(struct plan_table *table, uint64_t offset,
					    bool has_itab, uint32_t step);

/* Adds the slots of a type that lies at an offset. */
must_check struct error *plan_add_type(struct plan_table *table, uint64_t offset, type_id type,
				       uint32_t step, bool is_named, unsigned depth);

/* reference_plan_runtime.c */

/* Structs that are more than their fields say. *ret_is_done: all is added. */
must_check struct error *plan_add_known_struct(struct plan_table *table, uint64_t offset,
					       const struct go_type *type, uint32_t step,
					       bool *ret_is_done);

/* The same of a field, which lies at offset, of a struct that step leads to. */
must_check struct error *plan_add_known_field(struct plan_table *table, uint64_t offset,
					      const struct go_type *parent,
					      const struct go_field *field, uint32_t step,
					      bool *ret_is_done);

/* What a map is led to as in this runtime. */
enum shape_kind plan_map_kind(const struct plan_table *table);

/* Shapes that are no values. */
must_check struct error *plan_build_runtime(struct plan_table *table, struct plan_key key);

#endif
