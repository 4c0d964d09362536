#include "agent/goruntime/signal_frame.h"

#include <stdlib.h>

#include "proto/base/bytes.h"

enum {
	/* struct ucontext: flags, link, stack {sp, flags, size}, then the registers. */
	CONTEXT_LINK = 8,
	CONTEXT_STACK_SP = 16,
	CONTEXT_STACK_SIZE = 32,
	CONTEXT_REGISTERS = 40,
	REGISTER_SP = 15, /* r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip, ... */
	REGISTER_PC = 16,
	REGISTER_COUNT = 23,
	CONTEXT_SIZE = CONTEXT_REGISTERS + 8 * REGISTER_COUNT,

	SIGNAL_STACK_MAX = 1 << 20, /* Go's have 32 KiB */
};

static bool is_context(const uint8_t *bytes, taddr lo, taddr hi)
{
	return !load_u64le(bytes + CONTEXT_LINK) && load_u64le(bytes + CONTEXT_STACK_SP) == lo &&
	       load_u64le(bytes + CONTEXT_STACK_SIZE) == hi - lo;
}

struct error *signal_frame_find(struct memory *memory, taddr lo, taddr hi, taddr sp,
				bool *ret_found, struct signal_frame *ret)
{
	uint8_t *bytes scoped(freep) = NULL;
	uint64_t size;
	struct error *err;

	*ret_found = false;
	sp = (sp + 7) & ~(taddr)7;
	if (sp < lo || sp >= hi || hi - lo > SIGNAL_STACK_MAX)
		return NULL;
	size = hi - sp;
	bytes = malloc(size);
	if (!bytes)
		return &error_nomem;
	err = memory_read_bulk(memory, sp, bytes, size);
	if (err)
		return err;
	for (uint64_t i = 0; i + CONTEXT_SIZE <= size && !*ret_found; i += 8) {
		const uint8_t *registers = bytes + i + CONTEXT_REGISTERS;

		*ret_found = is_context(bytes + i, lo, hi);
		if (*ret_found)
			*ret = (struct signal_frame){
				.context = sp + i,
				.pc = load_u64le(registers + 8 * REGISTER_PC),
				.sp = load_u64le(registers + 8 * REGISTER_SP),
			};
	}
	return NULL;
}
