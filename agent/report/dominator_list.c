/*
 * The tree is known by each node's parent. So all nodes are looked at once for those that belong on
 * the page, of which a heap (the data structure) keeps the best, and once more to count the
 * children of these.
 */
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

struct entry {
	uint64_t retained;
	uint32_t node;
	uint64_t children;
};

/* The first entries of the list behind a place, in a heap whose top is the last of them. */
struct page {
	const struct analysed *analysed;
	uint32_t parent;
	bool has_after;
	struct entry after;
	uint32_t limit, count;
	struct entry *entries;
	bool more;
};

/* Whether a stands before b in the list. */
static bool precedes(const struct entry *a, const struct entry *b)
{
	return a->retained != b->retained ? a->retained > b->retained : a->node < b->node;
}

static void sink(struct entry *entries, uint32_t count, uint32_t i)
{
	struct entry moved = entries[i];
	uint32_t child;

	while ((child = 2 * i + 1) < count) {
		if (child + 1 < count && precedes(&entries[child], &entries[child + 1]))
			child++;
		if (!precedes(&moved, &entries[child]))
			break;
		entries[i] = entries[child];
		i = child;
	}
	entries[i] = moved;
}

static void rise(struct entry *entries, uint32_t i)
{
	struct entry moved = entries[i];

	while (i && precedes(&entries[(i - 1) / 2], &moved)) {
		entries[i] = entries[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	entries[i] = moved;
}

static void offer(struct page *page, const struct entry *entry)
{
	if (page->has_after && !precedes(&page->after, entry))
		return;
	if (page->count < page->limit) {
		page->entries[page->count] = *entry;
		rise(page->entries, page->count++);
		return;
	}
	page->more = true;
	if (!precedes(entry, &page->entries[0]))
		return;
	page->entries[0] = *entry;
	sink(page->entries, page->count, 0);
}

/* ---- over all nodes ---- */

typedef void visitor(struct page *page, uint32_t node, uint32_t parent);

static void visit_span(struct page *page, const struct span *span, visitor *visit)
{
	const struct analysed *a = page->analysed;

	for (uint32_t slot = 0; span->state == SPAN_IN_USE && slot < span->elem_count; slot++) {
		uint32_t object = span->first_object + slot;

		if (mark_is_live(a->mark, object))
			visit(page, object, dominators_parent(a->dominators, object));
	}
}

static void visit_all(struct page *page, visitor *visit)
{
	const struct analysed *a = page->analysed;
	const struct span_table *spans = graph_spans(a->graph);

	for (uint32_t i = 0; i < span_table_count(spans); i++)
		visit_span(page, span_table_at(spans, i), visit);
	for (uint32_t i = 0; i < a->group_count; i++) {
		uint32_t node = dominators_group_node(a->dominators, i);

		visit(page, node, dominators_parent(a->dominators, node));
	}
}

/* Groups that hold nothing by themselves are left out. */
static void offer_child(struct page *page, uint32_t node, uint32_t parent)
{
	struct entry entry = { .node = node };

	if (parent != page->parent)
		return;
	entry.retained = dominators_retained(page->analysed->dominators, node);
	if (entry.retained)
		offer(page, &entry);
}

static int by_node(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;

	return (one->node > other->node) - (one->node < other->node);
}

static int by_place(const void *a, const void *b)
{
	return precedes(a, b) ? -1 : precedes(b, a);
}

/* The entries are sorted by node meanwhile. */
static void count_child(struct page *page, uint32_t node, uint32_t parent)
{
	const struct entry key = { .node = parent };
	struct entry *found;

	(void)node;
	found = bsearch(&key, page->entries, page->count, sizeof(key), by_node);
	if (found)
		found->children++;
}

static void find_page(struct page *page)
{
	visit_all(page, offer_child);
	qsort(page->entries, page->count, sizeof(*page->entries), by_node);
	visit_all(page, count_child);
	qsort(page->entries, page->count, sizeof(*page->entries), by_place);
}

/* ---- messages ---- */

/* The group of a node, or none: groups are few beside objects. */
static const struct root_group *group_of(const struct analysed *a, uint32_t node)
{
	uint32_t first = a->group_count ? dominators_group_node(a->dominators, 0) : 0;

	return a->group_count && node >= first && node - first < a->group_count
		   ? &a->groups[node - first]
		   : NULL;
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

static struct error *fill_group(const struct root_group *group, Goheapd__DominatorNode *message)
{
	struct error *err = message_text(group->name, &message->name);

	message->has_name = !err;
	return err;
}

static struct error *fill_node(const struct analysed *a, const struct entry *entry,
			       Goheapd__DominatorNode *message)
{
	const struct root_group *group = group_of(a, entry->node);

	message->retained_bytes = entry->retained;
	message->children = entry->children;
	return group ? fill_group(group, message) : fill_object(a, entry->node, message);
}

static struct error *add_node(const struct analysed *a, const struct entry *entry,
			      Goheapd__DominatorPage *page)
{
	Goheapd__DominatorNode *message;
	struct error *err = message_reserve((void ***)&page->nodes, page->n_nodes);

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__dominator_node__init(message);
	page->nodes[page->n_nodes++] = message;
	return fill_node(a, entry, message);
}

static struct error *fill(const struct page *page, Goheapd__ScanResult *result)
{
	Goheapd__DominatorPage *message = malloc(sizeof(*message));
	struct error *err = NULL;

	if (!message)
		return &error_nomem;
	goheapd__dominator_page__init(message);
	result->dominators = message;
	for (uint32_t i = 0; !err && i < page->count; i++)
		err = add_node(page->analysed, &page->entries[i], message);
	message->has_next_node = page->more;
	if (page->more)
		message->next_node = page->entries[page->count - 1].node;
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

static struct error *find_after(const Goheapd__DominatorsQuery *query, struct page *page)
{
	if (query->has_after_node != query->has_after_retained)
		return error_new(ERROR_BAD_REQUEST, "half a place in a list");
	page->has_after = query->has_after_node;
	page->after =
	    (struct entry){ .retained = query->after_retained, .node = query->after_node };
	return NULL;
}

struct error *dominator_list_fill(const struct analysed *analysed,
				  const Goheapd__DominatorsQuery *query,
				  Goheapd__ScanResult *result)
{
	struct page page = { .analysed = analysed, .limit = query->limit };
	struct error *err;

	if (query->limit == 0 || query->limit > OBJECT_LIST_MAX)
		return error_new(ERROR_BAD_REQUEST, "a page of %u nodes: 1 to %d are possible",
				 (unsigned)query->limit, OBJECT_LIST_MAX);
	err = find_parent(analysed, query, &page.parent);
	if (!err)
		err = find_after(query, &page);
	if (err)
		return err;
	page.entries = calloc(page.limit, sizeof(*page.entries));
	if (!page.entries)
		return &error_nomem;
	find_page(&page);
	err = fill(&page, result);
	free(page.entries);
	return err;
}
