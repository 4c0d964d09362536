/* The strings of labels: each is read once, wherever it lies, and kept as long as the store. */
#ifndef AGENT_GORUNTIME_LABEL_TEXT_H
#define AGENT_GORUNTIME_LABEL_TEXT_H

#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/label_raw.h"

/* All zero is an empty store. */
struct label_texts {
	struct label_text_block *blocks;
	struct addr_map by_addr; /* the text read last at an address */
	uint64_t bytes;          /* of all of them */
};

void label_texts_fini(struct label_texts *texts);

/*
 * The text of a string header. ERROR_FAULT if it cannot be read, ERROR_LIMIT beyond a limit; its
 * size is set in *ret even then.
 */
must_check struct error *label_texts_read(struct label_texts *texts, struct memory *memory,
					  struct raw_text raw, struct label_text *ret);

#endif
