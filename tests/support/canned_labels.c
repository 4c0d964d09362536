#include "tests/support/canned_labels.h"

#include <stdbool.h>
#include <string.h>

#include "tests/support/canned.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { SETS = 6, GROUPS = 3, PAIRS_MAX = 2, USAGES = SETS + GROUPS + 3 };

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

/* What the sets hold, in MiB but for the objects: reachable is more than either of the others. */
static const struct content {
	const char *labels[PAIRS_MAX][2];
	unsigned goroutines, stack, exclusive, share, reachable, objects;
} contents[SETS] = {
	{ { { "job", "41" }, { "tenant", "acme" } }, 201, 30, 1201, 1301, 2101, 7100 },
	{ { { "job", "42" }, { "tenant", "acme" } }, 11, 21, 1161, 1471, 1961, 7200 },
	{ { { "tenant", "zeta" } }, 80, 10, 112, 500, 1400, 7300 },
	{ { { "tenant", "" } }, 7, 1, 3, 4, 5, 7400 },
	{ { { "job", "a,\"b\"=\n\\" }, { "tenant", "\xff\x1b[31m" } }, 2, 0, 2, 30, 36, 7500 },
	{ { { "other", "a\xcc\x88" } }, 3, 2, 1, 2, 7, 7600 },
};

static Goheapd__LabelUsage usages[USAGES];

static Goheapd__LabelUsage *usage_at(unsigned index, const struct content *content)
{
	Goheapd__LabelUsage *usage = &usages[index];

	*usage = (Goheapd__LabelUsage)GOHEAPD__LABEL_USAGE__INIT;
	usage->goroutines = content->goroutines;
	usage->stack_bytes = (uint64_t)content->stack << 20;
	usage->has_reachable_bytes = usage->has_reachable_objects = usage->has_exclusive_bytes =
	    usage->has_exclusive_objects = usage->has_share_bytes =
		usage->has_global_overlap_bytes = usage->has_global_overlap_objects =
		    usage->has_system_overlap_bytes = usage->has_system_overlap_objects = true;
	usage->reachable_bytes = (uint64_t)content->reachable << 20;
	usage->reachable_objects = content->objects;
	usage->exclusive_bytes = (uint64_t)content->exclusive << 20;
	usage->exclusive_objects = content->objects - 1;
	usage->share_bytes = (uint64_t)content->share << 20;
	usage->global_overlap_bytes = content->objects + 2;
	usage->global_overlap_objects = content->objects + 3;
	usage->system_overlap_bytes = content->objects + 4;
	usage->system_overlap_objects = content->objects + 5;
	return usage;
}

static Goheapd__LabelSet *set_at(unsigned index)
{
	static Goheapd__LabelSet sets[SETS];
	static Goheapd__LabelPair pairs[SETS][PAIRS_MAX];
	static Goheapd__LabelPair *pointers[SETS][PAIRS_MAX];
	const struct content *content = &contents[index];
	Goheapd__LabelSet *set = &sets[index];

	*set = (Goheapd__LabelSet)GOHEAPD__LABEL_SET__INIT;
	set->labels = pointers[index];
	set->usage = usage_at(index, content);
	for (unsigned i = 0; i < PAIRS_MAX && content->labels[i][0]; i++) {
		Goheapd__LabelPair *pair = &pairs[index][i];

		*pair = (Goheapd__LabelPair)GOHEAPD__LABEL_PAIR__INIT;
		pair->key = bytes(content->labels[i][0]);
		pair->value = bytes(content->labels[i][1]);
		pointers[index][set->n_labels++] = pair;
	}
	return set;
}

static Goheapd__LabelStatus *status(void)
{
	static Goheapd__LabelStatus status = GOHEAPD__LABEL_STATUS__INIT;

	status.decoded = 304;
	status.no_labels = 17895;
	status.unsupported_runtime = 0;
	status.g_object_missing = 0;
	status.labels_object_missing = 1;
	status.label_array_missing = 2;
	status.string_missing = 1;
	status.malformed = 1;
	return &status;
}

static Goheapd__GlobalUsage *global(void)
{
	static Goheapd__GlobalUsage global = GOHEAPD__GLOBAL_USAGE__INIT;

	global.has_reachable_bytes = global.has_reachable_objects = global.has_exclusive_bytes =
	    global.has_exclusive_objects = global.has_share_bytes = true;
	global.reachable_bytes = 2611ull << 20;
	global.reachable_objects = 7800;
	global.exclusive_bytes = 1010ull << 20;
	global.exclusive_objects = 7801;
	global.share_bytes = 1022ull << 20;
	return &global;
}

Goheapd__LabelReport *canned_labels(void)
{
	static const struct content unlabelled = { .goroutines = 17895,
						   .stack = 130,
						   .exclusive = 430,
						   .share = 990,
						   .reachable = 1800,
						   .objects = 7700 };
	static const struct content system = { .goroutines = 5,
					       .stack = 2,
					       .exclusive = 8,
					       .share = 20,
					       .reachable = 40,
					       .objects = 7900 };
	static Goheapd__LabelSet *sets[SETS];
	static Goheapd__LabelReport report;

	report = (Goheapd__LabelReport)GOHEAPD__LABEL_REPORT__INIT;
	for (unsigned i = 0; i < SETS; i++)
		sets[i] = set_at(i);
	report.status = status();
	report.sets = sets;
	report.n_sets = SETS;
	report.unlabelled = usage_at(SETS, &unlabelled);
	report.system = usage_at(SETS + 1, &system);
	report.global = global();
	return &report;
}

void canned_select(Goheapd__LabelReport *report, unsigned goroutines)
{
	static const struct content selected = { .goroutines = 212,
						 .stack = 51,
						 .exclusive = 2400,
						 .share = 2772,
						 .reachable = 3000,
						 .objects = 8000 };
	static const struct content none = { .objects = 1 };

	report->selection = usage_at(SETS + 2, goroutines ? &selected : &none);
	report->selection->goroutines = goroutines;
}

void canned_group(Goheapd__LabelReport *report)
{
	static const struct content groups[GROUPS] = {
		{ { { NULL, "41" } }, 201, 30, 1201, 1301, 2101, 8100 },
		{ { { NULL, "a,\"b\"=\n\\" } }, 2, 0, 2, 3, 6, 8200 },
		{ { { NULL, NULL } }, 17985, 141, 545, 1494, 3207, 8300 },
	};
	static Goheapd__LabelGroup list[GROUPS];
	static Goheapd__LabelGroup *pointers[GROUPS];

	for (unsigned i = 0; i < GROUPS; i++) {
		const char *value = groups[i].labels[0][1];

		list[i] = (Goheapd__LabelGroup)GOHEAPD__LABEL_GROUP__INIT;
		list[i].has_value = value != NULL;
		if (value)
			list[i].value = bytes(value);
		list[i].usage = usage_at(SETS + 3 + i, &groups[i]);
		pointers[i] = &list[i];
	}
	report->groups = pointers;
	report->n_groups = GROUPS;
}

/* Of sets alone the types are known; the last of these has none alone. */
void canned_detail(void)
{
	static Goheapd__TypeRow rows[2], *pointers[2] = { &rows[0], &rows[1] };

	for (unsigned i = 0; i < 2; i++) {
		rows[i] = (Goheapd__TypeRow)GOHEAPD__TYPE_ROW__INIT;
		rows[i].type = bytes(i ? "[]uint8" : "main.Order");
		rows[i].objects = 500 - i;
		rows[i].bytes = 48000 >> i;
	}
	for (unsigned i = 0; i < USAGES; i++) {
		usages[i].has_parked_goroutines = true;
		usages[i].parked_goroutines = usages[i].goroutines / 2;
		usages[i].has_types_known = usages[i].types_known = i < SETS;
		usages[i].top_types = pointers;
		usages[i].n_top_types = i + 1 < SETS ? 2 : 0;
	}
}

void canned_label_census(Goheapd__LabelReport *report)
{
	Goheapd__GlobalUsage *usage = report->global;

	for (unsigned i = 0; i < USAGES; i++) {
		Goheapd__LabelUsage bare = GOHEAPD__LABEL_USAGE__INIT;

		bare.goroutines = usages[i].goroutines;
		bare.stack_bytes = usages[i].stack_bytes;
		usages[i] = bare;
	}
	*usage = (Goheapd__GlobalUsage)GOHEAPD__GLOBAL_USAGE__INIT;
}

void canned_goroutine_labels(Goheapd__ScanResult *result)
{
	static char error[] = "the string of a value is not in memory";

	if (result->n_goroutines < 3)
		return;
	result->goroutines[0]->labels = set_at(4)->labels;
	result->goroutines[0]->n_labels = set_at(4)->n_labels;
	result->goroutines[1]->has_label_error = true;
	result->goroutines[1]->label_error = bytes(error);
	result->goroutines[2]->has_has_no_labels = result->goroutines[2]->has_no_labels = true;
}

void canned_label_growth(Goheapd__LabelReport *report, unsigned growth)
{
	Goheapd__LabelUsage *usage = report->sets[0]->usage;

	usage->goroutines += growth;
	usage->reachable_bytes += (uint64_t)growth << 10;
	usage->exclusive_bytes += (uint64_t)growth << 10;
}
