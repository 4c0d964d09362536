#include "agent/decoder_tasks.h"

#include <string.h>

#include "agent/binary/build_info.h"
#include "agent/binary/elf_file.h"
#include "agent/goruntime/layout_table.h"

static void set_text(const char *text, protobuf_c_boolean *ret_has, ProtobufCBinaryData *ret)
{
	*ret_has = text && text[0];
	*ret = (ProtobufCBinaryData){ *ret_has ? strlen(text) : 0, (uint8_t *)(uintptr_t)text };
}

/* One that cannot be read here may still be learned from the process itself. */
static bool has_known_version(const struct elf_file *file, const struct build_info *info)
{
	const struct layout_table_entry *entry;

	return !info || !info->version[0] ||
	       layout_table_find(elf_file_arch(file), info->version, &entry) != LAYOUT_MATCH_NONE;
}

/* *ret_info, if there is any, owns what *ret borrows. */
static struct error *examine(const struct elf_file *file, struct build_info **ret_info,
			     Goheapd__Identified *ret)
{
	bool is_go = false;
	struct error *err = decoder_build_info(file, ret_info, &is_go);

	ret->is_go = is_go;
	if (!is_go)
		return err;
	if (*ret_info)
		set_text((*ret_info)->version, &ret->has_go_version, &ret->go_version);
	ret->inspectable = elf_file_has_dwarf(file) || has_known_version(file, *ret_info);
	if (!ret->inspectable)
		set_text("it has no debug information, and was made by a version of Go of which "
			 "no layout is built in",
			 &ret->has_reason, &ret->reason);
	return NULL;
}

static struct error *identify(struct decoder *decoder, uint32_t id, int exe_fd)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct build_info *info scoped(build_info_freep) = NULL;
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__Identified identified = GOHEAPD__IDENTIFIED__INIT;
	struct error *err = elf_file_open(exe_fd, &file);

	if (!err)
		err = examine(file, &info, &identified);
	/* what is broken is no Go program that anybody could look at; memory is ours to report */
	if (err && error_code(err) == ERROR_NOMEM)
		return err;
	error_free(err);
	identified.id = id;
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_IDENTIFIED;
	event.identified = &identified;
	return decoder_tell_agent(decoder, &event);
}

static struct error *identify_frame(struct decoder *decoder, struct frame *frame)
{
	const Goheapd__DecoderOrder *order = (const Goheapd__DecoderOrder *)frame->message;

	if (order->body_case != GOHEAPD__DECODER_ORDER__BODY_IDENTIFY || frame->fd_count != 1)
		return error_new(ERROR_FORMAT, "order %d among executables", order->body_case);
	return identify(decoder, order->identify->id, frame->fds[0]);
}

struct error *decoder_identify(struct decoder *decoder, struct frame *first)
{
	struct error *err = identify_frame(decoder, first);

	while (!err) {
		struct frame frame;
		enum frame_state state;

		err = frame_read(&decoder->orders, &frame, &state);
		if (err || state != FRAME_COMPLETE)
			break;
		err = identify_frame(decoder, &frame);
		frame_fini(&frame);
	}
	return err;
}
