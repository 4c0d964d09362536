/*
 * Names with whole package paths. A descriptor's own name has the last element of each path alone
 * ("map[string]*cart.Item"). A type that has a name says elsewhere which package it is of, and the
 * names of all others follow from their parts, in the words of cmd/compile/internal/types/fmt.go.
 * Where no part has a longer name than its descriptor says, that is the right name as it stands.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/go_type_table.h"
#include "proto/base/bytes.h"

enum { NAME_MAX_BYTES = RTYPE_NAME_MAX };

/* A name being made. */
struct writer {
	struct go_types *types;
	const struct type_details *details;
	struct bytes out;
	struct error *err;
};

static void put(struct writer *w, const char *text)
{
	if (!w->err)
		w->err = bytes_append(&w->out, text, strlen(text));
}

/* The name as far as there is one: one that is still to come is as its descriptor says. */
static const char *name_of(const struct go_types *types, type_id id)
{
	const struct type_entry *entry = go_types_entry(types, id);

	if (entry->state != TYPE_DONE && types->details[entry->details - 1].string)
		return types->details[entry->details - 1].string;
	return entry->type.name;
}

static void put_type(struct writer *w, type_id id)
{
	put(w, name_of(w->types, id));
}

static void put_number(struct writer *w, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put(w, text);
}

/* The dot between package and name; NULL if it has no package. Brackets have dots of their own. */
static const char *package_dot(const char *name)
{
	const char *end = name + strlen(name);
	unsigned depth = 0;

	while (end-- > name) {
		if (*end == ']')
			depth++;
		else if (*end == '[' && depth)
			depth--;
		else if (*end == '.' && !depth)
			return end;
	}
	return NULL;
}

static void put_named(struct writer *w)
{
	const struct rtype *rtype = &w->details->rtype;
	const char *dot = package_dot(w->details->string);
	char *package scoped(freep) = NULL;
	struct error *err;

	if (dot && rtype->package) {
		err = rtype_text(&w->types->source, rtype->package, &package, NULL);
		if (err && go_types_is_final(err)) {
			w->err = err;
			return;
		}
		error_free(err);
	}
	if (package && *package) {
		put(w, package);
		put(w, dot);
	} else {
		put(w, w->details->string);
	}
}

static void put_chan(struct writer *w, const struct go_type *type)
{
	const struct rtype *rtype = &w->details->rtype;
	const char *elem = name_of(w->types, type->elem);
	bool ambiguous = rtype->direction == RTYPE_BOTH && !strncmp(elem, "<-", 2);

	put(w, rtype->direction == RTYPE_RECEIVE ? "<-chan "
	       : rtype->direction == RTYPE_SEND  ? "chan<- "
						 : "chan ");
	put(w, ambiguous ? "(" : "");
	put(w, elem);
	put(w, ambiguous ? ")" : "");
}

/* "(int, ...string) (int, error)" */
static void put_signature(struct writer *w)
{
	const struct rtype *rtype = &w->details->rtype;
	uint32_t in = rtype->item_count, out = rtype->out_count;

	put(w, "(");
	for (uint32_t i = 0; i < in; i++) {
		const char *name = name_of(w->types, w->details->parts[i]);
		bool rest = rtype->variadic && i + 1 == in && !strncmp(name, "[]", 2);

		put(w, i ? ", " : "");
		put(w, rest ? "..." : "");
		put(w, rest ? name + 2 : name);
	}
	put(w, !out ? ")" : out == 1 ? ") " : ") (");
	for (uint32_t i = 0; i < out; i++) {
		put(w, i ? ", " : "");
		put_type(w, w->details->parts[in + i]);
	}
	put(w, out > 1 ? ")" : "");
}

/* A tag as Go quotes it; what would need more than a backslash is left as it is. */
static void put_quoted(struct writer *w, const char *text)
{
	put(w, " \"");
	for (; *text; text++) {
		char piece[3] = { *text, '\0', '\0' };

		if (*text == '"' || *text == '\\') {
			piece[0] = '\\';
			piece[1] = *text;
		}
		put(w, piece);
	}
	put(w, "\"");
}

static void put_field(struct writer *w, uint32_t i)
{
	char *name scoped(freep) = NULL, *tag scoped(freep) = NULL;
	struct rtype_field field = { 0 };
	bool embedded = false;
	struct error *err = rtype_field(&w->types->source, &w->details->rtype, i, &field);

	if (!err)
		err = rtype_text(&w->types->source, field.name, &name, &tag);
	if (!err)
		err = rtype_name_is_embedded(&w->types->source, field.name, &embedded);
	if (err) {
		w->err = err;
		return;
	}
	if (!embedded && !field.embedded) {
		put(w, name);
		put(w, " ");
	}
	put_type(w, w->details->parts[i]);
	if (tag)
		put_quoted(w, tag);
}

static void put_struct(struct writer *w)
{
	uint32_t count = w->details->part_count;

	put(w, count ? "struct { " : "struct {");
	for (uint32_t i = 0; i < count && !w->err; i++) {
		put(w, i ? "; " : "");
		put_field(w, i);
	}
	put(w, count ? " }" : "}");
}

static void put_interface(struct writer *w)
{
	const struct rtype *rtype = &w->details->rtype;
	uint32_t count = w->details->part_count;

	put(w, count ? "interface { " : "interface {");
	for (uint32_t i = 0; i < count && !w->err; i++) {
		char *method scoped(freep) = NULL;
		const char *signature = name_of(w->types, w->details->parts[i]);
		taddr name, type;
		struct error *err = rtype_method(&w->types->source, rtype, i, &name, &type);

		if (!err)
			err = rtype_text(&w->types->source, name, &method, NULL);
		if (err) {
			w->err = err;
			return;
		}
		put(w, i ? "; " : "");
		put(w, method);
		put(w, strncmp(signature, "func", 4) ? signature : signature + 4);
	}
	put(w, count ? " }" : "}");
}

/* The field of that name of a struct. */
static type_id field_of(const struct go_types *types, type_id id, const char *name)
{
	const struct go_type *type = go_type_at(types, id);

	for (uint32_t i = 0; i < type->field_count; i++)
		if (!strcmp(type->fields[i].name, name))
			return type->fields[i].type;
	return TYPE_UNKNOWN;
}

/*
 * Keys and values of a map's bucket or group: each an array, or both in an array of structs. False
 * for what is no such struct.
 */
static bool slot_types(const struct go_types *types, type_id bucket, type_id *ret_key,
		       type_id *ret_elem)
{
	type_id slots = field_of(types, bucket, "slots");
	type_id slot = go_type_at(types, slots)->elem;

	*ret_key = slots ? field_of(types, slot, "key")
			 : go_type_at(types, field_of(types, bucket, "keys"))->elem;
	*ret_elem = slots ? field_of(types, slot, "elem")
			  : go_type_at(types, field_of(types, bucket, "elems"))->elem;
	return *ret_key && *ret_elem;
}

/* What the descriptor's name says of a slot: a pointer that stands for a large value does not. */
static type_id behind(const struct go_types *types, type_id slot, const char *text)
{
	const struct go_type *type = go_type_at(types, slot);

	return type->kind == GO_KIND_POINTER && *text != '*' && type->elem ? type->elem : slot;
}

/* Just past the bracket that closes the one at text. */
static const char *skip_bracket(const char *text)
{
	unsigned depth = 0;

	for (; *text; text++) {
		depth += *text == '[';
		depth -= *text == ']';
		if (!depth)
			return text + 1;
	}
	return text;
}

/* "map.bucket[string]*cart.Item", and what else the compiler makes for a map. */
static void put_map_part(struct writer *w)
{
	const char *string = w->details->string;
	const char *bracket = strchr(string, '[');
	type_id key, elem;

	if (!bracket || !slot_types(w->types, w->details->id, &key, &elem)) {
		put(w, string);
		return;
	}
	if (!w->err)
		w->err = bytes_append(&w->out, string, (size_t)(bracket - string));
	put(w, "[");
	put_type(w, behind(w->types, key, bracket + 1));
	put(w, "]");
	put_type(w, behind(w->types, elem, skip_bracket(bracket)));
}

static void put_unnamed(struct writer *w, const struct go_type *type)
{
	switch (type->kind) {
	case GO_KIND_ARRAY:
		put(w, "[");
		put_number(w, w->details->rtype.length);
		put(w, "]");
		put_type(w, type->elem);
		return;
	case GO_KIND_CHAN:
		put_chan(w, type);
		return;
	case GO_KIND_FUNC:
		put(w, "func");
		put_signature(w);
		return;
	case GO_KIND_INTERFACE:
		put_interface(w);
		return;
	case GO_KIND_MAP:
		put(w, "map[");
		put_type(w, type->key);
		put(w, "]");
		put_type(w, type->elem);
		return;
	case GO_KIND_POINTER:
		put(w, "*");
		put_type(w, type->elem);
		return;
	case GO_KIND_SLICE:
		put(w, "[]");
		put_type(w, type->elem);
		return;
	case GO_KIND_STRUCT:
		if (strncmp(w->details->string, "map.", 4))
			put_struct(w);
		else
			put_map_part(w);
		return;
	default:
		put(w, w->details->string);
	}
}

static bool parts_are_plain(const struct go_types *types, const struct type_details *details)
{
	for (uint32_t i = 0; i < details->part_count; i++)
		if (!go_types_entry(types, details->parts[i])->is_plain)
			return false;
	return true;
}

/* The descriptor's own name will do where a better one cannot be made. */
static struct error *keep_name(struct writer *w, const char **ret, bool *ret_is_plain)
{
	const char *string = w->details->string;

	if (w->err && go_types_is_final(w->err))
		return take(w->err);
	if (w->err || !w->out.size) {
		error_free(take(w->err));
		*ret_is_plain = true;
		return text_pool_copy(&w->types->pool, string, strlen(string), ret);
	}
	*ret_is_plain = w->out.size == strlen(string) && !memcmp(w->out.data, string, w->out.size);
	return text_pool_copy(&w->types->pool, (const char *)w->out.data, w->out.size, ret);
}

struct error *go_types_name(struct go_types *types, const struct type_details *details,
			    const char **ret, bool *ret_is_plain)
{
	struct writer w = { .types = types, .details = details };
	struct error *err;

	bytes_init(&w.out, NAME_MAX_BYTES);
	if (details->rtype.named)
		put_named(&w);
	else if (!parts_are_plain(types, details))
		put_unnamed(&w, go_type_at(types, details->id));
	err = keep_name(&w, ret, ret_is_plain);
	bytes_fini(&w.out);
	return err;
}
