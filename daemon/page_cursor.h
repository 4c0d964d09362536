/*
 * Where a list goes on: which scan it is of, and its last row. To callers a cursor is a word that
 * they hand back as it is.
 */
#ifndef DAEMON_PAGE_CURSOR_H
#define DAEMON_PAGE_CURSOR_H

#include <stdint.h>

#include "daemon/scan_ask.h"

/* How many numbers a row of each list has. */
enum { PAGE_CURSOR_OBJECTS = 1, PAGE_CURSOR_DOMINATORS = 2 };

enum { PAGE_CURSOR_NUMBERS = 2, PAGE_CURSOR_SIZE = SCAN_ID_SIZE + PAGE_CURSOR_NUMBERS * 17 };

struct page_cursor {
	char id[SCAN_ID_SIZE];
	unsigned count; /* of the numbers that name the row */
	uint64_t numbers[PAGE_CURSOR_NUMBERS];
};

const char *page_cursor_format(const struct page_cursor *cursor, char text[PAGE_CURSOR_SIZE]);

/* ERROR_BAD_REQUEST for what is no cursor of any list. */
must_check struct error *page_cursor_parse(const char *text, struct page_cursor *ret);

/* Where a page goes on; false if it is the last one. */
bool page_cursor_of_objects(const char *id, const Goheapd__ObjectPage *page,
			    struct page_cursor *ret);
bool page_cursor_of_dominators(const char *id, const Goheapd__DominatorPage *page,
			       struct page_cursor *ret);

/*
 * The question for the page that a cursor names; without one it stays as it is. ERROR_BAD_REQUEST
 * for a cursor of another list.
 */
must_check struct error *page_cursor_to_objects(const struct page_cursor *cursor,
						Goheapd__ObjectsQuery *query);
must_check struct error *page_cursor_to_dominators(const struct page_cursor *cursor,
						   Goheapd__DominatorsQuery *query);

#endif
