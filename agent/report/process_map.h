/*
 * The address space of a Go process, every region with what it is for: what mappings, modules,
 * threads, the runtime's tables and the heap's own books say of it, the better informed last.
 */
#ifndef AGENT_REPORT_PROCESS_MAP_H
#define AGENT_REPORT_PROCESS_MAP_H

#include <stdint.h>

#include "agent/report/address_map.h"
#include "proto/base/error.h"

struct goroutine_table;
struct maps;
struct module_table;
struct page_alloc;
struct range_list;
struct span_table;
struct stopped_thread;

struct process_map_input {
	const struct maps *maps;
	const char *exe; /* as maps names it */
	const struct module_table *modules;
	const struct goroutine_table *goroutines;
	const struct stopped_thread *threads;
	uint32_t thread_count;
	const struct range_list *metadata; /* the runtime's own tables */
	const struct span_table *spans;
	const struct page_alloc *pages;
};

/* The caller gives *ret back with address_map_fini. */
must_check struct error *process_map_init(const struct process_map_input *input,
					  struct address_map *ret);

#endif
