#include "agent/decoder_debug.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_file.h"
#include "proto/base/log.h"

static struct error *ask(struct decoder *decoder, struct decoder_debug *debug)
{
	Goheapd__PlanEvent event = GOHEAPD__PLAN_EVENT__INIT;
	Goheapd__DebugSearch search = GOHEAPD__DEBUG_SEARCH__INIT;
	size_t size;
	const uint8_t *build_id = elf_file_build_id(debug->executable, &size);

	search.has_build_id = size >= 2; /* the first byte names a folder */
	search.build_id = (ProtobufCBinaryData){ size, (uint8_t *)(uintptr_t)build_id };
	search.has_link = debug->has_link;
	search.link =
	    (ProtobufCBinaryData){ strlen(debug->link.name), (uint8_t *)debug->link.name };
	event.body_case = GOHEAPD__PLAN_EVENT__BODY_DEBUG_SEARCH;
	event.debug_search = &search;
	return frame_send(decoder->keeper, &frame_plan_event, &event.base, NULL, 0);
}

static struct error *receive(struct decoder *decoder, struct decoder_debug *debug)
{
	const Goheapd__TargetEvent *event;
	enum frame_state state;
	struct error *err = frame_read(&decoder->events, &debug->frame, &state);

	if (err)
		return err;
	if (state != FRAME_COMPLETE)
		return error_new(ERROR_SYSTEM, "the keeper ended in its search for debug files");
	event = (const Goheapd__TargetEvent *)debug->frame.message;
	if (event->body_case != GOHEAPD__TARGET_EVENT__BODY_DEBUG_FILES ||
	    event->debug_files->n_paths != debug->frame.fd_count ||
	    debug->frame.fd_count > LIMIT_DEBUG_FILES)
		return error_new(ERROR_FORMAT, "event %d of a keeper", event->body_case);
	debug->count = debug->frame.fd_count;
	return NULL;
}

struct error *decoder_debug_find(struct decoder *decoder, const struct elf_file *executable,
				 struct decoder_debug *ret)
{
	struct error *err;

	*ret = (struct decoder_debug){ .executable = executable };
	err = debug_link_read(executable, &ret->link, &ret->has_link);
	if (!err)
		err = ask(decoder, ret);
	return err ? err : receive(decoder, ret);
}

void decoder_debug_fini(struct decoder_debug *debug)
{
	frame_fini(&debug->frame);
}

int decoder_debug_fd(const struct decoder_debug *debug, unsigned index)
{
	return debug->frame.fds[index];
}

void decoder_debug_path(const struct decoder_debug *debug, unsigned index, char *ret, size_t size)
{
	const Goheapd__TargetEvent *event = (const Goheapd__TargetEvent *)debug->frame.message;
	const ProtobufCBinaryData *path = &event->debug_files->paths[index];
	char *text scoped(freep) = strndup((const char *)path->data, path->len);

	log_escape(text ? text : "?", ret, size);
}

struct error *decoder_debug_open(const struct decoder_debug *debug, unsigned index,
				 struct elf_file **ret)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	int fd = decoder_debug_fd(debug, index);
	struct error *err = elf_file_open(fd, &file);

	if (!err)
		err = debug_file_check(debug->executable, debug->has_link ? &debug->link : NULL,
				       file, fd);
	if (err)
		return error_code(err) == ERROR_NOMEM ? err : error_recode(err, ERROR_FORMAT);
	*ret = take(file);
	return NULL;
}
