#include "agent/decoder_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/dwarf_types.h"
#include "agent/binary/index.h"
#include "agent/decoder_debug.h"
#include "agent/decoder_discover.h"
#include "agent/decoder_target.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"
#include "proto/base/log.h"

/* What goes through the reading of one layout. */
struct reading {
	struct decoder *decoder;
	const struct decoder_target *target;
	struct bytes index; /* the content of the index file; empty if there is none */
	struct index_key key;
	struct decoder_layout *ret;
};

static struct error *decode_index(const struct bytes *content, const struct index_key *key,
				  struct decoder_layout *ret)
{
	const uint8_t *layout_bytes;
	size_t layout_size;
	struct cursor cursor;
	struct error *err = index_decode(INDEX_LAYOUT, content->data, content->size, key,
					 &layout_bytes, &layout_size);

	if (err)
		return err;
	cursor_init(&cursor, "index", layout_bytes, layout_size);
	return decoder_layout_load(&cursor, ret);
}

/* Whether the index is good for the key as it is now; why not is told when a new one is made. */
static bool use_index(struct reading *r)
{
	struct error *err;

	if (!r->index.size)
		return false;
	err = decode_index(&r->index, &r->key, r->ret);
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
	err = decoder_layout_store(r->ret, &stored);
	if (!err)
		err = index_encode(INDEX_LAYOUT, &r->key, &stored, &content);
	if (!err)
		err = send_index(r->decoder, &content);
	bytes_fini(&content);
	bytes_fini(&stored);
	return err;
}

/* An index that could not be used may be damaged or out of date. */
static void note_index(const struct reading *r)
{
	struct decoder_layout layout scoped(decoder_layout_fini) = { 0 };
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
		err = layout_read(dwarf_types_source(types), r->target->info->version,
				  &r->ret->layout);
	if (err)
		return err;
	r->ret->known_by = LAYOUT_BY_DWARF;
	r->ret->exact = true;
	note_index(r);
	return make_index(r);
}

/* ---- no DWARF ---- */

static struct error *read_table(struct reading *r)
{
	struct error *err;

	memset(&r->key.debug_file, 0, sizeof(r->key.debug_file));
	if (use_index(r))
		return NULL;
	err = decoder_discover(r->target, r->ret);
	for (unsigned i = r->ret->refusal_count; err && i > 0; i--)
		err = error_context(err, "%s", r->ret->refusals[i - 1]);
	if (err)
		return error_context(err, "there is no DWARF, since the executable was built with "
					  "-ldflags=-w or -s, or was stripped");
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

/* Types may be read of it later on. */
static struct error *hold_file(struct reading *r, const struct decoder_debug *debug, unsigned index)
{
	int fd = fcntl(decoder_debug_fd(debug, index), F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return error_system(errno, "debug file");
	r->ret->debug_fd = fd;
	r->ret->from_debug_file = true;
	return NULL;
}

/* Reasons to go on with the next file; others would stand in its way, too. */
static bool is_refusal(const struct error *err)
{
	return error_code(err) == ERROR_FORMAT || error_code(err) == ERROR_LIMIT ||
	       error_code(err) == ERROR_NOT_GO;
}

static struct error *try_files(struct reading *r, const struct decoder_debug *debug)
{
	for (unsigned i = 0; i < debug->count; i++) {
		char path[1024];
		struct error *err = try_file(r, debug, i), *refuse_err;

		if (!err)
			return hold_file(r, debug, i);
		if (!is_refusal(err))
			return err;
		decoder_debug_path(debug, i, path, sizeof(path));
		refuse_err = refuse(r, path, err);
		error_free(err);
		if (refuse_err)
			return refuse_err;
	}
	return read_table(r);
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

/*
 * Linkers that were told to leave Go's DWARF out may have kept that of C code, which lacks the
 * runtime; and DWARF that is damaged is as good as none.
 */
static struct error *read_own(struct reading *r)
{
	struct error *err;

	if (use_index(r))
		return NULL;
	err = read_dwarf(r, r->target->file);
	if (!err || error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_SYSTEM)
		return err;
	log_debug("decoder", "DWARF does not give the layout err=\"%s\"", error_message(err));
	error_free(err);
	return read_debug_file(r, r->target->file);
}

struct error *decoder_layout_read(struct decoder *decoder, const struct decoder_target *target,
				  int index_fd, struct decoder_layout *ret)
{
	struct reading r = { .decoder = decoder, .target = target, .ret = ret };
	struct error *err;

	*ret = (struct decoder_layout){ 0 };
	bytes_init(&r.index, INDEX_SIZE_MAX);
	err = index_file_key_read(decoder_target_fd(target, TARGET_FILE_EXE), &r.key.executable);
	if (!err) {
		index_key_set_build_id(&r.key, target->file);
		read_index(&r, index_fd);
		err = elf_file_has_dwarf(target->file) ? read_own(&r)
						       : read_debug_file(&r, target->file);
	}
	bytes_fini(&r.index);
	ret->key = r.key;
	return err;
}

void decoder_layout_let_go(struct decoder_layout *layout)
{
	if (layout->from_debug_file)
		closep(&layout->debug_fd);
	layout->debug_fd = -1;
}

void decoder_layout_fini(struct decoder_layout *layout)
{
	decoder_layout_let_go(layout);
	layout_free(layout->layout);
	for (unsigned i = 0; i < layout->refusal_count; i++)
		free(layout->refusals[i]);
	*layout = (struct decoder_layout){ 0 };
}
