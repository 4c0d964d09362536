#include "agent/report/dominator_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/analysis/dominators.h"
#include "agent/analysis/graph.h"
#include "agent/analysis/mark.h"
#include "agent/goruntime/object_header.h"
#include "agent/goruntime/span.h"
#include "agent/report/analysed.h"
#include "agent/report/message.h"
#include "agent/report/object_detail.h"
#include "agent/report/object_list.h"
#include "agent/report/object_type.h"
#include "agent/report/retained.h"

struct page {
	const struct analysed *analysed;
	const struct dominators *tree;
	struct dominator_child *nodes;
	uint64_t *children;
	uint32_t count;
	bool more;
};

static void page_fini(struct page *page)
{
	free(page->nodes);
	free(page->children);
}

static struct error *fill_object(const struct analysed *a, uint32_t object,
				 Goheapd__DominatorNode *message)
{
	const struct span *span = span_table_span_of(graph_spans(a->graph), object);
	struct object_type type;
	struct error *err = object_type(a, object, &type);

	message->has_address = true;
	message->address = span_object_addr(span, object) + object_header_bytes(a->layout, span);
	message->bytes = span->elem_size;
	if (err || type.type == TYPE_UNKNOWN)
		return err;
	err = object_type_name(a->types, type, &message->type);
	message->has_type = !err;
	return err;
}

static struct error *fill_group(const struct analysed *a, uint32_t group,
				Goheapd__DominatorNode *message)
{
	struct error *err =
	    message_text(retained_group_at(a->retained, group).name, &message->name);

	message->has_name = !err;
	return err;
}

static struct error *fill_node(const struct page *page, uint32_t i, Goheapd__DominatorNode *message)
{
	uint32_t node = page->nodes[i].node;
	uint32_t group = dominators_node_group(page->tree, node);

	message->retained_bytes = page->nodes[i].retained;
	message->children = page->children[i];
	return group == UINT32_MAX ? fill_object(page->analysed, node, message)
				   : fill_group(page->analysed, group, message);
}

static struct error *add_node(const struct page *page, uint32_t i, Goheapd__DominatorPage *list)
{
	Goheapd__DominatorNode *message;
	struct error *err = message_reserve((void ***)&list->nodes, list->n_nodes);

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__dominator_node__init(message);
	list->nodes[list->n_nodes++] = message;
	return fill_node(page, i, message);
}

/* Groups that retain nothing come last: with them the list ends. */
static void drop_empty(struct page *page)
{
	while (page->count && !page->nodes[page->count - 1].retained) {
		page->count--;
		page->more = false;
	}
}

static struct error *fill(const struct page *page, Goheapd__ScanResult *result)
{
	Goheapd__DominatorPage *list = malloc(sizeof(*list));
	struct error *err = NULL;

	if (!list)
		return &error_nomem;
	goheapd__dominator_page__init(list);
	result->dominators = list;
	for (uint32_t i = 0; !err && i < page->count; i++)
		err = add_node(page, i, list);
	list->has_next_node = page->more;
	if (page->more)
		list->next_node = page->nodes[page->count - 1].node;
	return err;
}

/* The node whose children are wanted. */
static struct error *find_parent(const struct analysed *a, const Goheapd__DominatorsQuery *query,
				 uint32_t *ret)
{
	struct error *err;

	*ret = DOMINATOR_TOP;
	if (!query->has_object)
		return NULL;
	err = object_detail_find(a, query->object, ret);
	if (!err && !mark_is_live(a->mark, *ret))
		err = error_new(ERROR_NOT_FOUND,
				"the object at 0x%" PRIx64 " is not live: it dominates nothing",
				query->object);
	return err;
}

static struct error *check(const Goheapd__DominatorsQuery *query)
{
	if (query->limit == 0 || query->limit > OBJECT_LIST_MAX)
		return error_new(ERROR_BAD_REQUEST, "a page of %u nodes: 1 to %d are possible",
				 (unsigned)query->limit, OBJECT_LIST_MAX);
	if (query->has_after_node != query->has_after_retained)
		return error_new(ERROR_BAD_REQUEST, "half a place in a list");
	return NULL;
}

static struct error *find_page(struct page *page, uint32_t parent,
			       const Goheapd__DominatorsQuery *query)
{
	const struct dominator_child after = { .node = query->after_node,
					       .retained = query->after_retained };

	page->nodes = calloc(query->limit, sizeof(*page->nodes));
	page->children = calloc(query->limit, sizeof(*page->children));
	if (!page->nodes || !page->children)
		return &error_nomem;
	page->count = dominators_children(page->tree, parent, query->has_after_node ? &after : NULL,
					  page->nodes, query->limit, &page->more);
	drop_empty(page);
	return dominators_count_children(page->tree, page->nodes, page->count, page->children);
}

struct error *dominator_list_fill(const struct analysed *analysed,
				  const Goheapd__DominatorsQuery *query,
				  Goheapd__ScanResult *result)
{
	struct page page scoped(page_fini) = { .analysed = analysed };
	uint32_t parent;
	struct error *err = check(query);

	if (!err && !analysed->retained)
		err = error_new(ERROR_UNSUPPORTED, "what dominates what is not known of this scan");
	if (err)
		return err;
	page.tree = retained_dominators(analysed->retained);
	err = find_parent(analysed, query, &parent);
	if (!err)
		err = find_page(&page, parent, query);
	return err ? err : fill(&page, result);
}
