/*
 * The memory of a snapshot, read through a descriptor of its /proc/PID/mem. Access was checked
 * when that was opened, so a reader needs no right of its own.
 */
#ifndef AGENT_TARGET_SNAPSHOT_MEMORY_H
#define AGENT_TARGET_SNAPSHOT_MEMORY_H

#include "agent/target/memory.h"

/* The descriptor is borrowed. ERROR_GONE from reads once the snapshot is dead. */
must_check struct error *snapshot_memory_open(int mem_fd, struct memory **ret);

#endif
