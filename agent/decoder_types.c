#include "agent/decoder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/index.h"
#include "agent/decoder_target.h"
#include "proto/base/log.h"
#include "proto/wire/limits.h"

_Static_assert((int)LIMIT_TYPE_INDEX_BYTES >= (int)INDEX_TYPES_SIZE_MAX,
	       "what is made can be kept");

/* ---- what is kept ---- */

static struct error *receive(struct decoder *decoder, int *ret_fd)
{
	struct frame frame;
	struct error *err = decoder_next_order(decoder, &frame);

	if (err)
		return err;
	if (((const Goheapd__DecoderOrder *)frame.message)->body_case !=
	    GOHEAPD__DECODER_ORDER__BODY_TYPE_INDEX)
		err = error_new(ERROR_FORMAT, "an order other than a type index");
	else
		*ret_fd = frame_take_fd(&frame, 0);
	frame_fini(&frame);
	return err;
}

/* *ret_fd is -1 if nothing is kept. */
static struct error *ask(struct decoder *decoder, int *ret_fd)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__TypeIndexSearch search = GOHEAPD__TYPE_INDEX_SEARCH__INIT;
	struct error *err;

	event.body_case = GOHEAPD__DECODER_EVENT__BODY_TYPE_INDEX_SEARCH;
	event.type_index_search = &search;
	err = decoder_tell_agent(decoder, &event);
	return err ? err : receive(decoder, ret_fd);
}

/* The content must be that of this very binary. */
static struct error *open_content(const struct decoder_target *target, struct decoder_types *types)
{
	const uint8_t *content;
	size_t size;
	struct error *err = index_decode(INDEX_TYPES, types->bytes.data, types->bytes.size,
					 &target->source.key, &content, &size);

	return err ? err : type_index_open(content, size, &types->index);
}

static void reset_bytes(struct decoder_types *types)
{
	bytes_fini(&types->bytes);
	bytes_init(&types->bytes, INDEX_TYPES_SIZE_MAX);
}

/* One that is damaged, or of another binary, is as good as none. */
static void use_kept(const struct decoder_target *target, int fd, struct decoder_types *types)
{
	struct error *err = index_file_read(fd, &types->bytes);

	if (!err)
		err = open_content(target, types);
	types->from_index = !err;
	if (!err)
		return;
	log_warning("decoder", "a type index is made anew err=\"%s\"", error_message(err));
	error_free(err);
	reset_bytes(types);
}

/* ---- what is made anew ---- */

static struct error *build_from(const struct decoder_target *target, const struct elf_file *file,
				struct decoder_types *types)
{
	const struct type_index_files files = { .executable = target->file, .debug = file };
	struct index_draft draft;
	struct error *err = index_begin(INDEX_TYPES, &target->source.key, &types->bytes, &draft);

	if (!err)
		err = type_index_build(&files, &types->bytes);
	if (!err)
		index_end(&draft, &types->bytes);
	return err;
}

static struct error *build(const struct decoder_target *target, struct decoder_types *types)
{
	struct elf_file *debug scoped(elf_file_freep) = NULL;
	struct error *err = NULL;

	if (!target->source.from_debug_file)
		return build_from(target, target->file, types);
	err = elf_file_open(target->source.debug_fd, &debug);
	return err ? err : build_from(target, debug, types);
}

static struct error *write_all(int fd, const struct bytes *bytes)
{
	size_t done = 0;

	while (done < bytes->size) {
		ssize_t n = write(fd, bytes->data + done, bytes->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(errno, "memory file");
		done += (size_t)n;
	}
	return NULL;
}

/* A memory file that nobody can change any more. */
static struct error *seal(const struct bytes *bytes, int *ret_fd)
{
	int fd scoped(closep) = memfd_create("goheapd-types", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct error *err;

	if (fd < 0)
		return error_system(errno, "memory file");
	err = write_all(fd, bytes);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return error_system(errno, "seals");
	*ret_fd = take_fd(fd);
	return NULL;
}

/* That it cannot be kept costs the next scan some time, and is no reason to fail. */
static struct error *keep(struct decoder *decoder, const struct bytes *bytes)
{
	Goheapd__DecoderEvent event = GOHEAPD__DECODER_EVENT__INIT;
	Goheapd__TypeIndexContent content = GOHEAPD__TYPE_INDEX_CONTENT__INIT;
	int fd scoped(closep) = -1;
	struct error *err = seal(bytes, &fd);

	if (err) {
		log_warning("decoder", "a type index is not kept err=\"%s\"", error_message(err));
		error_free(err);
		return NULL;
	}
	event.body_case = GOHEAPD__DECODER_EVENT__BODY_TYPE_INDEX;
	event.type_index = &content;
	return frame_send(decoder->agent, &frame_decoder_event, &event.base, &fd, 1);
}

static struct error *make(struct decoder *decoder, const struct decoder_target *target,
			  struct decoder_types *types)
{
	struct error *err = build(target, types);

	if (!err)
		err = keep(decoder, &types->bytes);
	return err ? err : open_content(target, types);
}

/* Where memory or the machine fails nothing else would do any better. */
static bool is_none(const struct error *err)
{
	return error_code(err) == ERROR_NO_DEBUG_INFO || error_code(err) == ERROR_FORMAT ||
	       error_code(err) == ERROR_LIMIT;
}

static struct error *give_reason(struct decoder_types *types, const char *reason)
{
	types->reason = strdup(reason);
	return types->reason ? NULL : &error_nomem;
}

/* Consumes why there is no index. */
static struct error *give_up(struct decoder_types *types, struct error *why)
{
	struct error *err = give_reason(types, error_message(why));

	log_warning("decoder", "types are not known err=\"%s\"", error_message(why));
	error_free(why);
	reset_bytes(types);
	return err;
}

struct error *decoder_types_read(struct decoder *decoder, const struct decoder_target *target,
				 struct decoder_types *ret)
{
	int fd scoped(closep) = -1;
	struct error *err;

	*ret = (struct decoder_types){ .bias = target->load_bias };
	bytes_init(&ret->bytes, INDEX_TYPES_SIZE_MAX);
	if (target->source.known_by != LAYOUT_BY_DWARF)
		return give_reason(ret, "there is no DWARF");
	err = ask(decoder, &fd);
	if (err)
		return err;
	if (fd >= 0)
		use_kept(target, fd, ret);
	if (ret->index)
		return NULL;
	err = make(decoder, target, ret);
	return err && is_none(err) ? give_up(ret, err) : err;
}

void decoder_types_fini(struct decoder_types *types)
{
	type_index_free(types->index);
	free(types->reason);
	bytes_fini(&types->bytes);
	for (unsigned i = 0; i < types->plugin_count; i++)
		bytes_fini(&types->plugin_bytes[i]);
	*types = (struct decoder_types){ 0 };
}
