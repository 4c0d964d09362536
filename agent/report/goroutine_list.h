/*
 * Goroutines as messages, with their frames and source lines: first what has to be read of the
 * target, then, without it, the messages.
 */
#ifndef AGENT_REPORT_GOROUTINE_LIST_H
#define AGENT_REPORT_GOROUTINE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct goroutine_table;
struct label_table;
struct module_table;
struct retained;
struct stack_scan;
struct stack_walker;

struct goroutine;
struct goroutine_list;

/* All borrowed for the list's life. */
struct goroutine_list_input {
	const struct goroutine_table *goroutines;
	const struct module_table *modules;
	struct stack_walker *walker;
	const struct stack_scan *scans; /* by goroutine */
	const struct label_table *labels;
	bool want_dead;
};

/* Walks every stack. The caller frees *ret. */
must_check struct error *goroutine_list_read(const struct goroutine_list_input *input,
					     struct goroutine_list **ret);
void goroutine_list_free(struct goroutine_list *list);
DEFINE_FREEP(goroutine_list, goroutine_list_free)

/* Fills result's goroutines, and the frames and traces that they name; the target's memory is not
 * read. */
must_check struct error *goroutine_list_fill(const struct goroutine_list *list,
					     Goheapd__ScanResult *result);

/* What each of them retains, once result has been filled; dead ones retain nothing. */
void goroutine_list_fill_retained(const struct goroutine_list *list,
				  const struct retained *retained, Goheapd__ScanResult *result);

#endif
