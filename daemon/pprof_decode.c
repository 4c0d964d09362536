#include "daemon/pprof_decode.h"

#include "daemon/gzip.h"
#include "daemon/pprof_encode.h"
#include "proto/profile.pb-c.h"

enum { VALUES = 2, DEPTH_MAX = 1100 };

void pprof_decoded_fini(struct pprof_decoded *decoded)
{
	chain_tree_fini(&decoded->tree);
	if (decoded->message)
		pprof__profile__free_unpacked(decoded->message, NULL);
	bytes_fini(&decoded->plain);
	decoded->message = NULL;
}

static struct error *malformed(const char *what)
{
	return error_new(ERROR_FORMAT, "the profile is none of goheapd's: %s", what);
}

static ProtobufCBinaryData text_at(const Pprof__Profile *profile, int64_t place)
{
	if (place < 0 || (uint64_t)place >= profile->n_string_table)
		return (ProtobufCBinaryData){ 0 };
	return profile->string_table[place];
}

/* Ours are numbered from 1, and each has one function. */
static struct error *frame_at(const Pprof__Profile *profile, uint64_t id, struct chain_frame *ret)
{
	const Pprof__Location *location;
	const Pprof__Function *function;
	uint64_t function_id;

	if (id == 0 || id > profile->n_location)
		return malformed("a place has no frame");
	location = profile->location[id - 1];
	function_id = location->n_line == 1 ? location->line[0]->function_id : 0;
	if (location->id != id || function_id == 0 || function_id > profile->n_function)
		return malformed("a frame has no function");
	function = profile->function[function_id - 1];
	*ret = (struct chain_frame){
		.name = text_at(profile, function->name),
		.file = text_at(profile, function->filename),
		.line = (uint32_t)location->line[0]->line,
	};
	return NULL;
}

static struct error *add_sample(struct chain_tree *tree, const Pprof__Profile *profile,
				const Pprof__Sample *sample)
{
	uint32_t node = ID_NONE;
	struct error *err = NULL;

	if (sample->n_value != VALUES || sample->n_location_id == 0 ||
	    sample->n_location_id > DEPTH_MAX)
		return malformed("a sample has no chain");
	for (size_t i = sample->n_location_id; !err && i-- > 0;) {
		struct chain_frame frame;

		err = frame_at(profile, sample->location_id[i], &frame);
		if (!err)
			err = chain_tree_node(tree, node, &frame, ID_NONE, &node);
	}
	if (err)
		return err;
	if (__builtin_add_overflow(tree->nodes[node].objects, sample->value[0],
				   &tree->nodes[node].objects) ||
	    __builtin_add_overflow(tree->nodes[node].bytes, sample->value[1],
				   &tree->nodes[node].bytes))
		return malformed("its sums are too large");
	return NULL;
}

struct error *pprof_decode(const void *data, size_t size, struct pprof_decoded *ret)
{
	struct error *err;

	*ret = (struct pprof_decoded){ 0 };
	chain_tree_init(&ret->tree);
	bytes_init(&ret->plain, PPROF_MAX_BYTES + (64 << 10)); /* gunzipped in whole pieces */
	err = gzip_unpack(data, size, &ret->plain);
	if (err)
		return err;
	ret->message = pprof__profile__unpack(NULL, ret->plain.size, ret->plain.data);
	if (!ret->message)
		return malformed("it does not parse");
	for (size_t i = 0; !err && i < ret->message->n_sample; i++)
		err = add_sample(&ret->tree, ret->message, ret->message->sample[i]);
	return err;
}

ProtobufCBinaryData pprof_comment(const struct pprof_decoded *decoded, size_t place)
{
	const Pprof__Profile *profile = decoded->message;

	if (place >= profile->n_comment)
		return (ProtobufCBinaryData){ 0 };
	return text_at(profile, profile->comment[place]);
}
