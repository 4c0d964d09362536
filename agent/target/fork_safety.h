/*
 * Whether a snapshot may be taken of a process without harming it, and what a stop would cost.
 * Nothing is stopped.
 */
#ifndef AGENT_TARGET_FORK_SAFETY_H
#define AGENT_TARGET_FORK_SAFETY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/error.h"

struct process;

enum { FORK_SAFETY_REASON_SIZE = 256 };

struct fork_safety {
	bool stoppable;                       /* else no scan can be tried at all */
	bool safe;                            /* mode fork may be used at all */
	bool preferred;                       /* mode auto should use it */
	char reason[FORK_SAFETY_REASON_SIZE]; /* a sentence, if not safe or not preferred */
	uint64_t copy_bytes;      /* what a snapshot could take: copies of all that is private */
	uint64_t huge_page_bytes; /* AnonHugePages, which writes during a snapshot split */
	uint64_t fork_pause_us, stop_pause_us; /* predictions, of what was asked for */
	uint64_t census_pause_us;              /* and of a census under a stop */
};

struct fork_safety_policy {
	bool can_suspend_filters; /* PTRACE_O_SUSPEND_SECCOMP works */
	uint64_t huge_page_bytes; /* which do not change soon */
};

/* AnonHugePages. The kernel walks all of the process's page tables for it, which takes a while. */
uint64_t fork_safety_huge_page_bytes(const struct process *process);

must_check struct error *fork_safety_judge(const struct process *process,
					   const struct fork_safety_policy *policy,
					   struct fork_safety *ret);

/* The scan that there is to be, as far as its pause depends on it. */
struct fork_safety_scan {
	uint64_t max_pause_us; /* 0: no limit */
	bool census;           /* no object is read */
	uint64_t stacks_us;    /* that all stacks take to be read */
	uint64_t span_count;   /* of the heap, as the decoder says; 0: not known */
	/*
	 * The part of max_pause, from 0 to 1, that a stop may take to spare a target of nothing but
	 * huge pages; in proportion where fewer are. 0: they do not count.
	 */
	double huge_page_weight;
};

/* Fills in the predictions, and what mode auto prefers in view of them. */
void fork_safety_predict(const struct process *process, const struct fork_safety_scan *scan,
			 struct fork_safety *verdict);

#endif
