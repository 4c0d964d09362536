#include "agent/goruntime/go_version.h"

#include <ctype.h>
#include <string.h>

enum { NUMBER_MAX = 999 };

/* The number at *at, which is moved behind it; 0 for one that no version has. */
static unsigned take_number(const char **at)
{
	unsigned number = 0;

	for (; isdigit((unsigned char)**at); (*at)++)
		if (number <= NUMBER_MAX)
			number = number * 10 + (unsigned)(**at - '0');
	return number <= NUMBER_MAX ? number : 0;
}

/* Behind "go1.", NULL if the text has none. */
static const char *numbers_of(const char *text)
{
	static const char prefix[] = "go1.";
	const char *at = strstr(text, prefix);

	return at ? at + sizeof(prefix) - 1 : NULL;
}

unsigned go_version_minor(const char *text)
{
	const char *at = numbers_of(text);

	return at ? take_number(&at) : 0;
}

unsigned go_version_patch(const char *text)
{
	const char *at = numbers_of(text);

	if (!at || !take_number(&at) || *at != '.')
		return 0;
	at++;
	return take_number(&at);
}

/* cmd/link appends " X:", since go1.26 "-X:", and the names, with commas between them. */
const char *go_version_experiments(const char *text)
{
	const char *at = strstr(text, "X:");

	return at ? at + 2 : "";
}

bool go_version_has_experiment(const char *text, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = go_version_experiments(text); *at; at += *at == ',') {
		size_t length = strcspn(at, ", ");

		if (length == size && !strncmp(at, name, size))
			return true;
		at += length;
		if (*at != ',')
			break;
	}
	return false;
}
