#include "daemon/pprof_size.h"

#include <string.h>

/* A tag, and a length of up to two megabytes. */
enum { TAG_BYTES = 1, SHORT_BYTES = 1, LENGTH_BYTES = 3, LINE_NUMBER_BYTES = 5 };

/* Besides the texts of frames, files and labels: what a profile says of itself. */
enum { OTHER_TEXTS = 2000, REPLACEMENT_GROWTH = 3 /* an invalid byte becomes three */ };

/* What does not change by folding, which keeps the numbers of frames and label sets. */
struct sizer {
	const struct chain_tree *tree;
	uint32_t *files; /* of each frame; ID_NONE: none */
	size_t file_count;
	size_t *file_bytes;
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
		size = text.data[i] < 0x80 ? size : size * REPLACEMENT_GROWTH;
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
	};
	id_index_init(&sizer->file_index);
	if (!first_frames || !sizer->files || !sizer->file_bytes)
		return &error_nomem;
	for (uint32_t i = 0; !err && i < tree->frame_count; i++)
		err = file_id(sizer, i, first_frames);
	return err;
}

/* ---- measuring one tree ---- */

struct marks {
	uint8_t *frames, *files, *labels; /* counted already */
	uint8_t *nodes;                   /* on the way to a sample */
	size_t *path_bytes;
};

static void marks_fini(struct marks *marks)
{
	free(marks->frames);
	free(marks->files);
	free(marks->labels);
	free(marks->nodes);
	free(marks->path_bytes);
}

static struct error *marks_init(struct marks *marks, const struct sizer *sizer,
				const struct chain_tree *tree)
{
	*marks = (struct marks){
		.frames = calloc(tree->frame_count + 1, 1),
		.files = calloc(sizer->file_count + 1, 1),
		.labels = calloc(tree->label_count + 1, 1),
		.nodes = calloc(tree->node_count + 1, 1),
		.path_bytes = calloc(tree->node_count + 1, sizeof(*marks->path_bytes)),
	};
	return marks->frames && marks->files && marks->labels && marks->nodes && marks->path_bytes
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

static size_t frame_bytes(const struct sizer *sizer, struct marks *marks,
			  const struct chain_tree *tree, uint32_t frame)
{
	uint32_t file = frame < sizer->tree->frame_count ? sizer->files[frame] : ID_NONE;
	size_t size = messages_of_frame(sizer);

	if (marks->frames[frame])
		return 0;
	marks->frames[frame] = 1;
	size += text_bytes_of(tree->frames[frame].name);
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

static size_t value_bytes(int64_t value)
{
	return number_bytes((uint64_t)value);
}

static size_t sample_bytes(const struct sizer *sizer, struct marks *marks,
			   const struct chain_tree *tree, size_t place)
{
	const struct chain_node *node = &tree->nodes[place];
	size_t size = 2 * (TAG_BYTES + LENGTH_BYTES) + marks->path_bytes[place] + TAG_BYTES +
		      SHORT_BYTES + value_bytes(node->objects) + value_bytes(node->bytes);

	if (node->unused_bytes)
		size += label_bytes(sizer) + TAG_BYTES + value_bytes(node->bytes);
	if (node->labels != ID_NONE)
		size += label_text_bytes(marks, tree, node->labels) +
			label_bytes(sizer) * label_count(&tree->labels[node->labels]);
	return size;
}

static struct error *measure(const struct sizer *sizer, const struct chain_tree *tree,
			     struct measure *ret)
{
	struct marks marks scoped(marks_fini);
	struct error *err = marks_init(&marks, sizer, tree);

	*ret = (struct measure){ 0 };
	if (err)
		return err;
	for (size_t i = tree->node_count; i-- > 0;) {
		const struct chain_node *node = &tree->nodes[i];

		marks.nodes[i] |= chain_node_counts(node);
		if (node->parent != ID_NONE)
			marks.nodes[node->parent] |= marks.nodes[i];
	}
	for (size_t i = 0; i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];

		if (!marks.nodes[i])
			continue;
		marks.path_bytes[i] = number_bytes((uint64_t)node->frame + 1);
		if (node->parent != ID_NONE)
			marks.path_bytes[i] += marks.path_bytes[node->parent];
		ret->bytes += frame_bytes(sizer, &marks, tree, node->frame);
		if (chain_node_counts(node)) {
			ret->bytes += sample_bytes(sizer, &marks, tree, i);
			ret->samples++;
		}
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

/* Folds at a weight; *ret_fits says whether that does, and *ret is the tree if so. */
static struct error *try_weight(const struct sizer *sizer, const uint64_t *weights,
				uint64_t min_weight, const struct pprof_limits *limits,
				struct chain_tree *ret, bool *ret_fits)
{
	struct measure measured;
	struct chain_tree folded;
	struct error *err = chain_tree_fold(sizer->tree, weights, min_weight, &folded);

	if (err)
		return err;
	err = measure(sizer, &folded, &measured);
	*ret_fits = !err && is_within(&measured, limits);
	if (*ret_fits) {
		chain_tree_fini(ret);
		*ret = folded;
	} else {
		chain_tree_fini(&folded);
	}
	return err;
}

/* The least weight at which the tree fits; at the greatest there is nothing but "other". */
static struct error *search(const struct sizer *sizer, const uint64_t *weights,
			    const uint64_t *sorted, const struct pprof_limits *limits,
			    struct chain_tree *ret)
{
	size_t low = 0, high = sizer->tree->node_count;
	bool fits = false;
	struct error *err = try_weight(sizer, weights, UINT64_MAX, limits, ret, &fits);

	if (!err && !fits)
		err = error_new(ERROR_LIMIT, "not even one sample fits into %zu bytes",
				limits->bytes);
	while (!err && low < high) {
		size_t middle = low + (high - low) / 2;

		err = try_weight(sizer, weights, sorted[middle], limits, ret, &fits);
		if (fits)
			high = middle;
		else
			low = middle + 1;
	}
	return err;
}

static struct error *fold_to_fit(const struct sizer *sizer, const struct pprof_limits *limits,
				 struct chain_tree *ret)
{
	size_t count = sizer->tree->node_count;
	uint64_t *sorted scoped(freep) = calloc(count + 1, sizeof(*sorted));
	uint64_t *weights scoped(freep) = NULL;
	struct error *err = chain_tree_weights(sizer->tree, &weights);

	if (!err && !sorted)
		err = &error_nomem;
	if (err)
		return err;
	memcpy(sorted, weights, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_weights);
	return search(sizer, weights, sorted, limits, ret);
}

struct error *pprof_fit(const struct chain_tree *tree, const struct pprof_limits *limits,
			struct chain_tree *ret)
{
	struct sizer sizer scoped(sizer_fini);
	struct chain_tree fitted;
	struct measure whole;
	struct error *err = sizer_init(&sizer, tree);

	chain_tree_init(&fitted);
	if (!err)
		err = measure(&sizer, tree, &whole);
	if (!err && is_within(&whole, limits)) {
		uint64_t *weights scoped(freep) = NULL;

		err = chain_tree_weights(tree, &weights);
		if (!err)
			err = chain_tree_fold(tree, weights, 0, &fitted);
	} else if (!err) {
		err = fold_to_fit(&sizer, limits, &fitted);
	}
	if (err)
		chain_tree_fini(&fitted);
	else
		*ret = fitted;
	return err;
}
