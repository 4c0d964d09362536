#include "agent/goruntime/go_version.h"

#include <ctype.h>
#include <string.h>

enum { MINOR_MAX = 999 };

unsigned go_version_minor(const char *text)
{
	static const char prefix[] = "go1.";
	const char *at = strstr(text, prefix);
	unsigned minor = 0;

	if (!at)
		return 0;
	for (at += sizeof(prefix) - 1; isdigit((unsigned char)*at) && minor <= MINOR_MAX; at++)
		minor = minor * 10 + (unsigned)(*at - '0');
	return minor <= MINOR_MAX ? minor : 0;
}

/* cmd/link appends " X:", since go1.26 "-X:", and the names, with commas between them. */
bool go_version_has_experiment(const char *text, const char *name)
{
	const char *at = strstr(text, "X:");
	size_t size = strlen(name);

	for (at = at ? at + 2 : NULL; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, size) && (!at[size] || at[size] == ',' || at[size] == ' '))
			return true;
	}
	return false;
}
