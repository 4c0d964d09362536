/* Random numbers for tests: the same in every run. */
#ifndef TESTS_SUPPORT_RANDOM_NUMBERS_H
#define TESTS_SUPPORT_RANDOM_NUMBERS_H

#include <stdint.h>

/* The next number below a limit, by xorshift64*; *state begins as any number but 0. */
static inline uint64_t random_number(uint64_t *state, uint64_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * UINT64_C(0x2545f4914f6cdd1d) >> 16) % below;
}

#endif
