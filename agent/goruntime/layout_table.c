#include "agent/goruntime/layout_table.h"

#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/global_find.h"
#include "agent/goruntime/layout.h"

#include "agent/goruntime/layout_table_amd64.inc"
#include "agent/goruntime/layout_table_arm64.inc"

enum { NUMBER_MAX = 10000 };

static const struct {
	const char *arch;
	const struct layout_table_entry *entries;
	size_t count;
} tables[] = {
	{ "amd64", table_amd64, sizeof(table_amd64) / sizeof(table_amd64[0]) },
	{ "arm64", table_arm64, sizeof(table_arm64) / sizeof(table_arm64[0]) },
};

/* "go1.26.11-X:a,b" in its parts. */
struct version {
	unsigned minor, patch;
	const char *experiments; /* "a,b", in the text that was parsed; "" if there are none */
};

static unsigned parse_number(const char **text)
{
	unsigned value = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		if (value < NUMBER_MAX)
			value = 10 * value + (unsigned)(**text - '0');
	return value;
}

/* Release candidates and vendors' additions count as the release they name. */
static bool parse_version(const char *text, struct version *ret)
{
	const char *mark = strstr(text, "X:");

	text = strstr(text, "go1.");
	if (!text)
		return false;
	text += strlen("go1.");
	if (*text < '0' || *text > '9')
		return false;
	ret->minor = parse_number(&text);
	ret->patch = 0;
	if (*text == '.') {
		text++;
		ret->patch = parse_number(&text);
	}
	ret->experiments = mark ? mark + strlen("X:") : "";
	return true;
}

static size_t experiment_length(const char *list)
{
	return strcspn(list, ", ");
}

static const char *next_experiment(const char *list)
{
	list += experiment_length(list);
	return *list == ',' ? list + 1 : "";
}

static bool has_experiment(const char *list, const char *name, size_t length)
{
	for (; *list; list = next_experiment(list))
		if (experiment_length(list) == length && !strncmp(list, name, length))
			return true;
	return false;
}

static bool has_all(const char *list, const char *wanted)
{
	for (; *wanted; wanted = next_experiment(wanted))
		if (!has_experiment(list, wanted, experiment_length(wanted)))
			return false;
	return true;
}

static unsigned experiment_count(const char *list)
{
	unsigned count = 0;

	for (; *list; list = next_experiment(list))
		count++;
	return count;
}

static unsigned distance(unsigned a, unsigned b)
{
	return a > b ? a - b : b - a;
}

/*
 * Whether a is nearer to wanted than b: by version first, then by experiments that they share. In
 * the middle between two versions the newer is nearer.
 */
static bool is_nearer(const struct version *wanted, const struct version *a,
		      const struct version *b)
{
	unsigned minor_a = distance(wanted->minor, a->minor);
	unsigned minor_b = distance(wanted->minor, b->minor);
	unsigned count_a = experiment_count(a->experiments);
	unsigned count_b = experiment_count(b->experiments);

	if (minor_a != minor_b)
		return minor_a < minor_b;
	if (count_a != count_b)
		return count_a > count_b;
	if (a->minor != b->minor)
		return a->minor > b->minor;
	return distance(wanted->patch, a->patch) < distance(wanted->patch, b->patch);
}

static bool is_same(const struct version *a, const struct version *b)
{
	return a->minor == b->minor && a->patch == b->patch &&
	       has_all(a->experiments, b->experiments) && has_all(b->experiments, a->experiments);
}

enum layout_match layout_table_find(const char *arch, const char *text,
				    const struct layout_table_entry **ret)
{
	size_t count;
	const struct layout_table_entry *entries = layout_table_entries(arch, &count);
	const struct layout_table_entry *found = NULL;
	struct version wanted, nearest = { 0 };

	if (!parse_version(text, &wanted))
		return LAYOUT_MATCH_NONE;
	for (size_t i = 0; i < count; i++) {
		struct version version;

		/* An entry with an experiment that the program lacks is another runtime. */
		if (!parse_version(entries[i].version, &version) ||
		    !has_all(wanted.experiments, version.experiments))
			continue;
		if (!found || is_nearer(&wanted, &version, &nearest)) {
			found = &entries[i];
			nearest = version;
		}
	}
	if (!found)
		return LAYOUT_MATCH_NONE;
	*ret = found;
	return is_same(&wanted, &nearest) ? LAYOUT_MATCH_EXACT : LAYOUT_MATCH_NEAREST;
}

const struct layout_table_entry *layout_table_entries(const char *arch, size_t *ret_count)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(tables[i].arch, arch) != 0)
			continue;
		*ret_count = tables[i].count;
		return tables[i].entries;
	}
	*ret_count = 0;
	return NULL;
}
