#include "agent/goruntime/layout_table.h"

#include <string.h>

#include "agent/goruntime/global_find.h"
#include "agent/goruntime/go_version.h"
#include "agent/goruntime/layout.h"

#include "agent/goruntime/layout_table_amd64.inc"
#include "agent/goruntime/layout_table_arm64.inc"

static const struct {
	const char *arch;
	const struct layout_table_entry *entries;
	size_t count;
} tables[] = {
	{ "amd64", table_amd64, sizeof(table_amd64) / sizeof(table_amd64[0]) },
	{ "arm64", table_arm64, sizeof(table_arm64) / sizeof(table_arm64[0]) },
};

enum { EXPERIMENT_SIZE = 64 };

/* Copies the next name of a list and steps over it; false at the end, and for what is no name. */
static bool next_experiment(const char **list, char name[EXPERIMENT_SIZE])
{
	size_t length = strcspn(*list, ", ");

	if (!length || length >= EXPERIMENT_SIZE)
		return false;
	memcpy(name, *list, length);
	name[length] = '\0';
	*list += length + ((*list)[length] == ',');
	return true;
}

/* Whether a version has all experiments that the other has. */
static bool has_all(const char *version, const char *other)
{
	const char *list = go_version_experiments(other);
	char name[EXPERIMENT_SIZE];

	while (next_experiment(&list, name))
		if (!go_version_has_experiment(version, name))
			return false;
	return true;
}

static unsigned experiment_count(const char *version)
{
	const char *list = go_version_experiments(version);
	char name[EXPERIMENT_SIZE];
	unsigned count = 0;

	while (next_experiment(&list, name))
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
static bool is_nearer(const char *wanted, const char *a, const char *b)
{
	unsigned minor_a = go_version_minor(a), minor_b = go_version_minor(b);
	unsigned far_a = distance(go_version_minor(wanted), minor_a);
	unsigned far_b = distance(go_version_minor(wanted), minor_b);
	unsigned count_a = experiment_count(a), count_b = experiment_count(b);

	if (far_a != far_b)
		return far_a < far_b;
	if (count_a != count_b)
		return count_a > count_b;
	if (minor_a != minor_b)
		return minor_a > minor_b;
	return distance(go_version_patch(wanted), go_version_patch(a)) <
	       distance(go_version_patch(wanted), go_version_patch(b));
}

static bool is_same(const char *a, const char *b)
{
	return go_version_minor(a) == go_version_minor(b) &&
	       go_version_patch(a) == go_version_patch(b) && has_all(a, b) && has_all(b, a);
}

enum layout_match layout_table_find(const char *arch, const char *version,
				    const struct layout_table_entry **ret)
{
	size_t count;
	const struct layout_table_entry *entries = layout_table_entries(arch, &count);
	const struct layout_table_entry *found = NULL;

	if (!go_version_minor(version))
		return LAYOUT_MATCH_NONE;
	for (size_t i = 0; i < count; i++) {
		/* An entry with an experiment that the program lacks is another runtime. */
		if (has_all(version, entries[i].version) &&
		    (!found || is_nearer(version, entries[i].version, found->version)))
			found = &entries[i];
	}
	if (!found)
		return LAYOUT_MATCH_NONE;
	*ret = found;
	return is_same(version, found->version) ? LAYOUT_MATCH_EXACT : LAYOUT_MATCH_NEAREST;
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
