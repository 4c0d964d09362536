/*
 * JSON objects, field by field. The first failure is remembered and everything after it does
 * nothing, so that an object is filled without a check at each field; json_fields_finish tells.
 * Optional numbers of a message become null where they are absent.
 */
#ifndef DAEMON_JSON_FIELDS_H
#define DAEMON_JSON_FIELDS_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct text;

struct json_fields {
	json_t *object;
	bool failed;
};

void json_fields_init(struct json_fields *fields);

/* The object, the caller's now; ERROR_NOMEM if a field could not be added. */
must_check struct error *json_fields_finish(struct json_fields *fields, json_t **ret);

/* Takes value over; NULL counts as a failure. */
void json_add(struct json_fields *fields, const char *key, json_t *value);

/* Takes a finished object of its own over. */
void json_add_fields(struct json_fields *fields, const char *key, struct json_fields *value);

void json_add_null(struct json_fields *fields, const char *key);
void json_add_bool(struct json_fields *fields, const char *key, bool value);
/* Numbers beyond 2^63-1, which JSON readers do not hold, become null. */
void json_add_u64(struct json_fields *fields, const char *key, uint64_t value);
void json_add_optional_u64(struct json_fields *fields, const char *key, bool has, uint64_t value);
void json_add_string(struct json_fields *fields, const char *key, const char *value);
/* A string in which invalid UTF-8 has become U+FFFD; NULL without memory. */
json_t *json_from_bytes(ProtobufCBinaryData value);
/* The same as a field. */
void json_add_bytes(struct json_fields *fields, const char *key, ProtobufCBinaryData value);
void json_add_optional_bytes(struct json_fields *fields, const char *key, bool has,
			     ProtobufCBinaryData value);
/* "0xc000123000" */
void json_add_address(struct json_fields *fields, const char *key, uint64_t value);
/* RFC 3339 UTC */
void json_add_time(struct json_fields *fields, const char *key, uint64_t time_ns);
/* Microseconds as seconds with decimals. */
void json_add_seconds(struct json_fields *fields, const char *key, uint64_t us);

/* Writes value, which it takes over, compactly; a failure is kept in the text. */
void json_write(struct text *text, json_t *value);

/*
 * An answer with long lists is written piece by piece, so that they never lie in memory as a tree:
 * between json_begin and json_end of an object come fields and what begins under a key of its own,
 * between those of a list its elements. Commas come by themselves. key is NULL at the top.
 */
void json_begin(struct text *text, const char *key, char bracket);
void json_end(struct text *text, char bracket);
/* Take over what they write. */
void json_write_fields(struct text *text, struct json_fields *fields);
void json_write_element(struct text *text, struct json_fields *element);

#endif
