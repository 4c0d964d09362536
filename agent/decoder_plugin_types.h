/*
 * What the files of plugins say of variables and types: their symbols join the program's, and so
 * does what their DWARF tells, which is parsed anew for each scan. Where the program itself has no
 * DWARF that of its plugins stays unread.
 */
#ifndef AGENT_DECODER_PLUGIN_TYPES_H
#define AGENT_DECODER_PLUGIN_TYPES_H

#include "proto/base/error.h"

struct decoder_target;
struct decoder_types;
struct elf_symbols;

/* A plugin that cannot be read takes nothing away from the rest. */
must_check struct error *decoder_plugin_types_read(const struct decoder_target *target,
						   struct decoder_types *types,
						   struct elf_symbols *symbols);

#endif
