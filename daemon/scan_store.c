#include "daemon/scan_store.h"

#include <stdio.h>

#include "daemon/analysis.h"

/* What is added for a selection or a grouping takes nothing from the rest. */
bool scan_labels_answer(const struct label_query *had, const struct label_query *wanted)
{
	return !wanted || (had && label_query_equal(had, wanted));
}

/* Makes the key's labels and analysis the scan's own. */
static struct error *own_question(struct scan *scan)
{
	size_t labels_size = 0, analysis_size = 0;
	struct error *err = NULL;

	if (scan->key.labels)
		err = label_query_copy(scan->key.labels, &scan->labels, &labels_size);
	if (!err && scan->key.analysis)
		err = analysis_copy(scan->key.analysis, &scan->analysis, &analysis_size);
	scan->key.labels = scan->labels;
	scan->key.analysis = scan->analysis;
	scan->bytes += labels_size + analysis_size;
	return err;
}

struct error *scan_new(const struct scan_key *key, const char *id, uint64_t started_us,
		       Goheapd__Answer *answer, struct scan **ret)
{
	struct scan *scan = malloc(sizeof(*scan));
	struct error *err;

	if (!scan) {
		goheapd__answer__free_unpacked(answer, NULL);
		return &error_nomem;
	}
	*scan = (struct scan){
		.references = 1,
		.key = *key,
		.started_us = started_us,
		.answer = answer,
		.bytes = sizeof(*scan) + goheapd__answer__get_packed_size(answer),
	};
	err = own_question(scan);
	if (!err && !id)
		err = scan_make_id(scan->id);
	else if (!err)
		snprintf(scan->id, sizeof(scan->id), "%s", id);
	if (err) {
		scan_release(scan);
		return err;
	}
	*ret = scan;
	return NULL;
}

struct scan *scan_acquire(struct scan *scan)
{
	atomic_fetch_add(&scan->references, 1);
	return scan;
}

void scan_release(struct scan *scan)
{
	if (!scan || atomic_fetch_sub(&scan->references, 1) > 1)
		return;
	goheapd__answer__free_unpacked(scan->answer, NULL);
	free(scan->labels);
	analysis_free(scan->analysis);
	free(scan);
}

/* FNV-1a */
uint64_t scan_hash(ProtobufCBinaryData bytes)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < bytes.len; i++)
		hash = (hash ^ bytes.data[i]) * 0x100000001b3;
	return hash;
}

void scan_store_init(struct scan_store *store, size_t bytes_max, uint64_t age_max_us)
{
	*store = (struct scan_store){ .bytes_max = bytes_max, .age_max_us = age_max_us };
}

/* Drops everything from *link on. */
static void drop_from(struct scan_store *store, struct scan **link)
{
	struct scan *scan = take(*link);

	while (scan) {
		struct scan *next = take(scan->next);

		store->bytes -= scan->bytes;
		scan_release(scan);
		scan = next;
	}
}

void scan_store_fini(struct scan_store *store)
{
	drop_from(store, &store->newest);
}

void scan_store_add(struct scan_store *store, struct scan *scan, uint64_t now_us)
{
	struct scan **link = &store->newest;
	size_t bytes = 0;

	if (scan->bytes > store->bytes_max)
		return;
	scan->next = store->newest;
	store->newest = scan_acquire(scan);
	store->bytes += scan->bytes;
	while (*link && bytes + (*link)->bytes <= store->bytes_max &&
	       (*link)->started_us + store->age_max_us >= now_us) {
		bytes += (*link)->bytes;
		link = &(*link)->next;
	}
	drop_from(store, link);
}

static bool answers(const struct scan *scan, const struct scan_key *key)
{
	const struct scan_key *had = &scan->key;

	return had->pid == key->pid && had->start_ticks == key->start_ticks &&
	       had->exe_hash == key->exe_hash && had->depth == key->depth &&
	       (had->parts & key->parts) == key->parts &&
	       scan_labels_answer(had->labels, key->labels) &&
	       analysis_answers(had->analysis, key->analysis) &&
	       (key->mode == GOHEAPD__MODE__MODE_AUTO ||
		key->mode == scan->answer->scan->scan->mode);
}

struct scan *scan_store_find(const struct scan_store *store, const struct scan_key *key,
			     uint64_t max_age_us, uint64_t now_us)
{
	for (struct scan *scan = store->newest; scan; scan = scan->next) {
		if (now_us - scan->started_us <= max_age_us && answers(scan, key))
			return scan_acquire(scan);
	}
	return NULL;
}
