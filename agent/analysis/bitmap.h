/*
 * Bits numbered from 0 in 64-bit words. The atomic ones serve words that several threads write.
 */
#ifndef AGENT_ANALYSIS_BITMAP_H
#define AGENT_ANALYSIS_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t bitmap_words(uint64_t bit_count)
{
	return bit_count / 64 + (bit_count % 64 != 0);
}

static inline bool bitmap_get(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static inline void bitmap_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* The lowest count bits, for count from 0 to 64. */
static inline uint64_t bitmap_low(uint64_t count)
{
	return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

static inline void bitmap_clear_range(uint64_t *bits, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t in_word = start % 64;
		uint64_t count = 64 - in_word < end - start ? 64 - in_word : end - start;

		bits[start / 64] &= ~(bitmap_low(count) << in_word);
		start += count;
	}
}

/* The (up to 64) bits from start on, of which count are wanted. */
static inline uint64_t bitmap_load(const uint64_t *bits, uint64_t start, uint64_t count)
{
	uint64_t shift = start % 64;
	uint64_t word = bits[start / 64] >> shift;

	if (shift && count > 64 - shift)
		word |= bits[start / 64 + 1] << (64 - shift);
	return word & bitmap_low(count);
}

static inline uint64_t bitmap_count_range(const uint64_t *bits, uint64_t start, uint64_t end)
{
	uint64_t total = 0;

	while (start < end) {
		uint64_t count = end - start < 64 ? end - start : 64;

		total += (uint64_t)__builtin_popcountll(bitmap_load(bits, start, count));
		start += count;
	}
	return total;
}

/* Sets the bits of word (up to 64 of them) at start; neighbours may be written meanwhile. */
static inline void bitmap_or_atomic(uint64_t *bits, uint64_t start, uint64_t word)
{
	uint64_t shift = start % 64;

	if (!word)
		return;
	__atomic_fetch_or(&bits[start / 64], word << shift, __ATOMIC_RELAXED);
	if (shift && word >> (64 - shift))
		__atomic_fetch_or(&bits[start / 64 + 1], word >> (64 - shift), __ATOMIC_RELAXED);
}

#endif
