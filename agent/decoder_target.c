#include "agent/decoder_target.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/binary/build_info.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/packer.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/report/message.h"
#include "agent/target/live_memory.h"
#include "agent/target/process.h"
#include "proto/base/log.h"

int decoder_target_fd(const struct decoder_target *target, enum target_file file)
{
	return target->frame.fds[file];
}

static struct error *receive_opened(struct decoder *decoder, struct decoder_target *target)
{
	const Goheapd__TargetEvent *event;
	enum frame_state state;
	struct error *err = frame_read(&decoder->events, &target->frame, &state);

	if (err)
		return err;
	if (state != FRAME_COMPLETE)
		return error_new(ERROR_SYSTEM, "the keeper ended before the target was open");
	event = (const Goheapd__TargetEvent *)target->frame.message;
	if (event->body_case != GOHEAPD__TARGET_EVENT__BODY_OPENED ||
	    target->frame.fd_count != TARGET_FILE_COUNT)
		return error_new(ERROR_FORMAT, "event %d of a keeper", event->body_case);
	target->opened = event->opened;
	target->exe_name = strndup((const char *)target->opened->exe.data, target->opened->exe.len);
	return target->exe_name ? NULL : &error_nomem;
}

static struct error *receive_index(struct decoder *decoder, int *ret_index_fd)
{
	struct frame frame;
	struct error *err = decoder_next_order(decoder, &frame);

	if (err)
		return err;
	if (((const Goheapd__DecoderOrder *)frame.message)->body_case !=
	    GOHEAPD__DECODER_ORDER__BODY_INDEX)
		err = error_new(ERROR_FORMAT, "an order other than an index");
	else
		*ret_index_fd = frame_take_fd(&frame, 0);
	frame_fini(&frame);
	return err;
}

struct error *decoder_build_info(const struct elf_file *file, struct build_info **ret,
				 bool *ret_is_go)
{
	bool has_functions = elf_file_find_section(file, ".gopclntab");
	struct error *err = build_info_read(file, ret);

	if (err && (error_code(err) == ERROR_NOMEM || !has_functions))
		return err;
	if (err) {
		log_debug("decoder", "the version is not known err=\"%s\"", error_message(err));
		error_free(err);
		*ret = NULL;
	}
	*ret_is_go = *ret || has_functions;
	return NULL;
}

static struct error *refuse_binary(const struct decoder_target *target)
{
	uint32_t pid = target->opened->pid;
	const char *packer;
	struct error *err = packer_find(target->file, &packer);

	if (err)
		return err;
	if (packer)
		return error_new(
		    ERROR_NOT_GO,
		    "the executable of process %u is packed by %s, so that its file tells "
		    "nothing of a Go program; run it unpacked (upx -d)",
		    pid, packer);
	return error_new(ERROR_NOT_GO, "process %u is no Go program", pid);
}

static struct error *read_binary(struct decoder_target *target)
{
	struct error *err =
	    elf_file_open(decoder_target_fd(target, TARGET_FILE_EXE), &target->file);
	bool is_go;

	if (!err)
		err = decoder_build_info(target->file, &target->info, &is_go);
	if (err)
		return err;
	if (!is_go)
		return refuse_binary(target);
	return target->info ? NULL : build_info_new(&target->info);
}

/*
 * Where the program was told to begin, less where its file says: what run-time addresses have over
 * link-time ones. The kernel tells the former in the auxiliary vector.
 */
static struct error *find_load_bias(struct decoder_target *target, uint64_t *ret)
{
	struct error *err =
	    process_entry(decoder_target_fd(target, TARGET_FILE_AUXV), &target->entry);

	if (!err)
		*ret = target->entry - elf_file_entry(target->file);
	return err;
}

struct live_memory_files decoder_target_files(const struct decoder_target *target, int mem_fd)
{
	return (struct live_memory_files){
		.mem = mem_fd,
		.pagemap = decoder_target_fd(target, TARGET_FILE_PAGEMAP),
		.maps = decoder_target_fd(target, TARGET_FILE_MAPS),
		.exe = decoder_target_fd(target, TARGET_FILE_EXE),
		.exe_name = target->exe_name,
		.plugins = target->plugins.files,
		.plugin_count = target->plugins.count,
	};
}

/* Anew once more is known of the target's files. */
static struct error *open_memory(struct decoder_target *target)
{
	const struct live_memory_files files =
	    decoder_target_files(target, decoder_target_fd(target, TARGET_FILE_MEM));

	memory_free(take(target->memory));
	return live_memory_open(&files, &target->memory);
}

static struct error *read_plugins(struct decoder *decoder, struct decoder_target *target)
{
	struct error *err = decoder_plugins_find(decoder, target->modules, &target->plugins);

	if (!err)
		err = decoder_plugins_complete(&target->plugins, target->layout);
	if (!err)
		err = open_memory(target);
	if (err)
		return err;
	module_table_free(take(target->modules));
	return module_table_read(target->memory, target->layout, &target->modules);
}

static struct error *read_layout(struct decoder *decoder, struct decoder_target *target,
				 int index_fd)
{
	struct error *err = decoder_layout_read(decoder, target, index_fd, &target->source);

	if (err)
		return err;
	target->layout = target->source.layout;
	layout_relocate(target->layout, target->load_bias);
	err = module_table_read(target->memory, target->layout, &target->modules);
	if (err || module_table_count(target->modules) == 1)
		return err;
	return read_plugins(decoder, target);
}

/*
 * What does not fit together may be of two programs: the process runs while it is looked at, and
 * may have run another one meanwhile, or itself again. Consumes err.
 */
static struct error *explain(const struct decoder_target *target, struct error *err)
{
	if (!err || error_code(err) == ERROR_NOMEM ||
	    !process_image_gone(decoder_target_fd(target, TARGET_FILE_MEM)))
		return err;
	return error_context(error_recode(err, ERROR_GONE),
			     "the process ended or ran another program meanwhile");
}

static struct error *open_opened(struct decoder *decoder, struct decoder_target *ret)
{
	int index_fd scoped(closep) = -1;
	struct error *err = receive_index(decoder, &index_fd);

	if (!err)
		err = read_binary(ret);
	if (!err)
		err = find_load_bias(ret, &ret->load_bias);
	if (!err)
		err = open_memory(ret);
	return err ? err : read_layout(decoder, ret, index_fd);
}

struct error *decoder_target_open(struct decoder *decoder, struct decoder_target *ret)
{
	struct error *err;

	*ret = (struct decoder_target){ 0 };
	err = receive_opened(decoder, ret);
	return err ? err : explain(ret, open_opened(decoder, ret));
}

void decoder_target_let_go(struct decoder_target *target)
{
	module_table_free(take(target->modules));
	memory_free(take(target->memory));
	decoder_plugins_fini(&target->plugins);
	elf_file_free(take(target->file));
	decoder_layout_let_go(&target->source);
	frame_close_fds(&target->frame);
}

void decoder_target_fini(struct decoder_target *target)
{
	module_table_free(target->modules);
	memory_free(target->memory);
	decoder_plugins_fini(&target->plugins);
	decoder_layout_fini(&target->source);
	build_info_free(target->info);
	elf_file_free(target->file);
	free(target->exe_name);
	frame_fini(&target->frame);
}

/* ---- messages ---- */

/* A bytes field that is there only if the text is not empty. */
static struct error *optional_text(const char *text, protobuf_c_boolean *ret_has,
				   ProtobufCBinaryData *ret)
{
	if (!text[0])
		return NULL;
	*ret_has = true;
	return message_text(text, ret);
}

/* The GNU build id in hexadecimal digits, else Go's own. */
static struct error *fill_build_id(const struct elf_file *file, Goheapd__Build *build)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * ELF_FILE_BUILD_ID_MAX + 1];
	size_t size;
	const uint8_t *id = elf_file_build_id(file, &size);

	if (!size)
		return optional_text(elf_file_go_build_id(file), &build->has_build_id,
				     &build->build_id);
	for (size_t i = 0; i < size; i++) {
		hex[2 * i] = digits[id[i] >> 4];
		hex[2 * i + 1] = digits[id[i] & 15];
	}
	hex[2 * size] = '\0';
	return optional_text(hex, &build->has_build_id, &build->build_id);
}

static struct error *fill_build(const struct decoder_target *target, Goheapd__Build *build)
{
	const struct build_info *info = target->info;
	struct error *err = optional_text(info->module, &build->has_module, &build->module);

	if (!err)
		err = optional_text(info->module_version, &build->has_version, &build->version);
	if (!err)
		err = optional_text(info->vcs_revision, &build->has_vcs_revision,
				    &build->vcs_revision);
	if (!err)
		err = optional_text(info->vcs_time, &build->has_vcs_time, &build->vcs_time);
	if (!err)
		err = optional_text(info->path, &build->has_path, &build->path);
	return err ? err : fill_build_id(target->file, build);
}

/* As the build info says, or as the runtime itself does. */
static const char *version_of(const struct decoder_target *target)
{
	return target->info->version[0] ? target->info->version : target->layout->version;
}

static struct error *fill_identity(const struct decoder_target *target, Goheapd__Identity *identity)
{
	const Goheapd__TargetOpened *opened = target->opened;
	struct error *err;

	identity->pid = opened->pid;
	identity->start_ticks = opened->start_ticks;
	identity->start_time_ns = opened->start_time_ns;
	identity->uid = opened->uid;
	err = message_bytes(opened->comm.data, opened->comm.len, &identity->comm);
	if (!err)
		err = message_bytes(opened->exe.data, opened->exe.len, &identity->exe);
	if (!err)
		err = message_text(version_of(target), &identity->go_version);
	if (!err)
		err = message_string("amd64", &identity->arch);
	if (err)
		return err;
	identity->build = malloc(sizeof(*identity->build));
	if (!identity->build)
		return &error_nomem;
	goheapd__build__init(identity->build);
	return fill_build(target, identity->build);
}

struct error *decoder_target_identity(const struct decoder_target *target, Goheapd__Identity **ret)
{
	Goheapd__Identity *identity = malloc(sizeof(*identity));
	struct error *err;

	if (!identity)
		return &error_nomem;
	goheapd__identity__init(identity);
	err = fill_identity(target, identity);
	if (err) {
		goheapd__identity__free_unpacked(identity, NULL);
		return err;
	}
	*ret = identity;
	return NULL;
}

static const char *known_by(const struct decoder_layout *source)
{
	if (source->known_by == LAYOUT_BY_TABLE)
		return "table";
	return source->from_debug_file ? "debug file" : "dwarf";
}

/* Types are the runtime's own: DWARF gives the layouts alone. */
static struct error *fill_detail(const struct decoder_target *target, Goheapd__Detail *detail)
{
	struct error *err = message_string(known_by(&target->source), &detail->layouts);

	if (!err)
		err = message_string("pclntab", &detail->names);
	if (!err)
		err = message_string("runtime types", &detail->types);
	if (err || target->source.known_by != LAYOUT_BY_TABLE)
		return err;
	detail->has_missing = true;
	return message_text(
	    "DWARF, which -ldflags=-w or -s and strip leave out; a debug file would do",
	    &detail->missing);
}

struct error *decoder_target_detail(const struct decoder_target *target, Goheapd__Detail **ret)
{
	Goheapd__Detail *detail = malloc(sizeof(*detail));
	struct error *err;

	if (!detail)
		return &error_nomem;
	goheapd__detail__init(detail);
	err = fill_detail(target, detail);
	if (err) {
		goheapd__detail__free_unpacked(detail, NULL);
		return err;
	}
	*ret = detail;
	return NULL;
}
