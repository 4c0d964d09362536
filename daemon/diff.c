#include "daemon/diff.h"

#include <string.h>

#include "proto/base/checked.h"

enum { NS_PER_SECOND = 1000000000 };

/* More than that there is not. */
static int64_t with_sign(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t change(uint64_t from, uint64_t to)
{
	return with_sign(to) - with_sign(from);
}

/* ---- types ---- */

static struct error *add_types(struct name_sums *sums, const Goheapd__Histogram *histogram,
			       enum chain_sign sign)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < histogram->n_types; i++) {
		const Goheapd__TypeRow *row = histogram->types[i];

		err = name_sums_add(sums, row->type, sign * with_sign(row->objects),
				    sign * with_sign(row->bytes));
	}
	return err;
}

static struct error *compare_types(struct diff *diff, const Goheapd__Histogram *from,
				   const Goheapd__Histogram *to)
{
	struct error *err = add_types(&diff->types, to, CHAIN_PLUS);

	if (!err)
		err = add_types(&diff->types, from, CHAIN_MINUS);
	if (err)
		return err;
	name_sums_sort(&diff->types);
	diff->unknown_objects = change(from->unknown_objects, to->unknown_objects);
	diff->unknown_bytes = change(from->unknown_bytes, to->unknown_bytes);
	return NULL;
}

/* ---- label sets ---- */

/* Sets by their labels, in a tree that has no chains. */
static struct error *labels_at(struct diff *diff, struct chain_tree *known, size_t *capacity,
			       const struct chain_labels *labels, struct diff_labels **ret)
{
	uint32_t id;
	struct error *err = chain_tree_labels(known, labels, &id);

	if (err)
		return err;
	if (diff->label_count == *capacity && id == diff->label_count) {
		size_t larger = *capacity ? *capacity * 2 : 64;
		struct diff_labels *rows = realloc(diff->labels, larger * sizeof(*rows));

		if (!rows)
			return &error_nomem;
		diff->labels = rows;
		*capacity = larger;
	}
	if (id == diff->label_count)
		diff->labels[diff->label_count++] = (struct diff_labels){ .labels = *labels };
	*ret = &diff->labels[id];
	return NULL;
}

static void add_figure(int64_t *sum, uint64_t value, enum chain_sign sign)
{
	*sum = bounded_add(*sum, sign * with_sign(value));
}

static void add_usage(struct diff_labels *row, const Goheapd__LabelUsage *usage,
		      enum chain_sign sign)
{
	row->has_bytes |= usage->has_reachable_bytes && usage->has_exclusive_bytes;
	add_figure(&row->goroutines, usage->goroutines, sign);
	add_figure(&row->reachable_bytes, usage->reachable_bytes, sign);
	add_figure(&row->exclusive_bytes, usage->exclusive_bytes, sign);
}

static struct error *add_sets(struct diff *diff, struct chain_tree *known, size_t *capacity,
			      const Goheapd__LabelReport *report, enum chain_sign sign)
{
	const struct chain_labels none = { 0 };
	struct diff_labels *row;
	struct error *err = labels_at(diff, known, capacity, &none, &row);

	if (!err)
		add_usage(row, report->unlabelled, sign);
	for (size_t i = 0; !err && i < report->n_sets; i++) {
		const struct chain_labels labels = { report->sets[i]->labels,
						     report->sets[i]->n_labels };

		err = labels_at(diff, known, capacity, &labels, &row);
		if (!err)
			add_usage(row, report->sets[i]->usage, sign);
	}
	return err;
}

static int compare_pairs(const struct chain_labels *a, const struct chain_labels *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		ProtobufCBinaryData parts[2][2] = { { a->pairs[i]->key, b->pairs[i]->key },
						    { a->pairs[i]->value, b->pairs[i]->value } };

		for (int j = 0; j < 2; j++) {
			ProtobufCBinaryData x = parts[j][0], y = parts[j][1];
			size_t common = x.len < y.len ? x.len : y.len;
			int order = common ? memcmp(x.data, y.data, common) : 0;

			if (order || x.len != y.len)
				return order ? order : (x.len > y.len) - (x.len < y.len);
		}
	}
	return (a->count > b->count) - (a->count < b->count);
}

static int compare_growth(const void *a, const void *b)
{
	const struct diff_labels *x = a, *y = b;

	if (x->exclusive_bytes != y->exclusive_bytes)
		return x->exclusive_bytes > y->exclusive_bytes ? -1 : 1;
	if (x->reachable_bytes != y->reachable_bytes)
		return x->reachable_bytes > y->reachable_bytes ? -1 : 1;
	if (x->goroutines != y->goroutines)
		return x->goroutines > y->goroutines ? -1 : 1;
	return compare_pairs(&x->labels, &y->labels);
}

static bool labels_changed(const struct diff_labels *row)
{
	return row->goroutines || row->reachable_bytes || row->exclusive_bytes;
}

static struct error *compare_labels(struct diff *diff, const Goheapd__LabelReport *from,
				    const Goheapd__LabelReport *to)
{
	struct chain_tree known;
	size_t capacity = 0, count = 0;
	struct error *err;

	chain_tree_init(&known);
	err = add_sets(diff, &known, &capacity, to, CHAIN_PLUS);
	if (!err)
		err = add_sets(diff, &known, &capacity, from, CHAIN_MINUS);
	chain_tree_fini(&known);
	if (err)
		return err;
	for (size_t i = 0; i < diff->label_count; i++) {
		if (labels_changed(&diff->labels[i]))
			diff->labels[count++] = diff->labels[i];
	}
	diff->label_count = count;
	if (count)
		qsort(diff->labels, count, sizeof(*diff->labels), compare_growth);
	diff->has_labels = true;
	return NULL;
}

/* ---- how long it can go on ---- */

static bool is_one_process(const Goheapd__Identity *a, const Goheapd__Identity *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks;
}

/* What is free below the limit of the control group, or of the runtime, whichever is less. */
static bool room_left(const Goheapd__ScanResult *result, uint64_t *ret)
{
	const Goheapd__Cgroup *cgroup = result->cgroup;
	const Goheapd__GcState *gc = result->gc;
	uint64_t room = UINT64_MAX;

	if (cgroup && cgroup->has_limit_bytes && cgroup->has_current_bytes)
		room = cgroup->limit_bytes > cgroup->current_bytes
			   ? cgroup->limit_bytes - cgroup->current_bytes
			   : 0;
	if (gc && gc->has_memory_limit_bytes) {
		/* what no collection can free: live objects and stacks */
		uint64_t held =
		    result->heap->live_bytes + (result->stacks ? result->stacks->bytes : 0);
		uint64_t left = gc->memory_limit_bytes > held ? gc->memory_limit_bytes - held : 0;

		room = left < room ? left : room;
	}
	*ret = room;
	return room != UINT64_MAX;
}

static void foresee(struct diff *diff, const Goheapd__ScanResult *from,
		    const Goheapd__ScanResult *to)
{
	uint64_t room;

	diff->has_slope = diff->seconds > 0 && is_one_process(from->identity, to->identity);
	if (!diff->has_slope)
		return;
	diff->slope = (double)diff->live_bytes / diff->seconds;
	diff->has_seconds_to_limit = diff->slope > 0 && room_left(to, &room);
	if (diff->has_seconds_to_limit)
		diff->seconds_to_limit = (double)room / diff->slope;
}

/* ---- all of it ---- */

static struct error *compare_chains(struct diff *diff, const Goheapd__ReferenceProfile *from,
				    const Goheapd__ReferenceProfile *to, uint32_t max_depth)
{
	struct error *err = chain_tree_add(&diff->chains, to, CHAIN_PLUS, max_depth);

	return err ? err : chain_tree_add(&diff->chains, from, CHAIN_MINUS, max_depth);
}

static double seconds_between(const Goheapd__ScanInfo *from, const Goheapd__ScanInfo *to)
{
	return (double)(int64_t)(to->started_at_ns - from->started_at_ns) / NS_PER_SECOND;
}

struct error *diff_init(struct diff *ret, const struct diff_side *from, const struct diff_side *to,
			uint32_t max_depth)
{
	const Goheapd__ScanResult *a = from->scan, *b = to->scan;
	struct error *err;

	*ret = (struct diff){
		.seconds = seconds_between(a->scan, b->scan),
		.live_bytes = change(a->heap->live_bytes, b->heap->live_bytes),
		.live_objects = change(a->heap->live_objects, b->heap->live_objects),
	};
	name_sums_init(&ret->types);
	chain_tree_init(&ret->chains);
	foresee(ret, a, b);
	err = compare_types(ret, from->objects->histogram, to->objects->histogram);
	if (!err)
		err = compare_chains(ret, from->objects->profile, to->objects->profile, max_depth);
	if (!err && a->labels && b->labels)
		err = compare_labels(ret, a->labels, b->labels);
	return err;
}

void diff_fini(struct diff *diff)
{
	name_sums_fini(&diff->types);
	chain_tree_fini(&diff->chains);
	free(diff->labels);
	diff->labels = NULL;
}
