#include "agent/binary/register_params.h"

#include <stddef.h>

#include "agent/binary/type_index_kind.h"

enum {
	INTEGERS = 9,
	FLOATS = 15,
	NESTING_MAX = 16, /* of types by value */
	FIELDS_MAX = 64,  /* that are looked at, of one type */
	SIZE_MAX_BYTES = 1 << 20,
	WORD = 8,
	FIRST_FLOAT = 17, /* DWARF's number of X0 */
	NONE = -1,
};

/* DWARF's numbers of RAX, RBX, RCX, RDI, RSI, R8 to R11. */
static const int32_t integer_registers[INTEGERS] = { 0, 3, 2, 5, 4, 8, 9, 10, 11 };

struct assignment {
	const struct param_types *types;
	unsigned integers, floats, fields;
	int32_t first; /* of the registers that the param has got */
};

static const struct type_record *type_of(const struct param_types *types, uint32_t number)
{
	return number ? types->type(types->arg, number) : NULL;
}

static bool take_integers(struct assignment *a, unsigned count)
{
	if (a->integers + count > INTEGERS)
		return false;
	if (a->first == NONE)
		a->first = integer_registers[a->integers];
	a->integers += count;
	return true;
}

static bool take_floats(struct assignment *a, unsigned count)
{
	if (a->floats + count > FLOATS)
		return false;
	if (a->first == NONE)
		a->first = FIRST_FLOAT + (int32_t)a->floats;
	a->floats += count;
	return true;
}

static bool assign(struct assignment *a, uint32_t number, unsigned depth);

static bool assign_fields(struct assignment *a, const struct type_record *type, unsigned depth)
{
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct field_record *field =
		    a->types->field(a->types->arg, type->first_field + i);

		if (!field || ++a->fields > FIELDS_MAX || !assign(a, field->type, depth + 1))
			return false;
	}
	return true;
}

/* The depth is bounded. */
static bool assign(struct assignment *a, uint32_t number, unsigned depth)
{
	const struct type_record *type = type_of(a->types, number);

	if (!type || depth > NESTING_MAX)
		return false;
	switch (type->kind) {
	case KIND_FLOAT32:
	case KIND_FLOAT64:
		return take_floats(a, 1);
	case KIND_COMPLEX64:
	case KIND_COMPLEX128:
		return take_floats(a, 2);
	case KIND_STRING:
	case KIND_INTERFACE:
		return take_integers(a, 2);
	case KIND_SLICE:
		return take_integers(a, 3);
	case KIND_STRUCT:
		return assign_fields(a, type, depth);
	case KIND_ARRAY:
		return !type->length || (type->length == 1 && assign(a, type->elem, depth + 1));
	default:
		return type->kind && take_integers(a, 1);
	}
}

/* Of the word that begins it: nothing in a frame is aligned to more. */
static uint32_t alignment(const struct param_types *types, uint32_t number)
{
	for (unsigned depth = 0; depth <= NESTING_MAX; depth++) {
		const struct type_record *type = type_of(types, number);

		if (!type)
			break;
		if (type->kind == KIND_ARRAY) {
			number = type->elem;
			continue;
		}
		if (type->kind == KIND_STRUCT)
			break;
		return type->size && type->size < WORD ? (uint32_t)type->size : WORD;
	}
	return WORD;
}

/* The greatest alignment of what a struct consists of. */
static uint32_t struct_alignment(const struct param_types *types, uint32_t number, unsigned depth)
{
	const struct type_record *type = type_of(types, number);
	uint32_t most = 1;

	if (!type || depth > NESTING_MAX)
		return WORD;
	if (type->kind == KIND_ARRAY)
		return struct_alignment(types, type->elem, depth + 1);
	if (type->kind != KIND_STRUCT)
		return alignment(types, number);
	for (uint32_t i = 0; i < type->field_count && i < FIELDS_MAX; i++) {
		const struct field_record *field = types->field(types->arg, type->first_field + i);
		uint32_t one =
		    field ? struct_alignment(types, field->type, depth + 1) : (uint32_t)WORD;

		if (one > most)
			most = one;
	}
	return most;
}

static uint32_t align(uint32_t offset, uint32_t to)
{
	return (offset + to - 1) / to * to;
}

/* Puts a value behind what is there; false if that gets too large. */
static bool put(const struct param_types *types, uint32_t number, uint32_t *offset,
		uint32_t *ret_at)
{
	const struct type_record *type = type_of(types, number);

	if (!type || type->size > SIZE_MAX_BYTES || *offset > SIZE_MAX_BYTES)
		return false;
	*ret_at = align(*offset, struct_alignment(types, number, 0));
	*offset = *ret_at + (uint32_t)type->size;
	return true;
}

/* What DWARF says of a param against what the rules do. */
static bool fits(const struct register_param *param, int32_t first, bool *is_shown)
{
	if (param->entry == PARAM_UNKNOWN)
		return true;
	if (!param->has_place || param->entry == PARAM_IN_FRAME)
		return param->entry == PARAM_IN_FRAME && !param->has_place;
	*is_shown = true;
	return param->entry == first;
}

static bool take_param(struct assignment *a, struct register_param *param, uint32_t *stack,
		       bool *is_shown)
{
	const struct assignment before = *a;
	uint32_t at;

	a->first = NONE;
	a->fields = 0;
	param->has_place = assign(a, param->type, 0);
	if (!fits(param, a->first, is_shown))
		return false;
	if (param->has_place)
		return true;
	*a = before;
	return put(a->types, param->type, stack, &at);
}

/*
 * With dictionary_at, a word without a name (a generic function's dictionary) comes before that
 * param.
 */
static bool take_params(const struct param_types *types, struct register_param *params,
			uint32_t count, uint32_t dictionary_at, uint32_t *stack)
{
	struct assignment a = { .types = types };
	uint32_t at, place = 0;
	bool is_shown = false;

	for (uint32_t i = 0; i < count; i++) {
		if (params[i].is_result)
			continue;
		if (place++ == dictionary_at && !take_integers(&a, 1))
			return false;
		if (!take_param(&a, &params[i], stack, &is_shown))
			return false;
	}
	*stack = align(*stack, WORD);
	a.integers = a.floats = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct assignment before = a;

		a.fields = 0;
		if (!params[i].is_result || assign(&a, params[i].type, 0))
			continue;
		a = before;
		if (!put(types, params[i].type, stack, &at))
			return false;
	}
	*stack = align(*stack, WORD);
	return is_shown;
}

static bool place_params(const struct param_types *types, struct register_param *params,
			 uint32_t count, uint32_t dictionary_at)
{
	uint32_t stack = 0, place = 0;

	if (!take_params(types, params, count, dictionary_at, &stack))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (params[i].is_result)
			continue;
		if (place++ == dictionary_at)
			stack += WORD;
		if (params[i].has_place && !put(types, params[i].type, &stack, &params[i].offset))
			return false;
	}
	return true;
}

void register_params_place(const struct param_types *types, struct register_param *params,
			   uint32_t count)
{
	/* Most functions have no dictionary; it comes first, or after a receiver. */
	static const uint32_t dictionaries[] = { UINT32_MAX, 0, 1 };

	for (size_t i = 0; i < sizeof(dictionaries) / sizeof(dictionaries[0]); i++)
		if (place_params(types, params, count, dictionaries[i]))
			return;
	for (uint32_t i = 0; i < count; i++)
		params[i].has_place = false;
}
