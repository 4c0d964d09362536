/*
 * Messages from a side that was taken over: the first byte chooses the kind, the rest is what came.
 * What passes the check must decode within the memory that the kind allows, or not at all.
 */
#include <stdlib.h>

#include "proto/wire/check.h"
#include "proto/wire/frame.h"
#include "tests/fuzz/fuzz.h"

static const struct frame_kind *const kinds[] = {
	&frame_request,      &frame_answer,     &frame_keeper_order,  &frame_keeper_event,
	&frame_target_event, &frame_plan_event, &frame_decoder_order, &frame_decoder_event,
};

/* Each allocation begins with its size. */
enum { SIZE_ROOM = 16 };

struct ledger {
	uint64_t used, peak;
};

static void *count_alloc(void *data, size_t size)
{
	struct ledger *ledger = data;
	char *block = malloc(SIZE_ROOM + size);

	if (!block)
		return NULL;
	*(size_t *)block = size;
	ledger->used += size;
	if (ledger->used > ledger->peak)
		ledger->peak = ledger->used;
	return block + SIZE_ROOM;
}

static void count_free(void *data, void *pointer)
{
	struct ledger *ledger = data;
	char *block = (char *)pointer - SIZE_ROOM;

	if (!pointer)
		return;
	ledger->used -= *(size_t *)block;
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* the decoder's notes while it works: some fields of each message around the innermost */
	enum { NOTES = 64 << 10 };
	const struct frame_kind *kind;
	struct ledger ledger = { 0 };
	ProtobufCAllocator allocator = { count_alloc, count_free, &ledger };
	ProtobufCMessage *message;
	struct error *err;

	if (!size)
		return 0;
	kind = kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))];
	err = wire_check(kind->descriptor, data + 1, size - 1, kind->memory_max);
	if (err) {
		error_free(err);
		return 0;
	}
	message = protobuf_c_message_unpack(kind->descriptor, &allocator, size - 1, data + 1);
	if (ledger.peak > kind->memory_max + NOTES)
		abort();
	if (message)
		protobuf_c_message_free_unpacked(message, &allocator);
	if (ledger.used)
		abort();
	return 0;
}
