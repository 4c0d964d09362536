#include "agent/decoder_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/dwarf_types.h"
#include "agent/binary/index.h"
#include "agent/decoder_debug.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"
#include "proto/base/log.h"

/* What goes through the reading of one layout. */
struct reading {
	struct decoder *decoder;
	const char *version;
	struct bytes index; /* the content of the index file; empty if there is none */
	struct index_key key;
	struct decoder_layout *ret;
};

static struct error *decode_index(const struct bytes *content, const struct index_key *key,
				  struct layout **ret)
{
	const uint8_t *layout_bytes;
	size_t layout_size;
	struct cursor cursor;
	struct error *err =
	    index_decode(content->data, content->size, key, &layout_bytes, &layout_size);

	if (err)
		return err;
	cursor_init(&cursor, "index", layout_bytes, layout_size);
	return layout_load(&cursor, ret);
}

/* Whether the index is good for the key as it is now; why not is told when a new one is made. */
static bool use_index(struct reading *r)
{
	struct error *err;

	if (!r->index.size)
		return false;
	err = decode_index(&r->index, &r->key, &r->ret->layout);
	r->ret->index_used = !err;
	error_free(err);
	return r->ret->index_used;
}

static struct error *send_index(struct decoder *decoder, const struct bytes *content)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__IndexContent index = GOHEAPD__INDEX_CONTENT__INIT;

	index.content = (ProtobufCBinaryData){ content->size, content->data };
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_INDEX;
	event.index = &index;
	return decoder_tell_agent(decoder, &event);
}

static struct error *make_index(struct reading *r)
{
	struct bytes stored, content;
	struct error *err;

	bytes_init(&stored, INDEX_SIZE_MAX);
	bytes_init(&content, INDEX_SIZE_MAX);
	err = layout_store(r->ret->layout, &stored);
	if (!err)
		err = index_encode(&r->key, &stored, &content);
	if (!err)
		err = send_index(r->decoder, &content);
	bytes_fini(&content);
	bytes_fini(&stored);
	return err;
}

/* An index that could not be used may be damaged or out of date. */
static void note_index(const struct reading *r)
{
	struct layout *layout scoped(layout_freep) = NULL;
	struct error *err;

	if (!r->index.size)
		return;
	err = decode_index(&r->index, &r->key, &layout);
	if (err)
		log_warning("decoder", "an index is made anew err=\"%s\"", error_message(err));
	error_free(err);
}

static struct error *read_dwarf(struct reading *r, const struct elf_file *file)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = dwarf_types_open(file, &types);

	if (!err)
		err = layout_read(dwarf_types_source(types), r->version, &r->ret->layout);
	if (err)
		return err;
	note_index(r);
	return make_index(r);
}

/* ---- DWARF in a file of its own ---- */

static struct error *refuse(struct reading *r, const char *path, const struct error *reason)
{
	char *sentence;

	if (asprintf(&sentence, "%s is not used as debug file: %s", path, error_message(reason)) <
	    0)
		return &error_nomem;
	r->ret->refusals[r->ret->refusal_count++] = sentence;
	return NULL;
}

/* An index that was made from this very file vouches for it. */
static struct error *try_file(struct reading *r, const struct decoder_debug *debug, unsigned index)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct error *err = index_file_key_read(decoder_debug_fd(debug, index), &r->key.debug_file);

	if (err || use_index(r))
		return err;
	err = decoder_debug_open(debug, index, &file);
	return err ? err : read_dwarf(r, file);
}

/* Reasons to go on with the next file; others would stand in its way, too. */
static bool is_refusal(const struct error *err)
{
	return error_code(err) == ERROR_FORMAT || error_code(err) == ERROR_LIMIT ||
	       error_code(err) == ERROR_NOT_GO;
}

static struct error *no_debug_info(const struct reading *r)
{
	struct error *err = error_new(
	    ERROR_NO_DEBUG_INFO,
	    "the executable has no DWARF, and no debug file of it was found: it was built "
	    "with -ldflags=-w or -s, or was stripped; build it without them, or install "
	    "its debug file");

	for (unsigned i = r->ret->refusal_count; i > 0; i--)
		err = error_context(err, "%s", r->ret->refusals[i - 1]);
	return err;
}

static struct error *try_files(struct reading *r, const struct decoder_debug *debug)
{
	for (unsigned i = 0; i < debug->count; i++) {
		char path[1024];
		struct error *err = try_file(r, debug, i), *refuse_err;

		if (!err) {
			r->ret->from_debug_file = true;
			return NULL;
		}
		if (!is_refusal(err))
			return err;
		decoder_debug_path(debug, i, path, sizeof(path));
		refuse_err = refuse(r, path, err);
		error_free(err);
		if (refuse_err)
			return refuse_err;
	}
	return no_debug_info(r);
}

static struct error *read_debug_file(struct reading *r, const struct elf_file *executable)
{
	struct decoder_debug debug;
	struct error *err = decoder_debug_find(r->decoder, executable, &debug);

	if (!err)
		err = try_files(r, &debug);
	decoder_debug_fini(&debug);
	return err;
}

/* That it cannot be read is as if there were none. */
static void read_index(struct reading *r, int index_fd)
{
	struct error *err = index_fd < 0 ? NULL : index_file_read(index_fd, &r->index);

	if (!err)
		return;
	log_warning("decoder", "an index cannot be read err=\"%s\"", error_message(err));
	error_free(err);
	bytes_fini(&r->index);
	bytes_init(&r->index, INDEX_SIZE_MAX);
}

struct error *decoder_layout_read(struct decoder *decoder, const struct elf_file *file,
				  const char *version, int exe_fd, int index_fd,
				  struct decoder_layout *ret)
{
	struct reading r = { .decoder = decoder, .version = version, .ret = ret };
	struct error *err;

	*ret = (struct decoder_layout){ 0 };
	bytes_init(&r.index, INDEX_SIZE_MAX);
	err = index_file_key_read(exe_fd, &r.key.executable);
	if (!err) {
		index_key_set_build_id(&r.key, file);
		read_index(&r, index_fd);
		if (!elf_file_has_dwarf(file))
			err = read_debug_file(&r, file);
		else if (!use_index(&r))
			err = read_dwarf(&r, file);
	}
	bytes_fini(&r.index);
	return err;
}

void decoder_layout_fini(struct decoder_layout *layout)
{
	layout_free(layout->layout);
	for (unsigned i = 0; i < layout->refusal_count; i++)
		free(layout->refusals[i]);
	*layout = (struct decoder_layout){ 0 };
}
