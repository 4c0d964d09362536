/*
 * Having the target collect a dead child: one of its threads is stopped for a moment and made to
 * call wait4. For snapshot.c.
 */
#ifndef AGENT_TARGET_COLLECT_H
#define AGENT_TARGET_COLLECT_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/base/error.h"

struct injector;

/*
 * NULL too if the target is gone, or has collected the child by itself. *ret_pause_us is how long
 * threads of the target were stopped, one at a time.
 */
must_check struct error *collect_child(struct injector *injector, pid_t namespace_child,
				       uint64_t *ret_pause_us);

#endif
