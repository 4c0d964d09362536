#include "tests/support/ask_types.h"

#include <string.h>

#include "agent/binary/type_index.h"

enum { RECORDS_MAX = 1 << 16 };

/* So that nothing of what was read goes unread by us. */
static volatile size_t seen;

static void see(const char *name)
{
	seen += strlen(name);
}

static void ask_fields(const struct type_index *index, const struct indexed_type *type)
{
	for (uint32_t i = 0; i < type->field_count && i < RECORDS_MAX; i++) {
		struct indexed_field field;
		struct error *err = type_index_field(index, type->first_field + i, &field);

		if (!err)
			see(field.name);
		error_free(err);
	}
}

static void ask_every_type(const struct type_index *index)
{
	for (uint32_t i = 0; i < type_index_type_count(index) && i < RECORDS_MAX; i++) {
		struct indexed_type type;
		struct error *err = type_index_type(index, i, &type);

		if (!err) {
			seen += type_index_find_name(index, type.name);
			seen += type_index_find_descriptor(index, type.descriptor);
			ask_fields(index, &type);
		}
		error_free(err);
	}
}

static void ask_globals(const struct type_index *index)
{
	for (uint32_t i = 0; i < type_index_global_count(index) && i < RECORDS_MAX; i++) {
		struct indexed_global global;
		struct error *err = type_index_global(index, i, &global);

		if (!err)
			see(global.name);
		error_free(err);
	}
}

static void ask_locals(const struct type_index *index, taddr entry)
{
	uint32_t first = 0, count = 0;
	struct error *err = type_index_locals(index, entry, &first, &count);

	error_free(err);
	for (uint32_t i = 0; !err && i < count && i < RECORDS_MAX; i++) {
		struct indexed_local local;
		struct error *local_err = type_index_local(index, first + i, &local);

		if (!local_err) {
			see(local.name);
			see(local.function);
		}
		error_free(local_err);
	}
}

static void ask_captures(const struct type_index *index, taddr entry)
{
	uint32_t first = 0, count = 0;
	struct error *err = type_index_captures(index, entry, &first, &count);

	error_free(err);
	for (uint32_t i = 0; !err && i < count && i < RECORDS_MAX; i++) {
		struct indexed_field field;
		struct error *field_err = type_index_capture(index, first + i, &field);

		if (!field_err)
			see(field.name);
		error_free(field_err);
	}
}

void ask_types(const struct type_index *index, taddr entry)
{
	ask_every_type(index);
	ask_globals(index);
	ask_locals(index, entry);
	ask_captures(index, entry);
}
