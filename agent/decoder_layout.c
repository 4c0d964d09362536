#include "agent/decoder_layout.h"

#include "agent/binary/dwarf_types.h"
#include "agent/binary/index.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"
#include "proto/base/log.h"

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

static struct error *load_index(int index_fd, const struct index_key *key, struct layout **ret)
{
	struct bytes content;
	struct error *err;

	bytes_init(&content, INDEX_SIZE_MAX);
	err = index_file_read(index_fd, &content);
	if (!err)
		err = decode_index(&content, key, ret);
	bytes_fini(&content);
	return err;
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

static struct error *make_index(struct decoder *decoder, const struct index_key *key,
				const struct layout *layout)
{
	struct bytes stored, content;
	struct error *err;

	bytes_init(&stored, INDEX_SIZE_MAX);
	bytes_init(&content, INDEX_SIZE_MAX);
	err = layout_store(layout, &stored);
	if (!err)
		err = index_encode(key, &stored, &content);
	if (!err)
		err = send_index(decoder, &content);
	bytes_fini(&content);
	bytes_fini(&stored);
	return err;
}

static struct error *read_dwarf(const struct elf_file *file, struct layout **ret)
{
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = dwarf_types_open(file, &types);

	return err ? err : layout_read(dwarf_types_source(types), ret);
}

struct error *decoder_layout_read(struct decoder *decoder, const struct elf_file *file, int exe_fd,
				  int index_fd, struct layout **ret, bool *ret_index_used)
{
	struct index_key key;
	struct layout *layout scoped(layout_freep) = NULL;
	struct error *err = index_key_read(exe_fd, &key);

	if (err)
		return err;
	index_key_set_build_id(&key, file);
	if (index_fd >= 0) {
		err = load_index(index_fd, &key, ret);
		if (!err) {
			*ret_index_used = true;
			return NULL;
		}
		log_warning("decoder", "an index is made anew err=\"%s\"", error_message(err));
		error_free(err);
	}
	err = read_dwarf(file, &layout);
	if (!err)
		err = make_index(decoder, &key, layout);
	if (err)
		return err;
	*ret = take(layout);
	*ret_index_used = false;
	return NULL;
}
