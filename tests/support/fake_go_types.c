#include "tests/support/fake_go_types.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 256, STAND_INS_MAX = 16, REFINED_MAX = 8, FIELDS_MAX = 8, VARIABLES_MAX = 128 };

/* ---- types ---- */

/* What stands for types elsewhere. */
struct stand_ins {
	taddr words[STAND_INS_MAX];
	type_id types[STAND_INS_MAX];
	uint32_t count;
};

struct go_types {
	struct go_type types[TYPES_MAX];
	uint32_t count;
	struct stand_ins itabs, closures, params;
	struct go_field refined[REFINED_MAX][FIELDS_MAX];
	uint32_t refined_count;
};

struct go_types *fake_types_new(void)
{
	struct go_types *types = calloc(1, sizeof(*types));

	assert(types);
	types->types[0].name = "?";
	types->count = 1;
	return types;
}

type_id fake_types_add(struct go_types *types, const struct go_type *type)
{
	assert(types->count < TYPES_MAX);
	types->types[types->count] = *type;
	return types->count++;
}

struct go_type *fake_types_at(struct go_types *types, type_id type)
{
	assert(type && type < types->count);
	return &types->types[type];
}

static void add_stand_in(struct stand_ins *list, taddr word, type_id type)
{
	assert(list->count < STAND_INS_MAX);
	list->words[list->count] = word;
	list->types[list->count++] = type;
}

void fake_types_add_itab(struct go_types *types, taddr itab, type_id type)
{
	add_stand_in(&types->itabs, itab, type);
}

void fake_types_add_closure(struct go_types *types, taddr code, type_id type)
{
	add_stand_in(&types->closures, code, type);
}

void fake_types_add_param(struct go_types *types, taddr code, type_id type)
{
	add_stand_in(&types->params, code, type);
}

type_id fake_type_plain(struct go_types *types, const char *name, enum go_kind kind, uint64_t size)
{
	return fake_types_add(
	    types, &(struct go_type){ .name = name, .kind = (uint8_t)kind, .size = size });
}

type_id fake_type_pointer(struct go_types *types, const char *name, type_id elem)
{
	return fake_types_add(types, &(struct go_type){ .name = name,
							.kind = GO_KIND_POINTER,
							.size = 8,
							.ptr_bytes = 8,
							.elem = elem,
							.direct_interface = true });
}

type_id fake_type_slice(struct go_types *types, const char *name, type_id elem)
{
	return fake_types_add(
	    types,
	    &(struct go_type){
		.name = name, .kind = GO_KIND_SLICE, .size = 24, .ptr_bytes = 8, .elem = elem });
}

type_id fake_type_channel(struct go_types *types, const char *name, type_id elem)
{
	return fake_types_add(
	    types,
	    &(struct go_type){
		.name = name, .kind = GO_KIND_CHAN, .size = 8, .ptr_bytes = 8, .elem = elem });
}

type_id fake_type_array(struct go_types *types, const char *name, type_id elem, uint64_t length)
{
	const struct go_type *of = go_type_at(types, elem);
	bool has_pointers = of->ptr_bytes && length;

	return fake_types_add(
	    types, &(struct go_type){
		       .name = name,
		       .kind = GO_KIND_ARRAY,
		       .size = of->size * length,
		       .ptr_bytes = has_pointers ? of->size * (length - 1) + of->ptr_bytes : 0,
		       .length = length,
		       .elem = elem });
}

type_id fake_type_string(struct go_types *types)
{
	return fake_types_add(
	    types, &(struct go_type){
		       .name = "string", .kind = GO_KIND_STRING, .size = 16, .ptr_bytes = 8 });
}

type_id fake_type_interface(struct go_types *types, const char *name, bool has_methods)
{
	return fake_types_add(types, &(struct go_type){ .name = name,
							.kind = GO_KIND_INTERFACE,
							.size = 16,
							.ptr_bytes = 16,
							.has_methods = has_methods });
}

type_id fake_type_struct(struct go_types *types, const char *name, uint64_t size,
			 const struct go_field *fields, uint32_t count)
{
	struct go_type type = { .name = name,
				.kind = GO_KIND_STRUCT,
				.size = size,
				.fields = fields,
				.field_count = count };

	for (uint32_t i = 0; i < count; i++) {
		uint64_t pointers = go_type_at(types, fields[i].type)->ptr_bytes;

		if (pointers)
			type.ptr_bytes = fields[i].offset + pointers;
	}
	return fake_types_add(types, &type);
}

void go_types_free(struct go_types *types)
{
	free(types);
}

const struct go_type *go_type_at(const struct go_types *types, type_id id)
{
	assert(id < types->count);
	return &types->types[id];
}

struct error *go_types_by_descriptor(struct go_types *types, taddr descriptor, type_id *ret)
{
	*ret = TYPE_UNKNOWN;
	for (uint32_t i = 1; i < types->count; i++)
		if (descriptor && types->types[i].descriptor == descriptor)
			*ret = i;
	return NULL;
}

static type_id find(const struct stand_ins *list, taddr word)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->words[i] == word)
			return list->types[i];
	return TYPE_UNKNOWN;
}

struct error *go_types_by_itab(struct go_types *types, taddr itab, type_id *ret)
{
	*ret = find(&types->itabs, itab);
	return NULL;
}

struct error *go_types_by_closure(struct go_types *types, taddr code, type_id *ret)
{
	*ret = find(&types->closures, code);
	return NULL;
}

struct error *go_types_first_param(struct go_types *types, taddr code, type_id *ret)
{
	*ret = find(&types->params, code);
	return NULL;
}

struct error *go_types_refined(struct go_types *types, type_id type, uint32_t field,
			       type_id of_field, type_id *ret)
{
	struct go_type refined = *go_type_at(types, type);
	struct go_field *fields = types->refined[types->refined_count++];

	assert(types->refined_count <= REFINED_MAX && refined.field_count <= FIELDS_MAX);
	memcpy(fields, refined.fields, refined.field_count * sizeof(*fields));
	fields[field].type = of_field;
	refined.fields = fields;
	*ret = fake_types_add(types, &refined);
	return NULL;
}

/* One that the test has made. */
struct error *go_types_pointer_to(struct go_types *types, type_id elem, type_id *ret)
{
	*ret = TYPE_UNKNOWN;
	for (uint32_t i = 1; i < types->count; i++)
		if (types->types[i].kind == GO_KIND_POINTER && types->types[i].elem == elem)
			*ret = i;
	return NULL;
}

struct error *go_types_by_name(struct go_types *types, const char *name, type_id *ret)
{
	*ret = TYPE_UNKNOWN;
	for (uint32_t i = types->count; i-- > 1;)
		if (!strcmp(types->types[i].name, name))
			*ret = i;
	return NULL;
}

/* ---- variables ---- */

struct variable_table {
	struct variable variables[VARIABLES_MAX];
	uint32_t count;
};

struct variable_table *fake_variables_new(void)
{
	struct variable_table *table = calloc(1, sizeof(*table));

	assert(table);
	return table;
}

void fake_variables_add(struct variable_table *table, const struct variable *variable)
{
	assert(table->count < VARIABLES_MAX);
	table->variables[table->count++] = *variable;
}

void variable_table_free(struct variable_table *table)
{
	free(table);
}

void variable_table_find(const struct variable_table *table, enum root_kind kind,
			 uint32_t goroutine, taddr slot, struct variable *ret)
{
	(void)kind, (void)goroutine;
	*ret = (struct variable){ .name = "(nameless data)",
				  .package = "",
				  .kind = VARIABLE_NAMELESS };
	for (uint32_t i = 0; i < table->count; i++)
		if (slot - table->variables[i].addr < table->variables[i].size)
			*ret = table->variables[i];
}
