/*
 * For tests and experiments: a running Go process as it is, without a stop or a snapshot. Good
 * enough to read what does not move: a sleeping program.
 */
#ifndef TESTS_SUPPORT_LIVE_TARGET_H
#define TESTS_SUPPORT_LIVE_TARGET_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct elf_file;
struct layout;

struct live_target {
	int exe_fd;
	struct elf_file *elf;
	struct layout *layout; /* from DWARF, else built in; relocated */
	uint64_t load_bias;
	struct memory *memory; /* over /proc/PID/mem */
};

/* The caller calls live_target_fini on success. */
must_check struct error *live_target_init(pid_t pid, struct live_target *ret);
void live_target_fini(struct live_target *target);

#endif
