#include "agent/decoder_plugins.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/dwarf_types.h"
#include "agent/binary/elf_file.h"
#include "agent/goruntime/label_raw.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "proto/base/log.h"

/* More cannot be had at once; what is on the stacks of the rest is conservative. */
enum { ADDRS_MAX = LIVE_MEMORY_PLUGINS_MAX };

static struct error *ask(struct decoder *decoder, const struct module_table *modules)
{
	Goheapd__PlanEvent event = GOHEAPD__PLAN_EVENT__INIT;
	Goheapd__PluginSearch search = GOHEAPD__PLUGIN_SEARCH__INIT;
	uint64_t addrs[ADDRS_MAX];

	search.addrs = addrs;
	for (uint32_t i = 1; i < module_table_count(modules) && search.n_addrs < ADDRS_MAX; i++)
		addrs[search.n_addrs++] = module_table_at(modules, i)->text;
	event.body_case = GOHEAPD__PLAN_EVENT__BODY_PLUGIN_SEARCH;
	event.plugin_search = &search;
	return frame_send(decoder->keeper, &frame_plan_event, &event.base, NULL, 0);
}

static struct error *receive(struct decoder *decoder, struct decoder_plugins *plugins)
{
	const Goheapd__TargetEvent *event;
	enum frame_state state;
	struct error *err = frame_read(&decoder->events, &plugins->frame, &state);

	if (err)
		return err;
	if (state != FRAME_COMPLETE)
		return error_new(ERROR_SYSTEM, "the keeper ended in its search for plugins");
	event = (const Goheapd__TargetEvent *)plugins->frame.message;
	if (event->body_case != GOHEAPD__TARGET_EVENT__BODY_PLUGIN_FILES ||
	    event->plugin_files->n_names != plugins->frame.fd_count ||
	    plugins->frame.fd_count > LIVE_MEMORY_PLUGINS_MAX)
		return error_new(ERROR_FORMAT, "event %d of a keeper", event->body_case);
	return NULL;
}

static struct error *take_files(struct decoder_plugins *plugins)
{
	const Goheapd__TargetEvent *event = (const Goheapd__TargetEvent *)plugins->frame.message;

	for (unsigned i = 0; i < plugins->frame.fd_count; i++) {
		const ProtobufCBinaryData *name = &event->plugin_files->names[i];

		plugins->names[i] = strndup((const char *)name->data, name->len);
		if (!plugins->names[i])
			return &error_nomem;
		plugins->files[i] =
		    (struct live_memory_file){ plugins->frame.fds[i], plugins->names[i] };
		plugins->count++;
	}
	return NULL;
}

struct error *decoder_plugins_find(struct decoder *decoder, const struct module_table *modules,
				   struct decoder_plugins *ret)
{
	struct error *err;

	*ret = (struct decoder_plugins){ 0 };
	err = ask(decoder, modules);
	if (!err)
		err = receive(decoder, ret);
	return err ? err : take_files(ret);
}

void decoder_plugins_fini(struct decoder_plugins *plugins)
{
	frame_fini(&plugins->frame);
	for (unsigned i = 0; i < LIVE_MEMORY_PLUGINS_MAX; i++)
		free(plugins->names[i]);
	*plugins = (struct decoder_plugins){ 0 };
}

static bool is_label_form_known(const struct layout *layout)
{
	return label_list_known(layout) || label_map_known(layout);
}

static struct error *complete_from(int fd, struct layout *layout)
{
	struct elf_file *file scoped(elf_file_freep) = NULL;
	struct dwarf_types *types scoped(dwarf_types_freep) = NULL;
	struct error *err = elf_file_open(fd, &file);

	if (!err)
		err = dwarf_types_open(file, &types);
	return err ? err : layout_complete(layout, dwarf_types_source(types));
}

/* A plugin that cannot be read takes nothing away from the rest. */
struct error *decoder_plugins_complete(const struct decoder_plugins *plugins, struct layout *layout)
{
	for (unsigned i = 0; i < plugins->count && !is_label_form_known(layout); i++) {
		struct error *err = complete_from(plugins->files[i].fd, layout);

		if (err && error_code(err) == ERROR_NOMEM)
			return err;
		if (err)
			log_debug("decoder", "a plugin is of no help err=\"%s\"",
				  error_message(err));
		error_free(err);
	}
	return NULL;
}
