#include "daemon/label_series.h"

#include <stdio.h>
#include <string.h>

#include "daemon/metric_writer.h"
#include "daemon/render.h"

struct error *label_series_name(const char *key, char **ret)
{
	char *name;

	if (asprintf(&name, "label_%s", key) < 0)
		return &error_nomem;
	for (char *c = name; *c; c++) {
		bool legal = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9') || *c == '_';

		if (!legal)
			*c = '_';
	}
	*ret = name;
	return NULL;
}

struct label_sum label_sum_of(const Goheapd__LabelUsage *usage)
{
	return (struct label_sum){
		.goroutines = usage->goroutines,
		.stack_bytes = usage->stack_bytes,
		.share_bytes = usage->share_bytes,
		.exclusive_bytes = usage->exclusive_bytes,
		.has_bytes = usage->has_share_bytes && usage->has_exclusive_bytes,
	};
}

static void sum_add(struct label_sum *sum, const struct label_sum *more)
{
	sum->goroutines += more->goroutines;
	sum->stack_bytes += more->stack_bytes;
	sum->share_bytes += more->share_bytes;
	sum->exclusive_bytes += more->exclusive_bytes;
	sum->has_bytes |= more->has_bytes;
}

/* The value that a set has for a key; empty, which is the same to Prometheus, if it has none. */
static ProtobufCBinaryData value_of(const Goheapd__LabelSet *set, const char *key)
{
	size_t size = strlen(key);

	for (size_t i = 0; i < set->n_labels; i++) {
		const Goheapd__LabelPair *pair = set->labels[i];

		if (pair->key.len == size && memcmp(pair->key.data, key, size) == 0)
			return pair->value;
	}
	return (ProtobufCBinaryData){ 0 };
}

static void write_labels(struct text *text, const Goheapd__LabelSet *set,
			 const struct metric_settings *settings)
{
	bool is_first = true;

	for (size_t i = 0; i < settings->label_count; i++) {
		ProtobufCBinaryData value = value_of(set, settings->labels[i].key);

		if (!value.len)
			continue;
		text_string(text, is_first ? "" : ",");
		metric_write_label(text, settings->labels[i].name, value);
		is_first = false;
	}
}

/* ---- folding ---- */

static int compare_labels(const void *a, const void *b)
{
	const struct label_series *x = a, *y = b;
	size_t common = x->labels_size < y->labels_size ? x->labels_size : y->labels_size;
	int order = common ? memcmp(x->labels, y->labels, common) : 0;

	return order ? order
		     : (x->labels_size > y->labels_size) - (x->labels_size < y->labels_size);
}

/* Largest share first; without shares, most goroutines. No two have the same labels. */
static int compare_sums(const void *a, const void *b)
{
	const struct label_series *x = a, *y = b;

	if (x->sum.share_bytes != y->sum.share_bytes)
		return x->sum.share_bytes > y->sum.share_bytes ? -1 : 1;
	if (x->sum.goroutines != y->sum.goroutines)
		return x->sum.goroutines > y->sum.goroutines ? -1 : 1;
	return compare_labels(a, b);
}

static void merge_equal(struct label_series_list *list)
{
	size_t kept = 0;

	qsort(list->series, list->count, sizeof(*list->series), compare_labels);
	for (size_t i = 0; i < list->count; i++) {
		struct label_series *last = kept ? &list->series[kept - 1] : NULL;

		if (last && compare_labels(last, &list->series[i]) == 0)
			sum_add(&last->sum, &list->series[i].sum);
		else
			list->series[kept++] = list->series[i];
	}
	list->count = kept;
}

static void fold_small(struct label_series_list *list, size_t top)
{
	qsort(list->series, list->count, sizeof(*list->series), compare_sums);
	for (size_t i = top; i < list->count; i++) {
		sum_add(&list->other, &list->series[i].sum);
		list->folded++;
	}
	list->count -= list->folded;
}

/* One series for each set: the labels first, which move while they are written. */
static struct error *fill(struct label_series_list *list, const Goheapd__LabelReport *report,
			  const struct metric_settings *settings)
{
	size_t end = list->labels.bytes.size;

	for (size_t i = 0; i < report->n_sets; i++) {
		size_t start = list->labels.bytes.size;

		write_labels(&list->labels, report->sets[i], settings);
		list->series[i] = (struct label_series){
			.labels_size = list->labels.bytes.size - start,
			.sum = label_sum_of(report->sets[i]->usage),
		};
	}
	for (size_t i = 0; i < report->n_sets; i++) {
		list->series[i].labels = (const char *)list->labels.bytes.data + end;
		end += list->series[i].labels_size;
	}
	list->count = report->n_sets;
	return text_finish(&list->labels);
}

struct error *label_series_init(struct label_series_list *list, const Goheapd__LabelReport *report,
				const struct metric_settings *settings)
{
	struct error *err;

	*list = (struct label_series_list){
		.series = calloc(report->n_sets + 1, sizeof(*list->series)),
	};
	text_init(&list->labels);
	if (!list->series)
		return &error_nomem;
	/* a place to point to also where no set has an allowed label */
	text_string(&list->labels, "\n");
	err = fill(list, report, settings);
	if (err)
		return err;
	merge_equal(list);
	fold_small(list, settings->series_max);
	return NULL;
}

void label_series_fini(struct label_series_list *list)
{
	free(list->series);
	text_fini(&list->labels);
}
