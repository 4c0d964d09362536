#include "tests/support/canned_profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GIB          ((uint64_t)1 << 30)
#define MIB_BYTES    ((uint64_t)1 << 20)

enum { NO_PARENT = -1, NO_LABELS = -1, MODULES = 2 };

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

/* One chain, its frame and what hangs on it. What is left of the live heap is the last one's. */
static const struct chain {
	int parent;
	const char *frame, *file;
	unsigned line;
	uint64_t objects, bytes, used;
	int labels;
} chains[] = {
	{ NO_PARENT, "main.sessions", "/src/main.go", 12, 1, 48, 0, NO_LABELS },
	{ 0, "$mapval. (*main.Session)", "/src/session.go", 8, 2000000, 2 * GIB, 0, NO_LABELS },
	{ 1, "cart. ([]main.Item)", NULL, 0, 100, GIB / 4, GIB / 16, NO_LABELS },
	{ 2, "[10+]. (main.Item)", NULL, 0, 1000, 64000, 0, NO_LABELS },
	{ NO_PARENT, "main.cache", "/src/cache.go", 3, 0, 0, 0, NO_LABELS },
	{ 4, "(*lru.Cache)", NULL, 0, 4000, 700 * MIB_BYTES, 0, NO_LABELS },
	{ NO_PARENT, "main.fetch.buf", "/src/fetch.go", 31, 1, 65536, 0, 0 },
	{ 6, "$sub_objects$", NULL, 0, 7, 7000, 0, 0 },
	{ NO_PARENT, "main.fetch.buf", "/src/fetch.go", 31, 1, 32768, 0, 1 },
	/* as a hostile target could have it */
	{ NO_PARENT, "main.\x1b[31m\xff\"\n", NULL, 0, 1, 16, 0, NO_LABELS },
	{ NO_PARENT, "finalizer of (*os.File)", NULL, 0, 12, 768, 0, NO_LABELS },
	{ NO_PARENT, "main.table", "/src/main.go", 14, 0, 0, 0, NO_LABELS },
};
enum { CHAINS = COUNT(chains), SESSIONS = 1, CACHE = 4 };

static const char *const label_sets[][2][2] = {
	{ { "job.id", "42" }, { "tenant", "acme" } },
	{ { "job.id", "43" }, { "tenant", "\xff" } },
};
enum { LABEL_SETS = COUNT(label_sets) };

static Goheapd__ReferenceFrame frames[CHAINS + MODULES], *frame_pointers[CHAINS + MODULES];
static Goheapd__ReferenceNode nodes[CHAINS + MODULES], *node_pointers[CHAINS + MODULES];

static void set_frame(unsigned i, const char *name, const char *file, unsigned line)
{
	frames[i] = (Goheapd__ReferenceFrame)GOHEAPD__REFERENCE_FRAME__INIT;
	frames[i].name = bytes(name);
	frames[i].has_file = frames[i].has_line = file != NULL;
	if (file)
		frames[i].file = bytes(file);
	frames[i].line = line;
	frame_pointers[i] = &frames[i];
}

static Goheapd__ReferenceNode *set_node(unsigned i)
{
	nodes[i] = (Goheapd__ReferenceNode)GOHEAPD__REFERENCE_NODE__INIT;
	nodes[i].frame = i;
	node_pointers[i] = &nodes[i];
	return &nodes[i];
}

/* Nodes of chains come behind those of the modules, if there are any. */
static void add_chain(Goheapd__ReferenceProfile *profile, unsigned i, bool labels, unsigned growth)
{
	const struct chain *chain = &chains[i];
	unsigned first = (unsigned)profile->n_nodes - i;
	Goheapd__ReferenceNode *node = set_node(first + i);

	set_frame(first + i, chain->frame, chain->file, chain->line);
	node->has_parent = chain->parent != NO_PARENT || first;
	node->parent =
	    chain->parent != NO_PARENT ? first + (unsigned)chain->parent : (i == CACHE ? 1 : 0);
	node->objects = chain->objects;
	node->bytes = chain->bytes;
	if (i == SESSIONS)
		node->objects += growth, node->bytes += (uint64_t)growth * 96;
	node->has_used_bytes = chain->used != 0;
	node->used_bytes = chain->used;
	node->has_label_set = labels && !node->has_parent && chain->labels != NO_LABELS;
	node->label_set = (uint32_t)chain->labels;
	profile->n_nodes++;
	profile->objects += node->objects;
	profile->bytes += node->bytes;
}

static void add_labels(Goheapd__ReferenceProfile *profile)
{
	static Goheapd__ReferenceLabels sets[LABEL_SETS], *pointers[LABEL_SETS];
	static Goheapd__LabelPair pairs[LABEL_SETS][2], *pair_pointers[LABEL_SETS][2];

	for (unsigned i = 0; i < LABEL_SETS; i++) {
		sets[i] = (Goheapd__ReferenceLabels)GOHEAPD__REFERENCE_LABELS__INIT;
		sets[i].labels = pair_pointers[i];
		sets[i].n_labels = 2;
		pointers[i] = &sets[i];
		for (unsigned j = 0; j < 2; j++) {
			pairs[i][j] = (Goheapd__LabelPair)GOHEAPD__LABEL_PAIR__INIT;
			pairs[i][j].key = bytes(label_sets[i][j][0]);
			pairs[i][j].value = bytes(label_sets[i][j][1]);
			pair_pointers[i][j] = &pairs[i][j];
		}
	}
	profile->n_label_sets = LABEL_SETS;
	profile->label_sets = pointers;
}

static void add_modules(Goheapd__ReferenceProfile *profile)
{
	static const char *const names[MODULES] = { "shop/checkout", "example.com/lru" };

	for (unsigned i = 0; i < MODULES; i++) {
		set_frame(i, names[i], NULL, 0);
		set_node(i);
	}
	profile->n_nodes = MODULES;
}

Goheapd__ReferenceProfile *canned_profile(const Goheapd__HeapTotals *heap,
					  const Goheapd__ProfileQuery *query, unsigned growth)
{
	static Goheapd__ReferenceProfile profile;
	Goheapd__ReferenceNode *last;

	profile = (Goheapd__ReferenceProfile)GOHEAPD__REFERENCE_PROFILE__INIT;
	profile.frames = frame_pointers;
	profile.nodes = node_pointers;
	if (query->by_module)
		add_modules(&profile);
	for (unsigned i = 0; i < CHAINS; i++)
		add_chain(&profile, i, query->labels, growth);
	profile.n_frames = profile.n_nodes;
	if (query->labels)
		add_labels(&profile);
	last = node_pointers[profile.n_nodes - 1];
	last->objects = heap->live_objects - profile.objects;
	last->bytes = heap->live_bytes - profile.bytes;
	profile.objects = heap->live_objects;
	profile.bytes = heap->live_bytes;
	return &profile;
}

/* ---- types ---- */

Goheapd__Histogram *canned_types(const Goheapd__HeapTotals *heap, unsigned growth)
{
	static const struct {
		const char *name;
		uint64_t objects, bytes;
	} rows[] = {
		{ "main.Session", 2000000, 2 * GIB },
		{ "lru.Cache", 4000, 700 * MIB_BYTES },
		{ "[]main.Item", 100, GIB / 4 },
		{ "main.\xff", 1, 16 },
	};
	static Goheapd__TypeRow types[COUNT(rows)], *pointers[COUNT(rows)];
	static Goheapd__Histogram histogram;

	histogram = (Goheapd__Histogram)GOHEAPD__HISTOGRAM__INIT;
	histogram.types = pointers;
	histogram.n_types = COUNT(rows);
	histogram.unknown_objects = heap->live_objects;
	histogram.unknown_bytes = heap->live_bytes;
	for (unsigned i = 0; i < COUNT(rows); i++) {
		types[i] = (Goheapd__TypeRow)GOHEAPD__TYPE_ROW__INIT;
		types[i].type = bytes(rows[i].name);
		types[i].objects = rows[i].objects + (i == 0 ? growth : 0);
		types[i].bytes = rows[i].bytes + (i == 0 ? (uint64_t)growth * 96 : 0);
		histogram.unknown_objects -= types[i].objects;
		histogram.unknown_bytes -= types[i].bytes;
		histogram.typed_bytes += types[i].bytes;
		pointers[i] = &types[i];
	}
	return &histogram;
}

/* ---- far too many ---- */

static void *make(size_t count, size_t size)
{
	void *items = calloc(count, size);

	if (!items)
		abort();
	return items;
}

static ProtobufCBinaryData make_name(unsigned root, unsigned step)
{
	char *name;

	if (asprintf(&name, "example.com/some/module/package.variable_%u_%u. (map[string]*T[%u])",
		     root, step, root) < 0)
		abort();
	return bytes(name);
}

Goheapd__ReferenceProfile *canned_huge_profile(unsigned roots, unsigned depth)
{
	size_t count = (size_t)roots * depth;
	Goheapd__ReferenceProfile *profile = make(1, sizeof(*profile));

	goheapd__reference_profile__init(profile);
	profile->frames = make(count, sizeof(*profile->frames));
	profile->nodes = make(count, sizeof(*profile->nodes));
	profile->n_frames = profile->n_nodes = count;
	for (size_t i = 0; i < count; i++) {
		Goheapd__ReferenceFrame *frame = profile->frames[i] = make(1, sizeof(*frame));
		Goheapd__ReferenceNode *node = profile->nodes[i] = make(1, sizeof(*node));
		unsigned step = (unsigned)(i % depth);

		goheapd__reference_frame__init(frame);
		frame->name = make_name((unsigned)(i / depth), step);
		goheapd__reference_node__init(node);
		node->frame = (uint32_t)i;
		node->has_parent = step != 0;
		node->parent = (uint32_t)(i - 1);
		node->objects = 1;
		node->bytes = 16 + (i * 7919) % 4096;
		profile->objects += node->objects;
		profile->bytes += node->bytes;
	}
	return profile;
}
