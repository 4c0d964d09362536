/*
 * Names of variables. They are kept once, so that equal ones are one. Symbols have "%2e" and the
 * like for some characters of a package path (cmd/internal/objabi, PathToPrefix), names have not;
 * and what a generic function was made for is "[...]" in its name, as the runtime prints it
 * (runtime/symtab.go, funcNameForPrint).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/variable_private.h"

enum { FIRST_CAPACITY = 64 };

struct error *variable_list_add(struct variable_list *list, size_t item_size, size_t max,
				const void *item)
{
	if (list->count >= max)
		return error_new(ERROR_LIMIT, "more than %zu of a kind", max);
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : FIRST_CAPACITY;
		uint8_t *items = reallocarray(list->items, capacity, item_size);

		if (!items)
			return &error_nomem;
		list->items = items;
		list->capacity = capacity;
	}
	memcpy(list->items + list->count++ * item_size, item, item_size);
	return NULL;
}

void variable_list_fini(struct variable_list *list)
{
	free(list->items);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends text without escapes and returns its end. */
static char *put_plain(char *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		int high = text[i] == '%' && i + 2 < size ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		*out++ = low >= 0 ? (char)(high << 4 | low) : text[i];
		i += low >= 0 ? 2 : 0;
	}
	return out;
}

/* The same, with what stands in brackets left out. */
static char *put_function(char *out, const char *text)
{
	size_t size = strlen(text);
	const char *open = strchr(text, '['), *close = open ? strrchr(text, ']') : NULL;

	if (!close || close < open)
		return put_plain(out, text, size);
	out = put_plain(out, text, (size_t)(open - text));
	out = stpcpy(out, "[...]");
	return put_plain(out, close + 1, size - (size_t)(close + 1 - text));
}

struct error *variable_name(struct variable_table *table, const char *first, const char *last,
			    name_id *ret)
{
	size_t first_size = strlen(first), last_size = last ? strlen(last) : 0;
	char *name scoped(freep) = malloc(first_size + last_size + sizeof("[...]."));
	char *end;

	if (!name)
		return &error_nomem;
	end = put_function(name, first);
	if (last) {
		*end++ = '.';
		memcpy(end, last, last_size);
		end += last_size;
	}
	return string_pool_add(&table->names, name, (size_t)(end - name), ret);
}

struct error *variable_package(struct variable_table *table, const char *symbol, name_id *ret)
{
	/* Type arguments, in brackets, have paths of their own. */
	size_t size = strcspn(symbol, "[");
	const char *slash = memrchr(symbol, '/', size);
	const char *from = slash ? slash : symbol;
	const char *dot = memchr(from, '.', size - (size_t)(from - symbol));
	char *name scoped(freep) = malloc(size + 1);
	char *end;

	if (!name)
		return &error_nomem;
	end = put_plain(name, symbol, dot ? (size_t)(dot - symbol) : 0);
	return string_pool_add(&table->names, name, (size_t)(end - name), ret);
}
