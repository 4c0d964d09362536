/* GC programs: the bits that the mask has room for in two bytes, and the program. */
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gc_program.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_memory.h"

enum { HEADER_SIZE = 2 };

static const taddr program = 0x10000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_memory *fake;
	uint64_t mask[UINT16_MAX / BITMAP_WORD_BITS + 1];
	uint64_t bits;

	if (size <= HEADER_SIZE)
		return 0;
	bits = (uint64_t)(data[0] | data[1] << 8);
	fake = fake_memory_new();
	fake_memory_map(fake, program, size - HEADER_SIZE);
	memcpy(fake_memory_bytes(fake, program, size - HEADER_SIZE), data + HEADER_SIZE,
	       size - HEADER_SIZE);
	error_free(gc_program_expand(fake_memory_memory(fake), program, bits, mask));
	fake_memory_free(fake);
	return 0;
}
