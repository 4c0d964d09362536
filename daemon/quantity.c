#include "daemon/quantity.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "proto/base/checked.h"

/* Reads digits from *pos and steps over them; false if there are none or too many. */
static bool take_digits(const char **pos, uint64_t *ret)
{
	const char *p = *pos;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (!checked_mul(value, 10, &value) ||
		    !checked_add(value, (uint64_t)(*p - '0'), &value))
			return false;
	}
	*pos = p;
	*ret = value;
	return true;
}

bool quantity_u64(const char *text, uint64_t *ret)
{
	uint64_t value;

	if (!take_digits(&text, &value) || *text)
		return false;
	*ret = value;
	return true;
}

bool quantity_seconds(const char *text, uint64_t *ret_us)
{
	uint64_t whole, unit = 100000, decimals = 0, us;

	if (!take_digits(&text, &whole))
		return false;
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			decimals += unit * (uint64_t)(*text - '0');
	}
	if (*text || !checked_mul(whole, 1000000, &us) || !checked_add(us, decimals, &us))
		return false;
	*ret_us = us;
	return true;
}

bool quantity_duration(const char *text, uint64_t *ret_us)
{
	static const struct {
		char name;
		unsigned seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t size = strlen(text);
	uint64_t factor = 0, us; /* 0: no unit is named */
	char number[32];

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (size && text[size - 1] == units[i].name)
			factor = units[i].seconds;
	}
	size -= factor != 0;
	if (size >= sizeof(number))
		return false;
	memcpy(number, text, size);
	number[size] = '\0';
	if (!quantity_seconds(number, &us) || !checked_mul(us, factor ? factor : 1, &us))
		return false;
	*ret_us = us;
	return true;
}

bool quantity_address(const char *text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t value = 0;
	const char *pos = text + 2;

	if (strncasecmp(text, "0x", 2) != 0 || !*pos || strlen(pos) > 16)
		return false;
	for (; *pos; pos++) {
		const char *digit = strchr(digits, tolower((unsigned char)*pos));

		if (!digit)
			return false;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	*ret = value;
	return true;
}
