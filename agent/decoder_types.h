/*
 * The types and variables of the target's program: from the type index that the agent keeps of its
 * binary, else from DWARF, the executable's own or that of its debug file; what is made anew goes
 * to the agent.
 */
#ifndef AGENT_DECODER_TYPES_H
#define AGENT_DECODER_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/binary/type_index.h"
#include "agent/decoder_tasks.h"
#include "agent/target/live_memory.h"
#include "proto/base/bytes.h"

struct decoder_target;

struct decoder_types {
	struct type_index *index; /* NULL: there is none */
	char *reason;             /* why there is none, or NULL */
	uint64_t bias;            /* what run-time addresses have over the index's */
	bool from_index;          /* no DWARF was read */
	struct bytes bytes;       /* the index borrows them, */
	struct bytes plugin_bytes[LIVE_MEMORY_PLUGINS_MAX]; /* and these of its further parts */
	unsigned plugin_count;
};

/*
 * To be asked once, while the agent waits for the decoder's answer. That there is no DWARF, or none
 * that can be read, is no error. Give *ret back with decoder_types_fini, also after an error.
 */
must_check struct error *decoder_types_read(struct decoder *decoder,
					    const struct decoder_target *target,
					    struct decoder_types *ret);
void decoder_types_fini(struct decoder_types *types);

#endif
