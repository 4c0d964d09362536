#include "daemon/json_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rfc3339.h"
#include "daemon/text.h"
#include "daemon/utf8.h"

/* 15 digits hold every microsecond of a century, and 0.0113 stays 0.0113. */
enum { DUMP_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(15) };

void json_fields_init(struct json_fields *fields)
{
	fields->object = json_object();
	fields->failed = !fields->object;
}

struct error *json_fields_finish(struct json_fields *fields, json_t **ret)
{
	json_t *object = take(fields->object);

	if (fields->failed) {
		json_decref(object);
		return &error_nomem;
	}
	*ret = object;
	return NULL;
}

void json_add(struct json_fields *fields, const char *key, json_t *value)
{
	/* jansson takes the reference in any case, and fails for a NULL value or object */
	if (json_object_set_new_nocheck(fields->object, key, value) < 0)
		fields->failed = true;
}

void json_add_fields(struct json_fields *fields, const char *key, struct json_fields *value)
{
	json_t *object = NULL;
	struct error *err = json_fields_finish(value, &object);

	error_free(err);
	json_add(fields, key, object);
}

void json_add_null(struct json_fields *fields, const char *key)
{
	json_add(fields, key, json_null());
}

void json_add_bool(struct json_fields *fields, const char *key, bool value)
{
	json_add(fields, key, json_boolean(value));
}

void json_add_u64(struct json_fields *fields, const char *key, uint64_t value)
{
	json_add(fields, key, value <= INT64_MAX ? json_integer((json_int_t)value) : json_null());
}

void json_add_optional_u64(struct json_fields *fields, const char *key, bool has, uint64_t value)
{
	if (has)
		json_add_u64(fields, key, value);
	else
		json_add_null(fields, key);
}

json_t *json_from_bytes(ProtobufCBinaryData value)
{
	size_t size = 0;
	char *clean scoped(freep) = utf8_clean(value.data, value.len, &size);

	return clean ? json_stringn_nocheck(clean, size) : NULL;
}

void json_add_bytes(struct json_fields *fields, const char *key, ProtobufCBinaryData value)
{
	json_add(fields, key, json_from_bytes(value));
}

void json_add_string(struct json_fields *fields, const char *key, const char *value)
{
	ProtobufCBinaryData bytes = { .len = strlen(value), .data = (uint8_t *)(uintptr_t)value };

	json_add_bytes(fields, key, bytes);
}

void json_add_optional_bytes(struct json_fields *fields, const char *key, bool has,
			     ProtobufCBinaryData value)
{
	if (has)
		json_add_bytes(fields, key, value);
	else
		json_add_null(fields, key);
}

void json_add_address(struct json_fields *fields, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_add(fields, key, json_string(text));
}

void json_add_time(struct json_fields *fields, const char *key, uint64_t time_ns)
{
	char text[RFC3339_SIZE];

	json_add(fields, key, json_string(rfc3339_format(time_ns, text)));
}

void json_add_seconds(struct json_fields *fields, const char *key, uint64_t us)
{
	json_add(fields, key, json_real((double)us / 1e6));
}

static int append_dump(const char *buffer, size_t size, void *data)
{
	struct text *text = data;

	text_append(text, buffer, size);
	return text->err ? -1 : 0;
}

static void dump(struct text *text, const json_t *value, size_t flags)
{
	if (json_dump_callback(value, append_dump, text, DUMP_FLAGS | flags) < 0)
		text_fail(text, &error_nomem);
}

void json_write(struct text *text, json_t *value)
{
	dump(text, value, 0);
	json_decref(value);
	text_string(text, "\n");
}

/* A comma, unless nothing stands before it at this level. */
static void separate(struct text *text)
{
	char last = text->bytes.size ? (char)text->bytes.data[text->bytes.size - 1] : '{';

	if (last != '{' && last != '[')
		text_string(text, ",");
}

void json_begin(struct text *text, const char *key, char bracket)
{
	separate(text);
	if (key)
		text_printf(text, "\"%s\":", key);
	text_append(text, &bracket, 1);
}

void json_end(struct text *text, char bracket)
{
	text_append(text, &bracket, 1);
}

static void write_fields(struct text *text, struct json_fields *fields, size_t flags)
{
	json_t *object = NULL;
	struct error *err = json_fields_finish(fields, &object);

	if (err) {
		text_fail(text, err);
		return;
	}
	if (json_object_size(object) || !(flags & JSON_EMBED)) {
		separate(text);
		dump(text, object, flags);
	}
	json_decref(object);
}

void json_write_fields(struct text *text, struct json_fields *fields)
{
	write_fields(text, fields, JSON_EMBED);
}

void json_write_element(struct text *text, struct json_fields *element)
{
	write_fields(text, element, 0);
}
