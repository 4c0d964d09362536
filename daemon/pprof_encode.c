#include "daemon/pprof_encode.h"

#include <string.h>

#include "daemon/pprof_keys.h"
#include "daemon/pprof_size.h"
#include "proto/profile.pb-c.h"

enum {
	/* Of PPROF_MAX_BYTES, what is not samples and frames: comments, and some bytes of types. */
	ABOUT_MAX_BYTES = 512 << 10,
	COMMENTS_MAX_BYTES = 256 << 10,
	SAMPLE_TYPES = 2,
};

/* The profile as it grows; all of it is given back by writer_fini. */
struct writer {
	const struct chain_tree *tree;
	struct pprof_keys keys;
	Pprof__Profile profile;
	struct error *err; /* the first failure; afterwards nothing happens */

	/* texts, each once */
	ProtobufCBinaryData *texts;
	size_t text_count, text_capacity;
	struct id_index text_index;

	/* by node: whether a sample leads through it, and how many frames it has */
	uint8_t *used;
	uint32_t *depths;
	uint32_t *location_ids; /* by frame, 0: none yet */

	/* what the messages point to */
	Pprof__Sample *samples;
	Pprof__Label *labels;
	Pprof__Location *locations;
	Pprof__Line *lines;
	Pprof__Function *functions;
	uint64_t *ids;
	int64_t *values, *comments;
	void **pointers;
	size_t label_used, id_used, pointer_used;

	Pprof__ValueType types[SAMPLE_TYPES], period_type;
	Pprof__ValueType *type_pointers[SAMPLE_TYPES];
	Pprof__Mapping mapping;
	Pprof__Mapping *mapping_pointer;
};

static void writer_fini(struct writer *w)
{
	for (size_t i = 0; i < w->text_count; i++)
		free(w->texts[i].data);
	free(w->texts);
	id_index_fini(&w->text_index);
	pprof_keys_fini(&w->keys);
	free(w->used);
	free(w->depths);
	free(w->location_ids);
	free(w->samples);
	free(w->labels);
	free(w->locations);
	free(w->lines);
	free(w->functions);
	free(w->ids);
	free(w->values);
	free(w->comments);
	free(w->pointers);
	error_free(w->err);
}

static void fail(struct writer *w, struct error *err)
{
	if (w->err)
		error_free(err);
	else
		w->err = err;
}

/* ---- texts ---- */

struct wanted_text {
	const struct writer *writer;
	ProtobufCBinaryData text;
};

static bool is_same_text(const void *wanted, uint32_t id)
{
	const struct wanted_text *w = wanted;
	ProtobufCBinaryData have = w->writer->texts[id];

	return have.len == w->text.len && memcmp(have.data, w->text.data, have.len) == 0;
}

/* Takes text over, which is of malloc. */
static struct error *add_text(struct writer *w, ProtobufCBinaryData text, uint64_t hash)
{
	struct error *err;

	if (w->text_count == w->text_capacity) {
		size_t capacity = w->text_capacity ? w->text_capacity * 2 : 256;
		ProtobufCBinaryData *larger = realloc(w->texts, capacity * sizeof(*larger));

		if (!larger) {
			free(text.data);
			return &error_nomem;
		}
		w->texts = larger;
		w->text_capacity = capacity;
	}
	w->texts[w->text_count] = text;
	err = id_index_add(&w->text_index, hash, (uint32_t)w->text_count);
	w->text_count++;
	return err;
}

/* Cut so that no character is split. */
static size_t cut(const char *text, size_t size)
{
	if (size <= PPROF_TEXT_MAX_BYTES)
		return size;
	size = PPROF_TEXT_MAX_BYTES;
	while (size && ((uint8_t)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

/*
 * UTF-8 that a terminal shows and does nothing else with: whoever reads a profile prints its texts
 * as they are. The caller frees *ret.
 */
static struct error *escape(ProtobufCBinaryData bytes, ProtobufCBinaryData *ret)
{
	struct text text;
	struct error *err;

	text_init(&text);
	text_escaped(&text, bytes, SIZE_MAX);
	text_append(&text, "", 1); /* of nothing there would be no memory */
	err = text_finish(&text);
	if (err) {
		text_fini(&text);
		return err;
	}
	ret->len = cut((const char *)text.bytes.data, text.bytes.size - 1);
	ret->data = text.bytes.data;
	return NULL;
}

/* The place of a text, escaped; the empty text is at 0. */
static int64_t text_id(struct writer *w, ProtobufCBinaryData bytes)
{
	ProtobufCBinaryData text = { 0 };
	struct wanted_text wanted = { .writer = w };
	uint64_t hash;
	uint32_t id;

	if (w->err)
		return 0;
	fail(w, escape(bytes, &text));
	if (w->err)
		return 0;
	wanted.text = text;
	hash = id_hash_bytes(w->text_index.seed, text.data, text.len);
	id = id_index_find(&w->text_index, hash, is_same_text, &wanted);
	if (id != ID_NONE) {
		free(text.data);
		return id;
	}
	id = (uint32_t)w->text_count;
	fail(w, add_text(w, text, hash));
	return id;
}

static int64_t string_id(struct writer *w, const char *string)
{
	return text_id(w, (ProtobufCBinaryData){ .len = strlen(string),
						 .data = (uint8_t *)(uintptr_t)string });
}

/* ---- what the profile is ---- */

static void set_type(struct writer *w, Pprof__ValueType *type, const char *name, const char *unit)
{
	pprof__value_type__init(type);
	type->type = string_id(w, name);
	type->unit = string_id(w, unit);
}

static void write_types(struct writer *w, bool retained)
{
	set_type(w, &w->types[0], retained ? "retained_objects" : "inuse_objects", "count");
	set_type(w, &w->types[1], retained ? "retained_space" : "inuse_space", "bytes");
	set_type(w, &w->period_type, "space", "bytes");
	for (size_t i = 0; i < SAMPLE_TYPES; i++)
		w->type_pointers[i] = &w->types[i];
	w->profile.sample_type = w->type_pointers;
	w->profile.n_sample_type = SAMPLE_TYPES;
	w->profile.period_type = &w->period_type;
	w->profile.period = 1;
	w->profile.default_sample_type = w->types[1].type;
}

/* Frames have no addresses, so that the mapping needs none. */
static void write_mapping(struct writer *w, const struct pprof_about *about)
{
	pprof__mapping__init(&w->mapping);
	w->mapping.id = 1;
	w->mapping.filename = text_id(w, about->exe);
	w->mapping.build_id = text_id(w, about->build_id);
	w->mapping.has_functions = w->mapping.has_filenames = w->mapping.has_line_numbers =
	    w->mapping.has_inline_frames = true;
	w->mapping_pointer = &w->mapping;
	w->profile.mapping = &w->mapping_pointer;
	w->profile.n_mapping = 1;
}

/* Each line is a comment; those that do not fit are left out. */
static void write_comments(struct writer *w, ProtobufCBinaryData lines)
{
	size_t count = 0, left = COMMENTS_MAX_BYTES;
	const uint8_t *pos = lines.data, *end = lines.len ? pos + lines.len : pos;

	for (size_t i = 0; i < lines.len; i++)
		count += lines.data[i] == '\n';
	w->comments = calloc(count + 2, sizeof(*w->comments));
	if (!w->comments) {
		fail(w, &error_nomem);
		return;
	}
	w->profile.comment = w->comments;
	while (pos < end) {
		const uint8_t *stop = memchr(pos, '\n', (size_t)(end - pos));
		ProtobufCBinaryData line = { .data = (uint8_t *)(uintptr_t)pos,
					     .len = (size_t)((stop ? stop : end) - pos) };

		if (line.len && line.len < left) {
			w->comments[w->profile.n_comment++] = text_id(w, line);
			left -= line.len;
		}
		pos = stop ? stop + 1 : end;
	}
}

static void write_about(struct writer *w, const struct pprof_about *about)
{
	struct text comments;

	text_init(&comments);
	text_append(&comments, about->comments.data, about->comments.len);
	pprof_keys_comment(&w->keys, &comments);
	fail(w, text_finish(&comments));
	write_types(w, about->retained);
	write_mapping(w, about);
	write_comments(
	    w, (ProtobufCBinaryData){ .len = comments.bytes.size, .data = comments.bytes.data });
	text_fini(&comments);
	w->profile.time_nanos = (int64_t)about->time_ns;
	w->profile.duration_nanos = (int64_t)about->duration_ns;
}

/* ---- frames ---- */

/*
 * A function without a system name is one whose name is as it should be: from others go tool pprof
 * takes what stands in parentheses, if it finds brackets in them that could be of C++.
 */
static void write_function(struct writer *w, size_t place, const struct chain_frame *frame)
{
	Pprof__Function *function = &w->functions[place];

	pprof__function__init(function);
	function->id = place + 1;
	function->name = text_id(w, frame->name);
	function->filename = text_id(w, frame->file);
}

static void write_location(struct writer *w, size_t place, const struct chain_frame *frame)
{
	Pprof__Location *location = &w->locations[place];
	Pprof__Line *line = &w->lines[place];

	pprof__line__init(line);
	line->function_id = place + 1;
	line->line = frame->line;
	pprof__location__init(location);
	location->id = place + 1;
	location->mapping_id = 1;
	location->line = (Pprof__Line **)&w->pointers[w->pointer_used];
	location->n_line = 1;
	w->pointers[w->pointer_used++] = line;
}

/* Frames on the way to samples, in the order in which they come first. */
static void write_frames(struct writer *w)
{
	size_t count = 0;

	for (size_t i = 0; i < w->tree->node_count && !w->err; i++) {
		uint32_t frame = w->tree->nodes[i].frame;

		if (!w->used[i] || w->location_ids[frame])
			continue;
		write_function(w, count, &w->tree->frames[frame]);
		write_location(w, count, &w->tree->frames[frame]);
		w->location_ids[frame] = (uint32_t)++count;
	}
	w->profile.n_location = w->profile.n_function = count;
	w->profile.location = (Pprof__Location **)&w->pointers[w->pointer_used];
	for (size_t i = 0; i < count; i++)
		w->pointers[w->pointer_used++] = &w->locations[i];
	w->profile.function = (Pprof__Function **)&w->pointers[w->pointer_used];
	for (size_t i = 0; i < count; i++)
		w->pointers[w->pointer_used++] = &w->functions[i];
}

/* ---- samples ---- */

static size_t labels_of(const struct writer *w, const struct chain_node *node)
{
	size_t count = node->labels == ID_NONE ? 0 : w->tree->labels[node->labels].count;

	return count < PPROF_LABELS_MAX ? count : PPROF_LABELS_MAX;
}

static Pprof__Label *add_label(struct writer *w, Pprof__Sample *sample, const char *key)
{
	Pprof__Label *label = &w->labels[w->label_used++];

	pprof__label__init(label);
	label->key = string_id(w, key);
	w->pointers[w->pointer_used++] = label;
	sample->n_label++;
	return label;
}

static void write_labels(struct writer *w, const struct chain_node *node, Pprof__Sample *sample)
{
	sample->label = (Pprof__Label **)&w->pointers[w->pointer_used];
	for (size_t i = 0; i < labels_of(w, node); i++) {
		const Goheapd__LabelPair *pair = w->tree->labels[node->labels].pairs[i];

		add_label(w, sample, pprof_key_name(&w->keys, pair->key))->str =
		    text_id(w, pair->value);
	}
	if (node->unused_bytes) {
		Pprof__Label *label = add_label(w, sample, "used_bytes");

		label->num = node->bytes - node->unused_bytes;
		label->num_unit = string_id(w, "bytes");
	}
}

static void write_sample(struct writer *w, size_t place, Pprof__Sample *sample)
{
	const struct chain_node *node = &w->tree->nodes[place];
	size_t number = (size_t)(sample - w->samples);

	pprof__sample__init(sample);
	sample->value = &w->values[number * SAMPLE_TYPES];
	sample->n_value = SAMPLE_TYPES;
	sample->value[0] = node->objects;
	sample->value[1] = node->bytes;
	sample->location_id = &w->ids[w->id_used];
	sample->n_location_id = w->depths[place];
	for (const struct chain_node *step = node;; step = &w->tree->nodes[step->parent]) {
		w->ids[w->id_used++] = w->location_ids[step->frame];
		if (step->parent == ID_NONE)
			break;
	}
	write_labels(w, node, sample);
}

static void write_samples(struct writer *w)
{
	size_t count = 0;

	for (size_t i = 0; i < w->tree->node_count && !w->err; i++) {
		if (chain_node_counts(&w->tree->nodes[i]))
			write_sample(w, i, &w->samples[count++]);
	}
	w->profile.n_sample = count;
	w->profile.sample = (Pprof__Sample **)&w->pointers[w->pointer_used];
	for (size_t i = 0; i < count; i++)
		w->pointers[w->pointer_used++] = &w->samples[i];
}

/* ---- room for all of it ---- */

struct counts {
	size_t samples, labels, ids;
};

static void mark_used(struct writer *w, struct counts *counts)
{
	const struct chain_node *nodes = w->tree->nodes;

	*counts = (struct counts){ 0 };
	for (size_t i = 0; i < w->tree->node_count; i++) {
		w->depths[i] = nodes[i].parent == ID_NONE ? 1 : w->depths[nodes[i].parent] + 1;
		if (!chain_node_counts(&nodes[i]))
			continue;
		counts->samples++;
		counts->labels += labels_of(w, &nodes[i]) + 1;
		counts->ids += w->depths[i];
	}
	for (size_t i = w->tree->node_count; i-- > 0;) {
		w->used[i] |= chain_node_counts(&nodes[i]);
		if (nodes[i].parent != ID_NONE)
			w->used[nodes[i].parent] |= w->used[i];
	}
}

/* Zeroed, and never NULL for lack of anything. */
static void *room(struct writer *w, size_t count, size_t size)
{
	void *items = w->err ? NULL : calloc(count + 1, size);

	if (!items)
		fail(w, &error_nomem);
	return items;
}

static void make_room(struct writer *w)
{
	size_t frames = w->tree->frame_count, nodes = w->tree->node_count;
	struct counts counts = { 0 };

	w->used = room(w, nodes, sizeof(*w->used));
	w->depths = room(w, nodes, sizeof(*w->depths));
	w->location_ids = room(w, frames, sizeof(*w->location_ids));
	if (!w->err)
		mark_used(w, &counts);
	w->samples = room(w, counts.samples, sizeof(*w->samples));
	w->values = room(w, counts.samples * SAMPLE_TYPES, sizeof(*w->values));
	w->labels = room(w, counts.labels, sizeof(*w->labels));
	w->ids = room(w, counts.ids, sizeof(*w->ids));
	w->locations = room(w, frames, sizeof(*w->locations));
	w->lines = room(w, frames, sizeof(*w->lines));
	w->functions = room(w, frames, sizeof(*w->functions));
	w->pointers = room(w, counts.samples + counts.labels + 3 * frames, sizeof(*w->pointers));
}

static struct error *write_profile(struct writer *w, const struct pprof_about *about)
{
	struct error *err = pprof_keys_init(&w->keys, w->tree);

	if (err)
		return err;
	pprof__profile__init(&w->profile);
	id_index_init(&w->text_index);
	make_room(w);
	string_id(w, ""); /* the first */
	write_about(w, about);
	write_frames(w);
	write_samples(w);
	w->profile.string_table = w->texts;
	w->profile.n_string_table = w->text_count;
	return take(w->err);
}

static struct error *encode_all(const struct chain_tree *tree, const struct pprof_about *about,
				struct bytes *ret)
{
	struct writer writer scoped(writer_fini) = { .tree = tree };
	struct error *err = write_profile(&writer, about);
	uint8_t *to;

	if (!err)
		err = bytes_extend(ret, pprof__profile__get_packed_size(&writer.profile), &to);
	if (!err)
		pprof__profile__pack(&writer.profile, to);
	return err;
}

struct error *pprof_encode(const struct chain_tree *tree, const struct pprof_about *about,
			   size_t max_samples, struct bytes *ret)
{
	const struct pprof_limits limits = {
		.samples = max_samples,
		.bytes = PPROF_MAX_BYTES - ABOUT_MAX_BYTES,
	};
	struct chain_tree fitted;
	struct error *err = pprof_fit(tree, &limits, &fitted);

	if (err)
		return err;
	err = encode_all(&fitted, about, ret);
	chain_tree_fini(&fitted);
	return err;
}
