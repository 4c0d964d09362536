#include "agent/binary/type_index_builder.h"

#include <string.h>

static void list_init(struct built_list *list, size_t record_size, size_t limit)
{
	list->record_size = record_size;
	bytes_init(&list->bytes, limit);
}

struct error *type_index_builder_init(struct type_index_builder *b, size_t limit)
{
	list_init(&b->types, sizeof(struct built_type), limit);
	list_init(&b->aliases, sizeof(struct built_alias), limit);
	list_init(&b->origins, sizeof(struct built_origin), limit);
	list_init(&b->scopes, sizeof(struct built_scope), limit);
	list_init(&b->functions, sizeof(struct built_function), limit);
	list_init(&b->locals, sizeof(struct built_local), limit);
	list_init(&b->captures, sizeof(struct built_capture), limit);
	list_init(&b->params, sizeof(struct built_param), limit);
	list_init(&b->fields, sizeof(struct field_record), limit);
	list_init(&b->globals, sizeof(struct global_record), limit);
	return string_pool_init(&b->strings, limit);
}

void type_index_builder_fini(struct type_index_builder *b)
{
	struct built_list *lists[] = { &b->types,     &b->aliases, &b->origins,  &b->scopes,
				       &b->functions, &b->locals,  &b->captures, &b->params,
				       &b->fields,    &b->globals };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		bytes_fini(&lists[i]->bytes);
	string_pool_fini(&b->strings);
	dwarf_lists_fini(&b->lists);
}

struct error *built_list_add(struct built_list *list, const void *record)
{
	return bytes_append(&list->bytes, record, list->record_size);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * cmd/internal/objabi/path.go, PathToPrefix, escapes points of a path's last element and what is
 * not printable. What stands in quotes is the tag of a field.
 */
static size_t unescape(const char *name, char *ret)
{
	char *out = ret;
	bool quoted = false;

	for (const char *p = name; *p; p++) {
		if (*p == '"' && (p == name || p[-1] != '\\'))
			quoted = !quoted;
		if (*p == '%' && !quoted && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0 &&
		    (p[1] != '0' || p[2] != '0')) {
			*out++ = (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
			p += 2;
		} else {
			*out++ = *p;
		}
	}
	return (size_t)(out - ret);
}

struct error *builder_name(struct type_index_builder *b, const char *name, uint32_t *ret)
{
	char *copy scoped(freep) = NULL;
	size_t size;

	if (!name)
		name = "";
	size = strlen(name);
	if (!memchr(name, '%', size))
		return string_pool_add(&b->strings, name, size, ret);
	copy = malloc(size + 1);
	if (!copy)
		return &error_nomem;
	return string_pool_add(&b->strings, copy, unescape(name, copy), ret);
}
