/* Ps: the runtime's processors, each of which caches spans, pages and a tiny block. */
#ifndef AGENT_GORUNTIME_PROCESSOR_H
#define AGENT_GORUNTIME_PROCESSOR_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct layout;

/* Addresses of the Ps in runtime.allp, idle ones included; the caller frees *ret with free(). */
must_check struct error *processor_list(struct memory *memory, const struct layout *layout,
					taddr **ret, uint32_t *ret_count);

#endif
