#include "agent/decoder_plugin_types.h"

#include <string.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/elf_symbols.h"
#include "agent/binary/index.h"
#include "agent/binary/type_index.h"
#include "agent/decoder_target.h"
#include "agent/decoder_types.h"
#include "agent/goruntime/module.h"
#include "agent/target/maps.h"
#include "proto/base/log.h"

_Static_assert((int)TYPE_INDEX_PARTS_MAX > (int)LIVE_MEMORY_PLUGINS_MAX, "all have a part");

enum { PAGE = 4096 };

struct plugin {
	const struct decoder_target *target;
	const struct module *module;
	struct elf_file *file;
	uint64_t bias; /* what run-time addresses have over link-time ones */
};

/* Where the file says that what is mapped there lies, less where it does. */
static bool find_bias(const struct mapping *mapping, struct plugin *plugin)
{
	for (uint32_t i = 0; i < elf_file_segment_count(plugin->file); i++) {
		const struct elf_segment *segment = elf_file_segment(plugin->file, i);
		uint64_t begin = segment->offset & ~(uint64_t)(PAGE - 1);

		if (!segment->executable || mapping->offset < begin ||
		    mapping->offset - segment->offset + PAGE > segment->file_size + PAGE)
			continue;
		plugin->bias = mapping->start - (segment->addr + mapping->offset - segment->offset);
		return true;
	}
	return false;
}

/* The module whose code is mapped from the file of that name. */
static bool find_module(const struct maps *maps, const char *name, struct plugin *plugin)
{
	const struct module_table *modules = plugin->target->modules;

	for (uint32_t i = 1; i < module_table_count(modules); i++) {
		const struct mapping *mapping;

		plugin->module = module_table_at(modules, i);
		mapping = maps_find(maps, plugin->module->text);
		if (mapping && !strcmp(mapping->name, name))
			return find_bias(mapping, plugin);
	}
	return false;
}

static struct error *add_types(const struct plugin *plugin, uint64_t shift,
			       struct decoder_types *types)
{
	struct bytes *bytes = &types->plugin_bytes[types->plugin_count];
	const struct type_index_files files = {
		.executable = plugin->file,
		.descriptors = plugin->module->types - plugin->bias,
		.descriptors_end = plugin->module->etypes - plugin->bias,
	};
	struct error *err;

	if (!types->index || !elf_file_has_dwarf(plugin->file))
		return NULL;
	bytes_init(bytes, INDEX_TYPES_SIZE_MAX);
	types->plugin_count++;
	err = type_index_build(&files, bytes);
	return err ? err : type_index_add(types->index, bytes->data, bytes->size, shift);
}

static struct error *read_plugin(const struct decoder_target *target, const struct maps *maps,
				 const struct live_memory_file *from, struct decoder_types *types,
				 struct elf_symbols *symbols)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct plugin plugin = { .target = target };
	struct error *err = elf_file_open(from->fd, &file);
	uint64_t shift;

	plugin.file = file;
	if (err || !find_module(maps, from->name, &plugin))
		return err;
	shift = plugin.bias - target->load_bias;
	err = elf_symbols_add(symbols, file, shift);
	return err ? err : add_types(&plugin, shift, types);
}

struct error *decoder_plugin_types_read(const struct decoder_target *target,
					struct decoder_types *types, struct elf_symbols *symbols)
{
	struct maps *maps scoped(maps_freep) = NULL;
	struct error *err = NULL;

	if (target->plugins.count)
		err = maps_read(decoder_target_fd(target, TARGET_FILE_MAPS), &maps);
	for (unsigned i = 0; i < target->plugins.count && !err; i++) {
		err = read_plugin(target, maps, &target->plugins.files[i], types, symbols);
		if (!err || error_code(err) == ERROR_NOMEM)
			continue;
		log_debug("decoder", "a plugin has no types err=\"%s\"", error_message(err));
		error_free(err);
		err = NULL;
	}
	return err;
}
