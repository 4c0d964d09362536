/* Bits in arrays of 64-bit words, bit i being bit i % 64 of word i / 64. */
#ifndef AGENT_GORUNTIME_BITMAP_H
#define AGENT_GORUNTIME_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

enum { BITMAP_WORD_BITS = 64 };

static inline uint64_t bitmap_words(uint64_t bit_count)
{
	return bit_count / BITMAP_WORD_BITS + (bit_count % BITMAP_WORD_BITS != 0);
}

/* The lowest count bits, of 0 to 64. */
static inline uint64_t bitmap_low_mask(uint64_t count)
{
	return count >= BITMAP_WORD_BITS ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline bool bitmap_get(const uint64_t *bits, uint64_t index)
{
	return bits[index / BITMAP_WORD_BITS] >> index % BITMAP_WORD_BITS & 1;
}

static inline void bitmap_set(uint64_t *bits, uint64_t index)
{
	bits[index / BITMAP_WORD_BITS] |= UINT64_C(1) << index % BITMAP_WORD_BITS;
}

/* The count (1 to 64) bits from index on; no word beyond the last of them is touched. */
static inline uint64_t bitmap_load(const uint64_t *bits, uint64_t index, unsigned count)
{
	unsigned shift = index % BITMAP_WORD_BITS;
	uint64_t value = bits[index / BITMAP_WORD_BITS] >> shift;

	if (shift + count > BITMAP_WORD_BITS)
		value |= bits[index / BITMAP_WORD_BITS + 1] << (BITMAP_WORD_BITS - shift);
	return value & bitmap_low_mask(count);
}

/* Sets, beside those already set, the bits of value (count of them, 1 to 64) from index on. */
static inline void bitmap_or(uint64_t *bits, uint64_t index, unsigned count, uint64_t value)
{
	unsigned shift = index % BITMAP_WORD_BITS;

	bits[index / BITMAP_WORD_BITS] |= value << shift;
	if (shift + count > BITMAP_WORD_BITS)
		bits[index / BITMAP_WORD_BITS + 1] |= value >> (BITMAP_WORD_BITS - shift);
}

/* Sets in to, beside those already set, what is set in count bits of from. */
static inline void bitmap_or_range(uint64_t *to, uint64_t to_index, const uint64_t *from,
				   uint64_t from_index, uint64_t count)
{
	while (count) {
		unsigned part = count < BITMAP_WORD_BITS ? (unsigned)count : BITMAP_WORD_BITS;

		bitmap_or(to, to_index, part, bitmap_load(from, from_index, part));
		to_index += part;
		from_index += part;
		count -= part;
	}
}

/* How many of count bits from index on are set. */
static inline uint64_t bitmap_count(const uint64_t *bits, uint64_t index, uint64_t count)
{
	uint64_t total = 0;

	while (count) {
		unsigned part = count < BITMAP_WORD_BITS ? (unsigned)count : BITMAP_WORD_BITS;

		total += (uint64_t)__builtin_popcountll(bitmap_load(bits, index, part));
		index += part;
		count -= part;
	}
	return total;
}

static inline void bitmap_clear_range(uint64_t *bits, uint64_t index, uint64_t count)
{
	while (count) {
		unsigned shift = index % BITMAP_WORD_BITS;
		uint64_t part = BITMAP_WORD_BITS - shift < count ? BITMAP_WORD_BITS - shift : count;

		bits[index / BITMAP_WORD_BITS] &= ~(bitmap_low_mask(part) << shift);
		index += part;
		count -= part;
	}
}

/*
 * Repeats the period bits from start on until total bits from there are filled. The bits after the
 * first period must be clear.
 */
static inline void bitmap_repeat(uint64_t *bits, uint64_t start, uint64_t period, uint64_t total)
{
	for (uint64_t done = period; done < total;) {
		uint64_t part = done < total - done ? done : total - done;

		/* Whole periods, so that what was repeated already can be the pattern. */
		bitmap_or_range(bits, start + done, bits, start, part);
		done += part;
	}
}

#endif
