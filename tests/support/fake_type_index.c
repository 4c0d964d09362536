#include "tests/support/fake_type_index.h"

#include <string.h>

static struct error *out_of_range(const char *what, uint32_t number)
{
	return error_new(ERROR_FORMAT, "%s %u of a made-up index", what, number);
}

#define GET(array, count, number, ret)                                                             \
	do {                                                                                       \
		if ((number) >= (count))                                                           \
			return out_of_range(#array, (number));                                     \
		*(ret) = (array)[number];                                                          \
		return NULL;                                                                       \
	} while (0)

uint32_t type_index_type_count(const struct type_index *index)
{
	return index->type_count;
}

struct error *type_index_type(const struct type_index *index, uint32_t number,
			      struct indexed_type *ret)
{
	GET(index->types, index->type_count, number, ret);
}

struct error *type_index_field(const struct type_index *index, uint32_t number,
			       struct indexed_field *ret)
{
	GET(index->fields, index->field_count, number, ret);
}

uint32_t type_index_find_name(const struct type_index *index, const char *name)
{
	for (uint32_t i = 1; i < index->type_count; i++)
		if (!strcmp(index->types[i].name, name))
			return i;
	return 0;
}

uint32_t type_index_find_descriptor(const struct type_index *index, taddr descriptor)
{
	for (uint32_t i = 1; i < index->type_count; i++)
		if (index->types[i].descriptor == descriptor)
			return i;
	return 0;
}

uint32_t type_index_global_count(const struct type_index *index)
{
	return index->global_count;
}

struct error *type_index_global(const struct type_index *index, uint32_t i,
				struct indexed_global *ret)
{
	GET(index->globals, index->global_count, i, ret);
}

static void find_range(const struct fake_function_range *ranges, uint32_t count, taddr entry,
		       uint32_t *ret_first, uint32_t *ret_count)
{
	*ret_first = *ret_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (ranges[i].entry == entry) {
			*ret_first = ranges[i].first;
			*ret_count = ranges[i].count;
		}
	}
}

struct error *type_index_locals(const struct type_index *index, taddr entry, uint32_t *ret_first,
				uint32_t *ret_count)
{
	find_range(index->local_ranges, index->local_range_count, entry, ret_first, ret_count);
	return NULL;
}

struct error *type_index_local(const struct type_index *index, uint32_t i,
			       struct indexed_local *ret)
{
	GET(index->locals, index->local_count, i, ret);
}

uint32_t type_index_first_param(const struct type_index *index, taddr entry)
{
	uint32_t type, count;

	find_range(index->params, index->param_count, entry, &type, &count);
	return type;
}

struct error *type_index_captures(const struct type_index *index, taddr entry, uint32_t *ret_first,
				  uint32_t *ret_count)
{
	find_range(index->capture_ranges, index->capture_range_count, entry, ret_first, ret_count);
	return NULL;
}

uint32_t type_index_capture_count(const struct type_index *index)
{
	return index->capture_count;
}

struct error *type_index_capture(const struct type_index *index, uint32_t i,
				 struct indexed_field *ret)
{
	GET(index->captures, index->capture_count, i, ret);
}
