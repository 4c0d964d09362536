/*
 * Plugins of a target: their files, in which stands what the target has not touched of them, and
 * what their DWARF says of types that the executable does not have.
 */
#ifndef AGENT_DECODER_PLUGINS_H
#define AGENT_DECODER_PLUGINS_H

#include "agent/decoder_tasks.h"
#include "agent/target/live_memory.h"

struct layout;
struct module_table;

struct decoder_plugins {
	struct frame frame; /* of the keeper's message, with a descriptor for each file */
	struct live_memory_file files[LIVE_MEMORY_PLUGINS_MAX];
	char *names[LIVE_MEMORY_PLUGINS_MAX];
	unsigned count;
};

/*
 * Asks the keeper for the files of all modules but the first, which is the executable. Give *ret
 * back with decoder_plugins_fini, also after an error.
 */
must_check struct error *decoder_plugins_find(struct decoder *decoder,
					      const struct module_table *modules,
					      struct decoder_plugins *ret);
void decoder_plugins_fini(struct decoder_plugins *plugins);

/* Looks for the form of labels in the plugins where the layout does not know it. */
must_check struct error *decoder_plugins_complete(const struct decoder_plugins *plugins,
						  struct layout *layout);

#endif
