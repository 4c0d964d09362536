/*
 * Goroutines as messages, with their frames and source lines. They are made while the target's
 * memory can still be read, for that is where the stacks are.
 */
#ifndef AGENT_REPORT_GOROUTINE_LIST_H
#define AGENT_REPORT_GOROUTINE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct goroutine_table;
struct module_table;
struct stack_scan;
struct stack_walker;

/* Frames of one goroutine beyond this many are left out, the outermost ones. */
enum { GOROUTINE_LIST_FRAMES_MAX = 512 };

struct goroutine_list_input {
	const struct goroutine_table *goroutines;
	const struct module_table *modules;
	struct stack_walker *walker;
	const struct stack_scan *scans; /* by goroutine */
	bool want_dead;
};

/* Is there anything to say of a goroutine but that it once was? */
struct goroutine;
bool goroutine_is_alive(const struct goroutine *g);

/* Fills result->goroutines. */
must_check struct error *goroutine_list_fill(const struct goroutine_list_input *input,
					     Goheapd__ScanResult *result);

#endif
