#include "agent/analysis/pair_list.h"

#include <stdbool.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 << 10, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static struct pages take_pages(struct pages *pages)
{
	struct pages taken = *pages;

	*pages = (struct pages){ .data = NULL };
	return taken;
}

void pair_list_init(struct pair_list *list, struct budget *budget)
{
	*list = (struct pair_list){ .budget = budget };
}

void pair_list_fini(struct pair_list *list)
{
	pages_fini(&list->pages);
	list->pairs = NULL;
	list->count = 0;
}

static struct error *resize(struct pair_list *list, uint64_t capacity)
{
	struct pages resized;
	struct error *err = pages_init(&resized, list->budget, capacity * sizeof(uint64_t));

	if (err)
		return err;
	if (list->count)
		memcpy(resized.data, list->pairs, list->count * sizeof(uint64_t));
	pages_fini(&list->pages);
	list->pages = resized;
	list->pairs = resized.data;
	return NULL;
}

static uint64_t capacity_of(const struct pair_list *list)
{
	return list->pages.size / sizeof(uint64_t);
}

struct error *pair_list_add(struct pair_list *list, uint32_t first, uint32_t second)
{
	uint64_t pair = (uint64_t)first << 32 | second;
	uint64_t *seen =
	    &list->filter[(pair * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PAIR_FILTER_SIZE];
	struct error *err;

	if (*seen == pair + 1)
		return NULL;
	*seen = pair + 1;
	if (list->count == capacity_of(list)) {
		err = resize(list, list->count ? 2 * list->count : FIRST_CAPACITY);
		if (err)
			return err;
	}
	list->pairs[list->count++] = pair;
	return NULL;
}

struct error *pair_list_join(struct pair_list *list, struct pair_list *other)
{
	struct error *err;

	if (!list->count) {
		pages_fini(&list->pages);
		list->pages = take_pages(&other->pages);
		list->pairs = list->pages.data;
		list->count = other->count;
		pair_list_fini(other);
		return NULL;
	}
	if (list->count + other->count > capacity_of(list)) {
		err = resize(list, list->count + other->count);
		if (err)
			return err;
	}
	if (other->count)
		memcpy(list->pairs + list->count, other->pairs, other->count * sizeof(uint64_t));
	list->count += other->count;
	pair_list_fini(other);
	return NULL;
}

/* One pass of a radix sort, which keeps the order of equals; false if all digits are the same. */
static bool sort_by_digit(const uint64_t *from, uint64_t *to, uint64_t count, unsigned shift)
{
	uint64_t places[DIGITS] = { 0 }, place = 0;

	for (uint64_t i = 0; i < count; i++)
		places[from[i] >> shift & (DIGITS - 1)]++;
	if (places[from[0] >> shift & (DIGITS - 1)] == count)
		return false;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		uint64_t with_digit = places[digit];

		places[digit] = place;
		place += with_digit;
	}
	for (uint64_t i = 0; i < count; i++)
		to[places[from[i] >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

static void drop_repetitions(struct pair_list *list)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; i < list->count; i++)
		if (!i || list->pairs[i] != list->pairs[i - 1])
			list->pairs[kept++] = list->pairs[i];
	list->count = kept;
}

/* By the bits from shift on. */
static struct error *sort_from(struct pair_list *list, unsigned shift)
{
	struct pages other, swap;
	struct error *err;

	if (!list->count)
		return NULL;
	pages_trim(&list->pages, list->count * sizeof(uint64_t));
	err = pages_init(&other, list->budget, list->pages.size);
	if (err)
		return err;
	for (; shift < 64; shift += DIGIT_BITS) {
		if (!sort_by_digit(list->pairs, other.data, list->count, shift))
			continue;
		swap = list->pages;
		list->pages = other;
		other = swap;
		list->pairs = list->pages.data;
	}
	pages_fini(&other);
	return NULL;
}

struct error *pair_list_sort(struct pair_list *list)
{
	struct error *err = sort_from(list, 0);

	if (err)
		return err;
	drop_repetitions(list);
	pages_trim(&list->pages, list->count * sizeof(uint64_t));
	return NULL;
}

struct error *pair_list_sort_by_first(struct pair_list *list)
{
	return sort_from(list, 32);
}
