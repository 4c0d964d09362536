/*
 * A process as it was read: everything that needs the target's memory, and what marking makes of
 * it. decode.c fills it, scan_report.c turns it into messages.
 */
#ifndef AGENT_REPORT_DECODED_H
#define AGENT_REPORT_DECODED_H

#include <stdint.h>

#include "agent/analysis/label_owner.h"
#include "agent/report/decode.h"
#include "agent/report/label_usage.h"
#include "agent/report/memory_need.h"
#include "agent/report/range_list.h"

struct analysis;
struct goroutine_list;
struct goroutine_table;
struct graph;
struct label_table;
struct maps;
struct mark;
struct module_table;
struct origin_table;
struct page_alloc;
struct resident;
struct root_set;
struct span_table;
struct special_table;
struct stack_scan;
struct stack_walker;

struct decoded {
	const struct decode_request *request;
	struct maps *maps;
	struct resident *resident;
	struct span_table *spans;
	struct page_alloc *pages;
	struct module_table *modules;
	struct goroutine_table *goroutines;
	struct stack_walker *walker;
	struct stack_scan *scans;    /* by goroutine; zero for those that are dead */
	struct goroutine_list *list; /* NULL unless it is wanted */
	struct special_table *specials;
	struct label_table *labels;   /* NULL unless labels or goroutines are wanted */
	struct origin_table *origins; /* NULL unless labels are wanted */
	struct root_set *roots;       /* these three: not in a census */
	struct graph *graph;
	struct label_owners owners; /* empty unless labels are wanted */
	struct mark *mark;
	struct analysis
	    *analysis; /* NULL unless the request asks for one, or keeps what is decoded */
	struct label_usage sets;    /* by label set; empty unless labels are wanted */
	struct memory_need need;    /* zero in a census */
	struct range_list metadata; /* the runtime's own tables; joined */
	struct range_list stacks;   /* of goroutines and Ms; joined */
	uint64_t kernel_rss_bytes;  /* what the kernel says; 0: unknown */
};

void decoded_fini(struct decoded *decoded);

#endif
