/*
 * What /proc says of a process, as messages.
 */
#ifndef AGENT_FACTS_H
#define AGENT_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct process;
struct procfs;

/* As process_read, but ERROR_NO_PROCESS for a thread that does not lead its process, too. */
must_check struct error *facts_read(const struct procfs *procfs, pid_t pid, struct process **ret);

/*
 * When a process began, since the epoch. By the boot time of one procfs, so that a process keeps
 * its time when the clock is set.
 */
uint64_t facts_start_time_ns(const struct procfs *procfs, uint64_t start_ticks);

/*
 * Whether it is a snapshot, whoever took it: traced, never ran a program, and will not signal its
 * parent at its end. A Go program makes no such child.
 */
bool facts_is_snapshot(const struct process *process);

/* Both from memory of malloc; the caller frees them with their free_unpacked. */
must_check struct error *facts_process(const struct process *process, Goheapd__Process **ret);

/* *ret is NULL for a process in no group. others_bytes is what of it is not the process's own. */
must_check struct error *facts_cgroup(const struct process *process, Goheapd__Cgroup **ret);

#endif
