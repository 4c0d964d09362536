#include "daemon/page_cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *page_cursor_format(const struct page_cursor *cursor, char text[PAGE_CURSOR_SIZE])
{
	int size = snprintf(text, PAGE_CURSOR_SIZE, "%s", cursor->id);

	for (unsigned i = 0; i < cursor->count; i++)
		size += snprintf(text + size, PAGE_CURSOR_SIZE - (size_t)size, ".%" PRIx64,
				 cursor->numbers[i]);
	return text;
}

/* Hexadecimal digits, as many as a number has; they are stepped over. */
static bool take_number(const char **text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	size_t size = strspn(*text, digits);

	*ret = 0;
	if (size == 0 || size > 16)
		return false;
	for (size_t i = 0; i < size; i++)
		*ret = *ret << 4 | (uint64_t)(strchr(digits, (*text)[i]) - digits);
	*text += size;
	return true;
}

static bool parse(const char *text, struct page_cursor *cursor)
{
	size_t size = strcspn(text, ".");

	if (size == 0 || size >= sizeof(cursor->id))
		return false;
	memcpy(cursor->id, text, size);
	text += size;
	for (; *text == '.' && cursor->count < PAGE_CURSOR_NUMBERS; cursor->count++) {
		text++;
		if (!take_number(&text, &cursor->numbers[cursor->count]))
			return false;
	}
	return cursor->count && *text == '\0';
}

struct error *page_cursor_parse(const char *text, struct page_cursor *ret)
{
	struct page_cursor cursor = { .count = 0 };

	if (!parse(text, &cursor))
		return error_new(ERROR_BAD_REQUEST, "cursor=%s: a next_cursor is wanted", text);
	*ret = cursor;
	return NULL;
}

static struct error *check_count(const struct page_cursor *cursor, unsigned count)
{
	if (!cursor->count || cursor->count == count)
		return NULL;
	return error_new(ERROR_BAD_REQUEST, "the cursor is of another list than this");
}

bool page_cursor_of_objects(const char *id, const Goheapd__ObjectPage *page,
			    struct page_cursor *ret)
{
	*ret =
	    (struct page_cursor){ .count = PAGE_CURSOR_OBJECTS, .numbers = { page->next_after } };
	snprintf(ret->id, sizeof(ret->id), "%s", id);
	return page->has_next_after;
}

bool page_cursor_of_dominators(const char *id, const Goheapd__DominatorPage *page,
			       struct page_cursor *ret)
{
	*ret = (struct page_cursor){ .count = PAGE_CURSOR_DOMINATORS };
	snprintf(ret->id, sizeof(ret->id), "%s", id);
	if (!page->has_next_node || !page->n_nodes)
		return false;
	ret->numbers[0] = page->nodes[page->n_nodes - 1]->retained_bytes;
	ret->numbers[1] = page->next_node;
	return true;
}

struct error *page_cursor_to_objects(const struct page_cursor *cursor, Goheapd__ObjectsQuery *query)
{
	query->has_after = cursor->count > 0;
	query->after = cursor->numbers[0];
	return check_count(cursor, PAGE_CURSOR_OBJECTS);
}

struct error *page_cursor_to_dominators(const struct page_cursor *cursor,
					Goheapd__DominatorsQuery *query)
{
	query->has_after_retained = query->has_after_node = cursor->count > 0;
	query->after_retained = cursor->numbers[0];
	query->after_node = (uint32_t)cursor->numbers[1];
	return check_count(cursor, PAGE_CURSOR_DOMINATORS);
}
