/*
 * Labels of goroutines (runtime/pprof.Do, SetGoroutineLabels): the pairs that g.labels leads to,
 * in whatever form the runtime keeps them. A set of labels never changes once a goroutine has it
 * (setting labels replaces the pointer, runtime/proflabel.go), so what is read of a snapshot is
 * one consistent set. Many goroutines share few sets: each is decoded once.
 */
#ifndef AGENT_GORUNTIME_LABEL_H
#define AGENT_GORUNTIME_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct goroutine_table;
struct layout;

enum {
	LABELS_MAX = 1024,           /* of one goroutine */
	LABEL_TEXT_MAX = 1 << 20,    /* bytes of a key or value */
	LABEL_BYTES_MAX = 128 << 20, /* of all different texts together */
	LABEL_SET_NONE = UINT32_MAX,
};

/* How reading the labels of one goroutine went. */
enum label_status {
	LABEL_DECODED,
	LABEL_NONE,           /* it has none */
	LABEL_UNSUPPORTED,    /* this runtime keeps labels in a form that is not known */
	LABEL_G_MISSING,      /* the g cannot be read */
	LABEL_OBJECT_MISSING, /* what g.labels points to cannot be read */
	LABEL_ARRAY_MISSING,  /* the list, or the buckets of the map */
	LABEL_TEXT_MISSING,   /* a key or value */
	LABEL_MALFORMED,      /* beyond the limits, or contradictory */
	LABEL_STATUS_COUNT
};

/* Bytes need not be UTF-8 and are not NUL-terminated. */
struct label_text {
	const uint8_t *bytes; /* NULL: they could not be read (or there are none) */
	uint64_t size;
};

static inline bool label_text_known(struct label_text text)
{
	return text.bytes || !text.size;
}

struct label {
	struct label_text key, value;
};

/* The labels that one value of g.labels leads to. */
struct label_set {
	enum label_status status;
	uint32_t set; /* number among the sets that were decoded, or LABEL_SET_NONE */
	const struct label
	    *labels; /* sorted by key; of a set that was not decoded: what is known */
	uint32_t count;
	bool complete;     /* there are no others than these */
	const char *error; /* why it was not decoded, or NULL */
};

struct label_table;

/* Reads the labels of every goroutine that is alive. The caller frees *ret. */
must_check struct error *label_table_read(struct memory *memory, const struct layout *layout,
					  const struct goroutine_table *goroutines,
					  struct label_table **ret);
void label_table_free(struct label_table *table);
DEFINE_FREEP(label_table, label_table_free)

/* The labels of a goroutine that is alive, by index. They belong to the table, as all here. */
const struct label_set *label_table_of(const struct label_table *table, uint32_t goroutine);

/* The different sets that were decoded, ordered by keys and values. None is empty. */
uint32_t label_table_count(const struct label_table *table);
const struct label_set *label_table_at(const struct label_table *table, uint32_t set);

/* How many goroutines have each status, those whose g is missing included. */
uint64_t label_table_status(const struct label_table *table, enum label_status status);

/* Byte by byte; a text that is not known comes first. */
int label_text_compare(struct label_text a, struct label_text b);

/* The value of a key in a set, or NULL. */
const struct label_text *label_set_find(const struct label_set *set, struct label_text key);

/* Does the set have the pair; for one that was not decoded: might it? */
bool label_set_might_have(const struct label_set *set, const struct label *label);

#endif
