#include "daemon/pprof_size.h"

#include <string.h>

/* A tag, and a length of up to two megabytes. */
enum { TAG_BYTES = 1, SHORT_BYTES = 1, LENGTH_BYTES = 3, LINE_NUMBER_BYTES = 5, NUMBER_BYTES = 10 };

/* Besides the texts of frames, files and labels: what a profile says of itself. */
enum {
	OTHER_TEXTS = 2000,
	OTHER_BYTES = 16 /* of the name "other" */,
	ESCAPE_GROWTH = 4 /* a control byte becomes four: \x1b; an invalid one three */
};

/* What does not change by folding, which keeps the numbers of frames and label sets. */
struct sizer {
	const struct chain_tree *tree;
	uint32_t *files; /* of each frame; ID_NONE: none */
	size_t file_count;
	size_t *file_bytes;
	size_t *name_bytes; /* of each frame */
	struct id_index file_index;
	size_t id_bytes, text_id_bytes; /* that a number of a frame or a text takes at most */
};

struct measure {
	size_t samples, bytes;
};

static void sizer_fini(struct sizer *sizer)
{
	free(sizer->files);
	free(sizer->file_bytes);
	free(sizer->name_bytes);
	id_index_fini(&sizer->file_index);
}

static size_t number_bytes(uint64_t number)
{
	size_t size = 1;

	while (number >>= 7)
		size++;
	return size;
}

static size_t text_bytes_of(ProtobufCBinaryData text)
{
	size_t size = text.len;

	for (size_t i = 0; i < text.len && size == text.len; i++)
		size = text.data[i] >= 0x20 && text.data[i] < 0x7f ? size : size * ESCAPE_GROWTH;
	return TAG_BYTES + LENGTH_BYTES +
	       (size < PPROF_TEXT_MAX_BYTES ? size : PPROF_TEXT_MAX_BYTES);
}

struct wanted_file {
	const struct sizer *sizer;
	ProtobufCBinaryData file;
	const uint32_t *first_frames; /* that has the file, by file */
};

static bool is_same_file(const void *wanted, uint32_t id)
{
	const struct wanted_file *w = wanted;
	ProtobufCBinaryData have = w->sizer->tree->frames[w->first_frames[id]].file;

	return have.len == w->file.len && memcmp(have.data, w->file.data, have.len) == 0;
}

static struct error *file_id(struct sizer *sizer, uint32_t frame, uint32_t *first_frames)
{
	ProtobufCBinaryData file = sizer->tree->frames[frame].file;
	const struct wanted_file wanted = { sizer, file, first_frames };
	uint64_t hash = id_hash_bytes(sizer->file_index.seed, file.data, file.len);
	uint32_t id;

	sizer->files[frame] = ID_NONE;
	if (file.len == 0)
		return NULL;
	id = id_index_find(&sizer->file_index, hash, is_same_file, &wanted);
	if (id == ID_NONE) {
		id = (uint32_t)sizer->file_count++;
		first_frames[id] = frame;
		sizer->file_bytes[id] = text_bytes_of(file);
		sizer->files[frame] = id;
		return id_index_add(&sizer->file_index, hash, id);
	}
	sizer->files[frame] = id;
	return NULL;
}

static size_t most_texts(const struct chain_tree *tree)
{
	size_t count = OTHER_TEXTS + 2 * tree->frame_count;

	for (size_t i = 0; i < tree->label_count; i++)
		count += 2 * tree->labels[i].count;
	return count;
}

static struct error *sizer_init(struct sizer *sizer, const struct chain_tree *tree)
{
	size_t count = tree->frame_count + 1;
	uint32_t *first_frames scoped(freep) = calloc(count, sizeof(*first_frames));
	struct error *err = NULL;

	*sizer = (struct sizer){
		.tree = tree,
		.id_bytes = number_bytes(tree->frame_count + 2), /* with "other" */
		.text_id_bytes = number_bytes(most_texts(tree)),
		.files = calloc(count, sizeof(*sizer->files)),
		.file_bytes = calloc(count, sizeof(*sizer->file_bytes)),
		.name_bytes = calloc(count, sizeof(*sizer->name_bytes)),
	};
	id_index_init(&sizer->file_index);
	if (!first_frames || !sizer->files || !sizer->file_bytes || !sizer->name_bytes)
		return &error_nomem;
	for (uint32_t i = 0; !err && i < tree->frame_count; i++) {
		sizer->name_bytes[i] = text_bytes_of(tree->frames[i].name);
		err = file_id(sizer, i, first_frames);
	}
	return err;
}

/* ---- measuring ---- */

struct marks {
	uint8_t *frames, *files, *labels; /* counted already */
	uint8_t *others;                  /* by node: it has an "other"; the last is of the roots */
	size_t *path_bytes;
};

static void marks_fini(struct marks *marks)
{
	free(marks->frames);
	free(marks->files);
	free(marks->labels);
	free(marks->others);
	free(marks->path_bytes);
}

static struct error *marks_init(struct marks *marks, const struct sizer *sizer)
{
	const struct chain_tree *tree = sizer->tree;

	*marks = (struct marks){
		.frames = calloc(tree->frame_count + 1, 1),
		.files = calloc(sizer->file_count + 1, 1),
		.labels = calloc(tree->label_count + 1, 1),
		.others = calloc(tree->node_count + 1, 1),
		.path_bytes = calloc(tree->node_count + 1, sizeof(*marks->path_bytes)),
	};
	return marks->frames && marks->files && marks->labels && marks->others && marks->path_bytes
		   ? NULL
		   : &error_nomem;
}

/* A function with its id, name and file, and a location with its id, mapping and line. */
static size_t messages_of_frame(const struct sizer *sizer)
{
	size_t id = TAG_BYTES + sizer->id_bytes, text_id = TAG_BYTES + sizer->text_id_bytes;
	size_t line = TAG_BYTES + SHORT_BYTES + id + TAG_BYTES + LINE_NUMBER_BYTES;

	return TAG_BYTES + SHORT_BYTES + id + 2 * text_id + /* the function */
	       TAG_BYTES + SHORT_BYTES + id + 2 * TAG_BYTES + line;
}

static size_t frame_bytes(const struct sizer *sizer, struct marks *marks, uint32_t frame)
{
	uint32_t file = sizer->files[frame];
	size_t size;

	if (marks->frames[frame])
		return 0;
	marks->frames[frame] = 1;
	size = messages_of_frame(sizer) + sizer->name_bytes[frame];
	if (file != ID_NONE && !marks->files[file]) {
		marks->files[file] = 1;
		size += sizer->file_bytes[file];
	}
	return size;
}

static size_t label_count(const struct chain_labels *labels)
{
	return labels->count < PPROF_LABELS_MAX ? labels->count : PPROF_LABELS_MAX;
}

static size_t label_text_bytes(struct marks *marks, const struct chain_tree *tree, uint32_t labels)
{
	const struct chain_labels *set = &tree->labels[labels];
	size_t size = 0;

	if (marks->labels[labels])
		return 0;
	marks->labels[labels] = 1;
	for (size_t i = 0; i < label_count(set); i++)
		size += text_bytes_of(set->pairs[i]->key) + text_bytes_of(set->pairs[i]->value);
	return size;
}

/* A label with its key and value. */
static size_t label_bytes(const struct sizer *sizer)
{
	return TAG_BYTES + SHORT_BYTES + 2 * (TAG_BYTES + sizer->text_id_bytes);
}

/* A sample with its path, and values of these sizes, its labels, the one of used bytes not among
 * them. */
static size_t sample_bytes(const struct sizer *sizer, struct marks *marks, uint32_t labels,
			   size_t path_bytes, size_t values)
{
	size_t size =
	    2 * (TAG_BYTES + LENGTH_BYTES) + path_bytes + TAG_BYTES + SHORT_BYTES + values;

	if (labels != ID_NONE)
		size += label_text_bytes(marks, sizer->tree, labels) +
			label_bytes(sizer) * label_count(&sizer->tree->labels[labels]);
	return size;
}

/* With the label of used bytes, if there is one. */
static size_t value_bytes(const struct sizer *sizer, const struct chain_node *node)
{
	size_t used = node->unused_bytes ? label_bytes(sizer) + TAG_BYTES + NUMBER_BYTES : 0;

	return used + number_bytes((uint64_t)node->objects) + number_bytes((uint64_t)node->bytes);
}

/* What is folded makes one sample beneath what it hangs on. */
static void count_folded(const struct sizer *sizer, struct marks *marks, uint32_t parent,
			 struct measure *ret)
{
	const struct chain_tree *tree = sizer->tree;
	bool is_root = parent == ID_NONE;
	uint8_t *other = &marks->others[is_root ? tree->node_count : parent];

	if (*other)
		return;
	*other = 1;
	ret->samples++;
	ret->bytes +=
	    sample_bytes(sizer, marks, is_root ? ID_NONE : tree->nodes[parent].labels,
			 (is_root ? 0 : marks->path_bytes[parent]) + sizer->id_bytes,
			 2 * NUMBER_BYTES + label_bytes(sizer) + TAG_BYTES + NUMBER_BYTES);
}

static void count_kept(const struct sizer *sizer, struct marks *marks, size_t place,
		       struct measure *ret)
{
	const struct chain_node *node = &sizer->tree->nodes[place];

	marks->path_bytes[place] = number_bytes((uint64_t)node->frame + 1);
	if (node->parent != ID_NONE)
		marks->path_bytes[place] += marks->path_bytes[node->parent];
	ret->bytes += frame_bytes(sizer, marks, node->frame);
	if (!chain_node_counts(node))
		return;
	ret->samples++;
	ret->bytes += sample_bytes(sizer, marks, node->labels, marks->path_bytes[place],
				   value_bytes(sizer, node));
}

/* The tree with everything that weighs less than min_weight folded, as chain_tree_fold does it. */
static struct error *measure(const struct sizer *sizer, const uint64_t *weights,
			     uint64_t min_weight, struct measure *ret)
{
	struct marks marks scoped(marks_fini);
	struct error *err = marks_init(&marks, sizer);

	*ret = (struct measure){ .bytes = messages_of_frame(sizer) + OTHER_BYTES };
	if (err)
		return err;
	for (size_t i = 0; i < sizer->tree->node_count; i++) {
		uint32_t parent = sizer->tree->nodes[i].parent;

		if (weights[i] == 0)
			continue; /* there is nothing in it */
		if (weights[i] >= min_weight)
			count_kept(sizer, &marks, i, ret);
		else if (parent == ID_NONE || weights[parent] >= min_weight)
			count_folded(sizer, &marks, parent, ret);
	}
	return NULL;
}

static bool is_within(const struct measure *measure, const struct pprof_limits *limits)
{
	return measure->samples <= limits->samples && measure->bytes <= limits->bytes;
}

/* ---- the search ---- */

static int compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The least weight at which the tree fits; at the greatest there is nothing but "other". */
static struct error *search(const struct sizer *sizer, const uint64_t *weights,
			    const uint64_t *sorted, const struct pprof_limits *limits,
			    uint64_t *ret)
{
	size_t low = 0, high = sizer->tree->node_count;
	struct measure found;
	struct error *err = measure(sizer, weights, UINT64_MAX, &found);

	if (!err && !is_within(&found, limits))
		err = error_new(ERROR_LIMIT, "not even one sample fits into %zu bytes",
				limits->bytes);
	*ret = UINT64_MAX;
	while (!err && low < high) {
		size_t middle = low + (high - low) / 2;

		err = measure(sizer, weights, sorted[middle], &found);
		if (!err && is_within(&found, limits)) {
			*ret = sorted[middle];
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return err;
}

static struct error *find_weight(const struct sizer *sizer, const uint64_t *weights,
				 const struct pprof_limits *limits, uint64_t *ret)
{
	size_t count = sizer->tree->node_count;
	uint64_t *sorted scoped(freep) = NULL;
	struct measure whole;
	struct error *err = measure(sizer, weights, 0, &whole);

	*ret = 0;
	if (err || is_within(&whole, limits))
		return err;
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!sorted)
		return &error_nomem;
	memcpy(sorted, weights, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_weights);
	return search(sizer, weights, sorted, limits, ret);
}

struct error *pprof_fit(const struct chain_tree *tree, const struct pprof_limits *limits,
			struct chain_tree *ret)
{
	struct sizer sizer scoped(sizer_fini);
	uint64_t *weights scoped(freep) = NULL;
	uint64_t min_weight = 0;
	struct error *err = sizer_init(&sizer, tree);

	if (!err)
		err = chain_tree_weights(tree, &weights);
	if (!err)
		err = find_weight(&sizer, weights, limits, &min_weight);
	return err ? err : chain_tree_fold(tree, weights, min_weight, ret);
}
