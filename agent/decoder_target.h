/*
 * What the decoder knows of its target before the stop: the process as the keeper describes it,
 * its executable, the layout of its runtime, its modules. Everything that can be known before the
 * stop is known here.
 */
#ifndef AGENT_DECODER_TARGET_H
#define AGENT_DECODER_TARGET_H

#include <stdbool.h>

#include "agent/decoder_layout.h"
#include "agent/decoder_plugins.h"
#include "agent/decoder_tasks.h"
#include "agent/target_files.h"

struct build_info;
struct elf_file;
struct layout;
struct memory;
struct module_table;

struct decoder_target {
	struct frame frame; /* of the keeper's message, with the descriptors of enum target_file */
	const Goheapd__TargetOpened *opened;
	char *exe_name; /* what the link to the executable says */
	struct elf_file *file;
	struct build_info *info;
	uint64_t load_bias;           /* what run-time addresses have over link-time ones */
	struct decoder_layout source; /* where the layout is from */
	struct layout *layout;        /* its own, relocated */
	uint64_t entry;               /* where the program began: AT_ENTRY */
	struct decoder_plugins plugins;
	struct memory *memory; /* of the running process: good for what does not change */
	struct module_table *modules;
};

/* Give *ret back with decoder_target_fini, also after an error. */
must_check struct error *decoder_target_open(struct decoder *decoder, struct decoder_target *ret);
void decoder_target_fini(struct decoder_target *target);

/* Closes all files of the target, and what reads them. Layout and build info stay. */
void decoder_target_let_go(struct decoder_target *target);

/* How to read the target's memory through a descriptor of it. Belongs to the target. */
struct live_memory_files decoder_target_files(const struct decoder_target *target, int mem_fd);

/* A file of the target's; belongs to the target. */
int decoder_target_fd(const struct decoder_target *target, enum target_file file);

/* How an answer about the target begins, from memory of malloc. */
must_check struct error *decoder_target_identity(const struct decoder_target *target,
						 Goheapd__Identity **ret);
must_check struct error *decoder_target_detail(const struct decoder_target *target,
					       Goheapd__Detail **ret);

#endif
