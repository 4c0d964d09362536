/*
 * Modules: the main program and its plugins, as the chain of runtime.moduledata from
 * runtime.firstmoduledata tells. Each has a pclntab (copied from the target once), data and bss
 * with their pointer masks, and a range of type descriptors.
 */
#ifndef AGENT_GORUNTIME_MODULE_H
#define AGENT_GORUNTIME_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/pclntab.h"
#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;
struct root_sink;

struct module {
	taddr moduledata;
	taddr text, etext;
	taddr noptrdata, enoptrdata, data, edata;
	taddr bss, ebss, noptrbss, enoptrbss;
	taddr types, etypes;
	taddr rodata; /* base of stack objects' masks; 0 before go1.18 */
	taddr gofunc; /* base of funcdata offsets; 0 before go1.18 */
	struct pclntab
	    *pclntab; /* NULL: a plugin's that cannot be read without touching the target */
	uint8_t *pclntab_bytes;
};

struct module_table;

/* Follows next from runtime.firstmoduledata, leaving out modules marked bad. */
must_check struct error *module_table_read(struct memory *memory, const struct layout *layout,
					   struct module_table **ret);
void module_table_free(struct module_table *table);
DEFINE_FREEP(module_table, module_table_free)

uint32_t module_table_count(const struct module_table *table);
const struct module *module_table_at(const struct module_table *table, uint32_t index);

/*
 * The module whose text holds pc and whose pclntab is known, or NULL; whose type descriptors hold
 * addr, or NULL.
 */
const struct module *module_table_find_text(const struct module_table *table, taddr pc);
const struct module *module_table_find_types(const struct module_table *table, taddr addr);

/* Hands every pointer word of every module's data and bss to the sink. */
must_check struct error *module_table_roots(const struct module_table *table, struct memory *memory,
					    const struct layout *layout, struct root_sink *sink);

#endif
