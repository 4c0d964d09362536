/*
 * A program is a sequence of instructions:
 *
 *   00000000            end
 *   0nnnnnnn            emit n bits, which follow in (n+7)/8 bytes
 *   10000000 n c        repeat the previous n bits c times; n and c are varints
 *   1nnnnnnn c          the same for a small n
 */
#include "agent/goruntime/gc_program.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "proto/base/checked.h"

enum { WINDOW_SIZE = 256, PAGE_SIZE = 4096, VARINT_BYTES_MAX = 10 };

/* The program, read ahead to the end of a window or page; and the bits made so far. */
struct run {
	struct memory *memory;
	taddr next; /* address after the window */
	uint8_t window[WINDOW_SIZE];
	size_t pos, size;
	uint64_t *mask;
	uint64_t made, limit;
};

static struct error *next_byte(struct run *run, uint8_t *ret)
{
	if (run->pos == run->size) {
		size_t room = PAGE_SIZE - run->next % PAGE_SIZE;
		size_t size = room < WINDOW_SIZE ? room : WINDOW_SIZE;
		struct error *err = memory_read_bulk(run->memory, run->next, run->window, size);

		if (err)
			return err;
		run->next += size;
		run->size = size;
		run->pos = 0;
	}
	*ret = run->window[run->pos++];
	return NULL;
}

static struct error *next_varint(struct run *run, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
		uint8_t byte;
		struct error *err = next_byte(run, &byte);

		if (err)
			return err;
		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*ret = value;
			return NULL;
		}
	}
	return error_new(ERROR_FORMAT, "GC program: a number without end");
}

static struct error *too_many_bits(const struct run *run)
{
	return error_new(ERROR_FORMAT, "GC program: more than %" PRIu64 " bits", run->limit);
}

static struct error *emit(struct run *run, unsigned count)
{
	if (count > run->limit - run->made)
		return too_many_bits(run);
	while (count) {
		unsigned part = count < 8 ? count : 8;
		uint8_t byte;
		struct error *err = next_byte(run, &byte);

		if (err)
			return err;
		bitmap_or(run->mask, run->made, part, byte & bitmap_low_mask(part));
		run->made += part;
		count -= part;
	}
	return NULL;
}

/* An instruction that repeats nothing is never made, and would let a program go on for ever. */
static struct error *repeat(struct run *run, uint64_t count, uint64_t times)
{
	uint64_t total;

	if (!count || !times || count > run->made)
		return error_new(ERROR_FORMAT,
				 "GC program: repeats %" PRIu64 " of %" PRIu64 " bits", count,
				 run->made);
	if (!checked_mul(count, times, &total) || total > run->limit - run->made)
		return too_many_bits(run);
	bitmap_repeat(run->mask, run->made - count, count, count + total);
	run->made += total;
	return NULL;
}

static struct error *step(struct run *run, bool *ret_end)
{
	uint8_t instruction;
	uint64_t count, times;
	struct error *err = next_byte(run, &instruction);

	*ret_end = false;
	if (err)
		return err;
	count = instruction & 0x7f;
	if (!(instruction & 0x80)) {
		*ret_end = !count;
		return emit(run, (unsigned)count);
	}
	if (!count)
		err = next_varint(run, &count);
	if (!err)
		err = next_varint(run, &times);
	return err ? err : repeat(run, count, times);
}

struct error *gc_program_expand(struct memory *memory, taddr addr, uint64_t bit_count,
				uint64_t *mask)
{
	struct run run = { .memory = memory, .next = addr, .mask = mask, .limit = bit_count };
	bool end = false;

	memset(mask, 0, bitmap_words(bit_count) * sizeof(*mask));
	while (!end) {
		struct error *err = step(&run, &end);

		if (err)
			return err;
	}
	return NULL;
}
