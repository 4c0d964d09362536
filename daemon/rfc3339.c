#include "daemon/rfc3339.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

const char *rfc3339_format(uint64_t time_ns, char buffer[RFC3339_SIZE])
{
	time_t seconds = (time_t)(time_ns / NS_PER_SECOND);
	uint32_t ns = (uint32_t)(time_ns % NS_PER_SECOND);
	struct tm tm;
	size_t used;

	gmtime_r(&seconds, &tm); /* 2^64 ns end in the year 2554: always representable */
	used = strftime(buffer, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	if (ns) {
		used += (size_t)snprintf(buffer + used, RFC3339_SIZE - used, ".%09" PRIu32, ns);
		while (buffer[used - 1] == '0')
			used--;
	}
	snprintf(buffer + used, RFC3339_SIZE - used, "Z");
	return buffer;
}

bool rfc3339_is_valid(const char *text)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t i;

	for (i = 0; form[i]; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (form[i] == '0' ? !digit : text[i] != form[i])
			return false;
	}
	if (text[i] == '.') {
		size_t decimals = strspn(text + i + 1, "0123456789");

		if (decimals == 0 || decimals > 9)
			return false;
		i += 1 + decimals;
	}
	return strcmp(text + i, "Z") == 0;
}

bool rfc3339_parse(const char *text, uint64_t *ret_ns)
{
	static const char form[] = "%Y-%m-%dT%H:%M:%S";
	struct tm tm = { 0 };
	uint64_t ns = 0, scale = NS_PER_SECOND;
	const char *rest;
	time_t seconds;

	rest = rfc3339_is_valid(text) ? strptime(text, form, &tm) : NULL;
	if (!rest)
		return false;
	seconds = timegm(&tm);
	for (rest += *rest == '.'; *rest != 'Z'; rest++) {
		scale /= 10;
		ns += (uint64_t)(*rest - '0') * scale;
	}
	if (seconds < 0 || (uint64_t)seconds >= UINT64_MAX / NS_PER_SECOND)
		return false;
	*ret_ns = (uint64_t)seconds * NS_PER_SECOND + ns;
	return true;
}
