/*
 * Whether memory is short, for the machine or for the control group that the agent and its decoders
 * live in: little is available, or tasks stand still for want of it (PSI). What is kept for later
 * then has to go first.
 */
#ifndef AGENT_PRESSURE_H
#define AGENT_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/procfs.h"

enum {
	/* Parts of the machine's memory, or of the group's limit, below which too little is left.
	 */
	PRESSURE_LEAST_SHARE = 20,
	/* Percent of the time between two looks in which some task stood still for memory. */
	PRESSURE_STALL_PERCENT = 20,
	PRESSURE_REASON_SIZE = 160,
};

/* Time that tasks stood still, as the kernel has counted it at the last look. */
struct pressure_stall {
	uint64_t total_us;
	bool known;
};

struct pressure {
	const struct procfs *procfs; /* borrowed */
	struct pressure_stall machine, group;
	uint64_t looked_us; /* 0: never */
};

void pressure_init(struct pressure *pressure, const struct procfs *procfs);

/*
 * Looks, and compares with the look before. false: there is enough, or nothing can be told; else
 * reason is a sentence.
 */
bool pressure_look(struct pressure *pressure, uint64_t now_us, char reason[PRESSURE_REASON_SIZE]);

/* MemTotal; 0: not known. */
uint64_t pressure_machine_bytes(const struct procfs *procfs);

#endif
