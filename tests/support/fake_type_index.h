/*
 * A made-up index of DWARF: what agent/binary/type_index.h says, over arrays that a test fills.
 * Type 0 of the array is none, as the index has it.
 */
#ifndef TESTS_SUPPORT_FAKE_TYPE_INDEX_H
#define TESTS_SUPPORT_FAKE_TYPE_INDEX_H

#include "agent/binary/type_index.h"

/* Which of the locals or captures belong to the function at entry. */
struct fake_function_range {
	taddr entry;
	uint32_t first, count;
};

struct type_index {
	const struct indexed_type *types;
	uint32_t type_count;
	const struct indexed_field *fields;
	uint32_t field_count;
	const struct indexed_global *globals;
	uint32_t global_count;
	const struct indexed_local *locals;
	const struct fake_function_range *local_ranges;
	uint32_t local_count, local_range_count;
	const struct indexed_field *captures;
	const struct fake_function_range *capture_ranges;
	uint32_t capture_count, capture_range_count;
	const struct fake_function_range *params; /* first is the type of the first parameter */
	uint32_t param_count;
};

#endif
