/*
 * For tests: a scan of a Go process that stands still, as the decoder does it, from its memory to
 * the marks, with everything that was read kept to look at.
 */
#ifndef TESTS_SUPPORT_LIVE_SCAN_H
#define TESTS_SUPPORT_LIVE_SCAN_H

#include <stdint.h>

#include "agent/report/self_check.h"
#include "proto/base/error.h"

struct goroutine_table;
struct graph;
struct live_target;
struct mark;
struct module_table;
struct page_alloc;
struct root_set;
struct span_table;
struct special_table;
struct stack_walker;
struct stopped_thread;

struct live_scan {
	const struct module_table *modules;
	struct span_table *spans;
	struct goroutine_table *goroutines;
	struct stack_walker *walker;
	struct page_alloc *pages;
	struct special_table *specials;
	struct root_set *roots;
	struct graph *graph;
	struct mark *mark;
	uint32_t conservative_stacks, skipped_stacks;
	const char *phase; /* as scan.gc_phase would say */
	char self_check[SELF_CHECK_SIZE];
};

/*
 * Modules and threads are borrowed for the scan's life. The caller calls live_scan_fini on success.
 */
must_check struct error *live_scan_init(const struct live_target *target,
					const struct module_table *modules,
					const struct stopped_thread *threads, uint32_t thread_count,
					struct live_scan *ret);
void live_scan_fini(struct live_scan *scan);

/* Hands all roots there are to a sink. */
struct root_sink;
must_check struct error *live_scan_roots(const struct live_target *target,
					 const struct live_scan *scan, struct root_sink *sink);

struct live_count {
	uint64_t live, present;
};

/* Objects in slots of so many bytes. */
struct live_count live_scan_count(const struct live_scan *scan, uint64_t elem_size);

#endif
