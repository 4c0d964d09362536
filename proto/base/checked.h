/*
 * Arithmetic on numbers from outside. Each returns false, and leaves *ret alone, when the result
 * does not fit.
 */
#ifndef PROTO_BASE_CHECKED_H
#define PROTO_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline __attribute__((warn_unused_result)) bool checked_add(uint64_t a, uint64_t b,
								   uint64_t *ret)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}

static inline __attribute__((warn_unused_result)) bool checked_mul(uint64_t a, uint64_t b,
								   uint64_t *ret)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}

/* The sum of numbers with signs or, where it does not fit, the nearest number that does. */
static inline int64_t bounded_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

#endif
