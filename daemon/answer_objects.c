#include "daemon/answer_objects.h"

#include "daemon/answer_scan.h"
#include "daemon/object_query.h"
#include "daemon/page_cursor.h"
#include "daemon/quantity.h"

/* Which parts of a path name an object: /pid/N/object/ADDR. */
enum { ADDRESS_SEGMENT = 3 };

/* Until somebody can be granted them, contents are for root. */
static struct error *check_contents(const struct exchange *exchange)
{
	if (!exchange->params.contents || exchange->peer.uid == 0)
		return NULL;
	return error_new(ERROR_FORBIDDEN, "contents=1: what strings and byte slices hold is for "
					  "root only; leave it out, or ask as root");
}

/* Answers with the page that a cursor names, of the scan it names. */
static struct error *follow(const struct page_cursor *cursor)
{
	return error_new(ERROR_NOT_FOUND,
			 "scan %s is not kept: ask again without a cursor for a new first page",
			 cursor->id);
}

struct error *answer_histogram(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_histogram,
		[FORMAT_TEXT] = render_text_histogram,
	};
	struct object_query query;
	struct error *err = params_check_depth(&exchange->params);

	if (err)
		return err;
	object_query_histogram(&query, &exchange->params);
	return answer_scan(exchange, 0, &query.analysis, renderers);
}

/* Reads the cursor, if there is one, and with it what page is meant. */
static struct error *read_cursor(const struct exchange *exchange, unsigned count,
				 struct page_cursor *ret)
{
	struct error *err = params_check_depth(&exchange->params);

	if (err || !exchange->params.cursor)
		return err;
	return page_cursor_parse(exchange->params.cursor, count, ret);
}

struct error *answer_objects(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_objects,
		[FORMAT_TEXT] = render_text_objects,
	};
	struct page_cursor cursor;
	struct object_query query;
	struct error *err = read_cursor(exchange, PAGE_CURSOR_OBJECTS, &cursor);

	if (err)
		return err;
	object_query_objects(&query, &exchange->params);
	if (exchange->params.cursor) {
		page_cursor_to_objects(&cursor, &query.objects);
		return follow(&cursor);
	}
	return answer_scan(exchange, 0, &query.analysis, renderers);
}

struct error *answer_dominators(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_dominators,
		[FORMAT_TEXT] = render_text_dominators,
	};
	struct page_cursor cursor;
	struct object_query query;
	struct error *err = read_cursor(exchange, PAGE_CURSOR_DOMINATORS, &cursor);

	if (err)
		return err;
	object_query_dominators(&query, &exchange->params);
	if (exchange->params.cursor) {
		page_cursor_to_dominators(&cursor, &query.dominators);
		return follow(&cursor);
	}
	return answer_scan(exchange, 0, &query.analysis, renderers);
}

struct error *answer_object(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_object,
		[FORMAT_TEXT] = render_text_object,
	};
	const char *address = exchange->uri.segments[ADDRESS_SEGMENT];
	struct object_query query;
	struct error *err = params_check_depth(&exchange->params);

	if (!err && !quantity_address(address, &exchange->params.object))
		err = error_new(ERROR_BAD_REQUEST,
				"%s: the address of an object is wanted, such as 0xc000123000",
				address);
	if (!err)
		err = check_contents(exchange);
	if (err)
		return err;
	object_query_object(&query, &exchange->params);
	return answer_scan(exchange, 0, &query.analysis, renderers);
}
