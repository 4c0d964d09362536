#include "daemon/answer_objects.h"

#include "daemon/answer_scan.h"
#include "daemon/object_query.h"
#include "daemon/quantity.h"

enum {
	ADDRESS_SEGMENT = 3, /* of /pid/N/object/ADDR */
	SECOND_US = 1000000,
};

static struct error *answer(struct exchange *exchange, object_query_maker *make,
			    scan_renderer *const renderers[FORMAT_END])
{
	struct object_query query;
	struct error *err = make(&query, &exchange->params);

	return err ? err : answer_scan(exchange, 0, &query.analysis, renderers);
}

/* A page keeps its scan for the next one. */
static struct error *answer_page(struct exchange *exchange, object_query_maker *make,
				 scan_renderer *const renderers[FORMAT_END])
{
	if (!exchange->params.has_keep)
		exchange->params.keep_us = (uint64_t)PARAMS_PAGE_KEEP_SECONDS * SECOND_US;
	return answer(exchange, make, renderers);
}

struct error *answer_histogram(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_histogram,
		[FORMAT_TEXT] = render_text_histogram,
	};

	return answer(exchange, object_query_histogram, renderers);
}

struct error *answer_objects(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_objects,
		[FORMAT_TEXT] = render_text_objects,
	};

	return answer_page(exchange, object_query_objects, renderers);
}

struct error *answer_dominators(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_dominators,
		[FORMAT_TEXT] = render_text_dominators,
	};

	return answer_page(exchange, object_query_dominators, renderers);
}

/* Until somebody can be granted them, contents are for root. */
static struct error *check_contents(const struct exchange *exchange)
{
	if (!exchange->params.contents || exchange->peer.uid == 0)
		return NULL;
	return error_new(ERROR_FORBIDDEN, "contents=1: what strings and byte slices hold is for "
					  "root only; leave it out, or ask as root");
}

struct error *answer_object(struct exchange *exchange)
{
	static scan_renderer *const renderers[FORMAT_END] = {
		[FORMAT_JSON] = render_json_object,
		[FORMAT_TEXT] = render_text_object,
	};
	const char *address = exchange->uri.segments[ADDRESS_SEGMENT];
	struct error *err = check_contents(exchange);

	if (err)
		return err;
	if (!quantity_address(address, &exchange->params.object))
		return error_new(ERROR_BAD_REQUEST,
				 "%s: the address of an object is wanted, such as 0xc000123000",
				 address);
	return answer(exchange, object_query_object, renderers);
}
