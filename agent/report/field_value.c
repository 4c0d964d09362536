#include "agent/report/field_value.h"

#include <stdlib.h>
#include <string.h>

#include "agent/report/analysed.h"
#include "agent/report/message.h"
#include "proto/base/bytes.h"

const char field_not_kept[] = "not kept";
const char field_is_contents[] = "contents=1 tells it";
const char field_type_unknown[] = "the type is not known";
const char field_is_outside[] = "beyond the object's end";

enum { WORD = 8, WORDS_MAX = 3 };

static struct error *miss(Goheapd__ObjectField *field, const char *why)
{
	return field->missing ? NULL : message_string(why, &field->missing);
}

/* *ret_there: false if the bytes are not there, which is no error. */
static struct error *read_bytes(const struct field_list_input *input, taddr addr, void *to,
				size_t size, bool *ret_there)
{
	struct memory *memory = input->analysed->memory;
	struct error *err = memory ? memory_read(memory, addr, to, size) : NULL;

	*ret_there = memory && !err;
	if (!err || error_code(err) != ERROR_FAULT)
		return err;
	error_free(err);
	return NULL;
}

static struct error *read_words(const struct field_list_input *input, taddr addr, uint64_t *words,
				unsigned count, bool *ret_there)
{
	uint8_t raw[WORDS_MAX * WORD];
	struct error *err = read_bytes(input, addr, raw, count * WORD, ret_there);

	for (unsigned i = 0; !err && *ret_there && i < count; i++)
		words[i] = load_u64le(raw + i * WORD);
	return err;
}

/* ---- numbers ---- */

static void set_integer(Goheapd__ObjectField *field, int64_t value)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_INTEGER;
	field->integer = value;
}

static void set_number(Goheapd__ObjectField *field, uint64_t value)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_NUMBER;
	field->number = value;
}

static void set_real(Goheapd__ObjectField *field, double value)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_REAL;
	field->real = value;
}

static void set_pointer(Goheapd__ObjectField *field, taddr value)
{
	field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_POINTER;
	field->pointer = value;
}

static float float_of(const uint8_t *raw)
{
	uint32_t bits = load_u32le(raw);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double double_of(const uint8_t *raw)
{
	uint64_t bits = load_u64le(raw);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t unsigned_of(const uint8_t *raw, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)raw[i] << (8 * i);
	return value;
}

static int64_t signed_of(const uint8_t *raw, size_t size)
{
	unsigned unused = 64 - 8 * (unsigned)size;

	return (int64_t)(unsigned_of(raw, size) << unused) >> unused;
}

static void set_imaginary(Goheapd__ObjectField *field, double value)
{
	field->has_imaginary = true;
	field->imaginary = value;
}

/* Sizes are those of the kinds, whatever the type says. */
static size_t size_of_kind(uint8_t kind)
{
	switch (kind) {
	case GO_KIND_BOOL:
	case GO_KIND_INT8:
	case GO_KIND_UINT8:
		return 1;
	case GO_KIND_INT16:
	case GO_KIND_UINT16:
		return 2;
	case GO_KIND_INT32:
	case GO_KIND_UINT32:
	case GO_KIND_FLOAT32:
		return 4;
	case GO_KIND_COMPLEX128:
		return 16;
	default:
		return 8;
	}
}

static void decode_number(uint8_t kind, const uint8_t *raw, Goheapd__ObjectField *field)
{
	size_t size = size_of_kind(kind);

	switch (kind) {
	case GO_KIND_BOOL:
		field->value_case = GOHEAPD__OBJECT_FIELD__VALUE_TRUTH;
		field->truth = raw[0] != 0;
		break;
	case GO_KIND_INT:
	case GO_KIND_INT8:
	case GO_KIND_INT16:
	case GO_KIND_INT32:
	case GO_KIND_INT64:
		set_integer(field, signed_of(raw, size));
		break;
	case GO_KIND_FLOAT32:
		set_real(field, float_of(raw));
		break;
	case GO_KIND_FLOAT64:
		set_real(field, double_of(raw));
		break;
	case GO_KIND_COMPLEX64:
		set_real(field, float_of(raw));
		set_imaginary(field, float_of(raw + 4));
		break;
	case GO_KIND_COMPLEX128:
		set_real(field, double_of(raw));
		set_imaginary(field, double_of(raw + 8));
		break;
	case GO_KIND_UINT:
	case GO_KIND_UINT8:
	case GO_KIND_UINT16:
	case GO_KIND_UINT32:
	case GO_KIND_UINT64:
	case GO_KIND_UINTPTR:
		set_number(field, unsigned_of(raw, size));
		break;
	default: /* pointers, functions */
		set_pointer(field, unsigned_of(raw, size));
		break;
	}
}

static struct error *read_number(const struct field_list_input *input, uint8_t kind, taddr addr,
				 Goheapd__ObjectField *field)
{
	uint8_t raw[16] = { 0 };
	bool there;
	struct error *err = read_bytes(input, addr, raw, size_of_kind(kind), &there);

	if (err)
		return err;
	if (!there)
		return miss(field, field_not_kept);
	decode_number(kind, raw, field);
	return NULL;
}

/* ---- bytes ---- */

static struct error *read_text(const struct field_list_input *input, taddr addr, uint64_t length,
			       Goheapd__ObjectField *field)
{
	uint8_t text[FIELD_TEXT_MAX_BYTES];
	size_t size = length < sizeof(text) ? (size_t)length : sizeof(text);
	bool there = true;
	struct error *err = NULL;

	if (!input->contents)
		return miss(field, field_is_contents);
	if (size)
		err = read_bytes(input, addr, text, size, &there);
	if (err)
		return err;
	if (!there)
		return miss(field, field_not_kept);
	field->has_text = true;
	return message_bytes(text, size, &field->text);
}

static void set_length(Goheapd__ObjectField *field, uint64_t length)
{
	field->has_length = true;
	field->length = length;
}

static void set_capacity(Goheapd__ObjectField *field, uint64_t capacity)
{
	field->has_capacity = true;
	field->capacity = capacity;
}

struct error *field_value_bytes(const struct field_list_input *input, taddr addr, uint64_t length,
				Goheapd__ObjectField *field)
{
	set_length(field, length);
	return read_text(input, addr, length, field);
}

/* {pointer, length} and of a slice its capacity */
static struct error *read_block(const struct field_list_input *input, const struct go_type *type,
				taddr addr, Goheapd__ObjectField *field)
{
	bool is_slice = type->kind == GO_KIND_SLICE, there;
	uint64_t words[WORDS_MAX];
	struct error *err = read_words(input, addr, words, is_slice ? 3 : 2, &there);

	if (err)
		return err;
	if (!there)
		return miss(field, field_not_kept);
	set_pointer(field, words[0]);
	set_length(field, words[1]);
	if (is_slice)
		set_capacity(field, words[2]);
	if (is_slice && go_type_at(input->analysed->types, type->elem)->kind != GO_KIND_UINT8)
		return NULL;
	return read_text(input, words[0], words[1], field);
}

/* ---- what lies behind a pointer ---- */

/*
 * The length of a map is its first word, those of a channel its first two, of the elements in it
 * and of its buffer: the compiler's len() and cap() know it so (runtime/map.go, hmap; runtime/
 * chan.go, hchan; internal/runtime/maps, Map).
 */
static struct error *read_lengths(const struct field_list_input *input, uint8_t kind,
				  Goheapd__ObjectField *field)
{
	bool is_chan = kind == GO_KIND_CHAN, there = true;
	uint64_t words[WORDS_MAX] = { 0 };
	struct error *err = NULL;

	if (field->value_case != GOHEAPD__OBJECT_FIELD__VALUE_POINTER)
		return NULL;
	if (field->pointer)
		err = read_words(input, field->pointer, words, is_chan ? 2 : 1, &there);
	if (err || !there)
		return err;
	set_length(field, words[0]);
	if (is_chan)
		set_capacity(field, words[1]);
	return NULL;
}

static struct error *read_interface(const struct field_list_input *input,
				    const struct go_type *type, taddr addr,
				    Goheapd__ObjectField *field)
{
	struct go_types *types = input->analysed->types;
	uint64_t words[WORDS_MAX];
	type_id dynamic = TYPE_UNKNOWN;
	bool there;
	struct error *err = read_words(input, addr, words, 2, &there);

	if (err)
		return err;
	if (!there)
		return miss(field, field_not_kept);
	set_pointer(field, words[1]);
	if (!words[0])
		return NULL;
	err = type->has_methods ? go_types_by_itab(types, words[0], &dynamic)
				: go_types_by_descriptor(types, words[0], &dynamic);
	if (err)
		return err;
	if (dynamic == TYPE_UNKNOWN)
		return miss(field, field_type_unknown);
	field->has_dynamic_type = true;
	return message_text(go_type_at(types, dynamic)->name, &field->dynamic_type);
}

struct error *field_value_read(const struct field_list_input *input, type_id id, taddr addr,
			       Goheapd__ObjectField *field)
{
	const struct go_type *type = go_type_at(input->analysed->types, id);
	struct error *err;

	switch (type->kind) {
	case GO_KIND_INVALID:
		return miss(field, field_type_unknown);
	case GO_KIND_STRING:
	case GO_KIND_SLICE:
		return read_block(input, type, addr, field);
	case GO_KIND_INTERFACE:
		return read_interface(input, type, addr, field);
	case GO_KIND_MAP:
	case GO_KIND_CHAN:
		err = read_number(input, type->kind, addr, field);
		return err ? err : read_lengths(input, type->kind, field);
	case GO_KIND_ARRAY:
		return field_value_bytes(input, addr, type->length, field);
	case GO_KIND_STRUCT: /* one without fields */
		return NULL;
	default:
		return read_number(input, type->kind, addr, field);
	}
}
