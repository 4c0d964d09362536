#include "agent/goruntime/label_text.h"

#include <inttypes.h>
#include <stdlib.h>

/* One text; a list of all, for freeing. */
struct label_text_block {
	struct label_text_block *next;
	uint64_t size;
	uint8_t bytes[];
};

void label_texts_fini(struct label_texts *texts)
{
	struct label_text_block *block = texts->blocks;

	while (block) {
		struct label_text_block *next = block->next;

		free(block);
		block = next;
	}
	addr_map_fini(&texts->by_addr);
	*texts = (struct label_texts){ 0 };
}

static struct error *read_new(struct label_texts *texts, struct memory *memory, struct raw_text raw,
			      struct label_text_block **ret)
{
	struct label_text_block *block;
	struct error *err;

	if (raw.size > LABEL_TEXT_MAX)
		return error_new(ERROR_LIMIT, "a text of %" PRIu64 " bytes", raw.size);
	if (raw.size > LABEL_BYTES_MAX - texts->bytes)
		return error_new(ERROR_LIMIT, "labels of more than %d MiB together",
				 LABEL_BYTES_MAX >> 20);
	block = malloc(sizeof(*block) + raw.size);
	if (!block)
		return &error_nomem;
	block->size = raw.size;
	err = memory_read(memory, raw.addr, block->bytes, raw.size);
	if (!err)
		err = addr_map_put(&texts->by_addr, raw.addr, block);
	if (err) {
		free(block);
		return err;
	}
	block->next = texts->blocks;
	texts->blocks = block;
	texts->bytes += raw.size;
	*ret = block;
	return NULL;
}

struct error *label_texts_read(struct label_texts *texts, struct memory *memory,
			       struct raw_text raw, struct label_text *ret)
{
	struct label_text_block *block;
	struct error *err;

	*ret = (struct label_text){ .bytes = NULL, .size = raw.size };
	if (!raw.size)
		return NULL;
	block = raw.addr ? addr_map_get(&texts->by_addr, raw.addr) : NULL;
	if (!block || block->size != raw.size) {
		err = raw.addr ? read_new(texts, memory, raw, &block)
			       : error_new(ERROR_CORRUPT_TARGET, "a text at nil");
		if (err)
			return err;
	}
	ret->bytes = block->bytes;
	return NULL;
}
