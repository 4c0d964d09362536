#include "agent/report/label_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/analysis/mark.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/label.h"
#include "agent/report/decoded.h"
#include "agent/report/label_grouping.h"
#include "agent/report/label_pairs.h"
#include "agent/report/label_usage.h"
#include "agent/report/message.h"

struct report {
	const struct decoded *decoded;
	const struct label_usage *sets; /* its sets */
	bool detail;
	Goheapd__LabelReport *message;
};

/* ---- messages ---- */

static void fill_memory(const struct party_usage *memory, Goheapd__LabelUsage *message)
{
	message->has_reachable_bytes = message->has_reachable_objects = true;
	message->reachable_bytes = memory->reachable.bytes;
	message->reachable_objects = memory->reachable.objects;
	message->has_exclusive_bytes = message->has_exclusive_objects = true;
	message->exclusive_bytes = memory->exclusive.bytes;
	message->exclusive_objects = memory->exclusive.objects;
	message->has_share_bytes = true;
	message->share_bytes = memory->share_bytes;
	message->has_global_overlap_bytes = message->has_global_overlap_objects = true;
	message->global_overlap_bytes = memory->global_overlap.bytes;
	message->global_overlap_objects = memory->global_overlap.objects;
	message->has_system_overlap_bytes = message->has_system_overlap_objects = true;
	message->system_overlap_bytes = memory->system_overlap.bytes;
	message->system_overlap_objects = memory->system_overlap.objects;
}

static struct error *make_usage(const struct report *r, const struct label_usage *usage,
				uint32_t party, Goheapd__LabelUsage **ret)
{
	const struct party_goroutines *goroutines = &usage->goroutines[party];
	Goheapd__LabelUsage *message = malloc(sizeof(*message));

	if (!message)
		return &error_nomem;
	goheapd__label_usage__init(message);
	message->goroutines = goroutines->count;
	message->stack_bytes = goroutines->stack_bytes;
	message->has_parked_goroutines = r->detail;
	message->parked_goroutines = goroutines->parked;
	if (usage->memory)
		fill_memory(&usage->memory[party], message);
	*ret = message;
	return NULL;
}

/* ---- the sets ---- */

static struct error *add_set(const struct report *r, uint32_t set)
{
	Goheapd__LabelReport *report = r->message;
	struct error *err = message_reserve((void ***)&report->sets, report->n_sets);
	Goheapd__LabelSet *message;

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__label_set__init(message);
	report->sets[report->n_sets++] = message;
	err = label_pairs_fill(label_table_at(r->decoded->labels, set), &message->labels,
			       &message->n_labels);
	return err ? err : make_usage(r, r->sets, set, &message->usage);
}

/* A set that only system goroutines have is nobody's. */
static struct error *fill_sets(const struct report *r)
{
	uint32_t count = label_table_count(r->decoded->labels);
	struct error *err = NULL;

	for (uint32_t i = 0; i < count && !err; i++)
		if (r->sets->goroutines[i].count)
			err = add_set(r, i);
	if (!err)
		err = make_usage(r, r->sets, count, &r->message->unlabelled);
	return err ? err : make_usage(r, r->sets, count + 1, &r->message->system);
}

static struct error *fill_global(const struct report *r)
{
	Goheapd__GlobalUsage *message = malloc(sizeof(*message));
	const struct party_usage *memory;

	if (!message)
		return &error_nomem;
	goheapd__global_usage__init(message);
	r->message->global = message;
	if (!r->sets->memory)
		return NULL;
	memory = &r->sets->memory[r->sets->party_count - 1];
	message->has_reachable_bytes = message->has_reachable_objects = true;
	message->reachable_bytes = memory->reachable.bytes;
	message->reachable_objects = memory->reachable.objects;
	message->has_exclusive_bytes = message->has_exclusive_objects = true;
	message->exclusive_bytes = memory->exclusive.bytes;
	message->exclusive_objects = memory->exclusive.objects;
	message->has_share_bytes = true;
	message->share_bytes = memory->share_bytes;
	return NULL;
}

static struct error *fill_status(const struct report *r)
{
	const struct label_table *labels = r->decoded->labels;
	Goheapd__LabelStatus *status = malloc(sizeof(*status));

	if (!status)
		return &error_nomem;
	goheapd__label_status__init(status);
	r->message->status = status;
	status->decoded = label_table_status(labels, LABEL_DECODED);
	status->no_labels = label_table_status(labels, LABEL_NONE);
	status->unsupported_runtime = label_table_status(labels, LABEL_UNSUPPORTED);
	status->g_object_missing = label_table_status(labels, LABEL_G_MISSING);
	status->labels_object_missing = label_table_status(labels, LABEL_OBJECT_MISSING);
	status->label_array_missing = label_table_status(labels, LABEL_ARRAY_MISSING);
	status->string_missing = label_table_status(labels, LABEL_TEXT_MISSING);
	status->malformed = label_table_status(labels, LABEL_MALFORMED);
	return NULL;
}

/* ---- selection and groups ---- */

/*
 * The share of a party that is made of whole label sets is the sum of theirs: an object is divided
 * among label sets, whatever else one asks for.
 */
static struct error *sum_shares(const struct report *r, struct label_usage *usage)
{
	const struct goroutine_table *goroutines = r->decoded->goroutines;
	bool *given scoped(freep) = calloc(r->sets->party_count, sizeof(*given));

	if (!given)
		return &error_nomem;
	if (!usage->memory)
		return NULL;
	for (uint32_t party = 0; party < usage->party_count - 2; party++)
		usage->memory[party].share_bytes = 0;
	for (uint32_t i = 0; i < goroutine_table_count(goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(goroutines, i);
		uint32_t set = r->sets->party_of[i];

		if (!goroutine_is_alive(g) || g->system || given[set])
			continue;
		given[set] = true;
		usage->memory[usage->party_of[i]].share_bytes += r->sets->memory[set].share_bytes;
	}
	return NULL;
}

static struct error *fill_selection(const struct report *r)
{
	const struct decoded *d = r->decoded;
	struct label_usage usage = { 0 };
	struct error *err = label_usage_init_selection(&usage, d);

	if (!err)
		err = label_usage_count(&usage, d);
	if (!err)
		err = sum_shares(r, &usage);
	if (!err)
		err = make_usage(r, &usage, 0, &r->message->selection);
	label_usage_fini(&usage);
	return err;
}

static struct error *add_group(const struct report *r, const struct label_usage *usage,
			       uint32_t party, const struct label_text *value)
{
	Goheapd__LabelReport *report = r->message;
	struct error *err = message_reserve((void ***)&report->groups, report->n_groups);
	Goheapd__LabelGroup *message;

	if (err)
		return err;
	message = malloc(sizeof(*message));
	if (!message)
		return &error_nomem;
	goheapd__label_group__init(message);
	report->groups[report->n_groups++] = message;
	message->has_value = value != NULL;
	if (value)
		err = message_bytes(value->bytes, value->size, &message->value);
	return err ? err : make_usage(r, usage, party, &message->usage);
}

static int by_share(const void *a, const void *b)
{
	const Goheapd__LabelUsage *left = (*(Goheapd__LabelGroup *const *)a)->usage;
	const Goheapd__LabelUsage *right = (*(Goheapd__LabelGroup *const *)b)->usage;

	if (left->share_bytes != right->share_bytes)
		return left->share_bytes < right->share_bytes ? 1 : -1;
	return (left->goroutines < right->goroutines) - (left->goroutines > right->goroutines);
}

static struct error *list_groups(const struct report *r, const struct label_grouping *grouping,
				 const struct label_usage *usage)
{
	struct error *err = NULL;

	for (uint32_t group = 0; group < grouping->count && !err; group++)
		err = add_group(r, usage, group, group ? &grouping->values[group] : NULL);
	if (!err)
		qsort(r->message->groups, r->message->n_groups, sizeof(*r->message->groups),
		      by_share);
	return err;
}

static struct error *count_groups(const struct report *r, const struct label_grouping *grouping,
				  struct label_usage *usage)
{
	const struct decoded *d = r->decoded;
	struct error *err = label_usage_init_groups(usage, d, grouping);

	if (!err)
		err = label_usage_count(usage, d);
	return err || !grouping->by_label ? err : sum_shares(r, usage);
}

static struct error *fill_groups(const struct report *r)
{
	struct label_grouping grouping;
	struct label_usage usage = { 0 };
	struct error *err =
	    label_grouping_init(&grouping, r->decoded, r->decoded->request->group_by);

	if (err)
		return err;
	err = count_groups(r, &grouping, &usage);
	if (!err)
		err = list_groups(r, &grouping, &usage);
	label_usage_fini(&usage);
	label_grouping_fini(&grouping);
	return err;
}

static struct error *fill(struct report *r)
{
	const struct decode_request *request = r->decoded->request;
	struct error *err = fill_status(r);

	if (!err)
		err = fill_sets(r);
	if (!err)
		err = fill_global(r);
	if (!err && request->selection.count)
		err = fill_selection(r);
	if (!err && request->has_group_by)
		err = fill_groups(r);
	return err;
}

struct error *label_report_fill(const struct decoded *decoded, bool detail,
				Goheapd__ScanResult *result)
{
	struct report report = { .decoded = decoded, .sets = &decoded->sets, .detail = detail };
	struct error *err;

	result->labels = malloc(sizeof(*result->labels));
	if (!result->labels)
		return &error_nomem;
	goheapd__label_report__init(result->labels);
	report.message = result->labels;
	err = fill(&report);
	return err ? error_context(err, "labels") : NULL;
}

/* ---- what does not add up ---- */

static struct error *warn_of_failures(const struct label_table *labels, Goheapd__ScanInfo *scan)
{
	uint64_t failed = 0;

	for (enum label_status status = LABEL_UNSUPPORTED; status < LABEL_STATUS_COUNT; status++)
		failed += label_table_status(labels, status);
	if (!failed)
		return NULL;
	return message_warn(scan, "labels_incomplete",
			    "the labels of %" PRIu64
			    " goroutines could not be read: these are among the unlabelled",
			    failed);
}

static struct error *check_shares(const struct decoded *d, Goheapd__ScanInfo *scan)
{
	uint64_t sum = 0, live;

	if (!d->sets.memory)
		return NULL;
	live = mark_totals(d->mark)->live_bytes;
	for (uint32_t party = 0; party < d->sets.party_count; party++)
		sum += d->sets.memory[party].share_bytes;
	if (sum == live)
		return NULL;
	return message_warn(scan, "shares_differ",
			    "the shares sum to %" PRIu64 " bytes, but %" PRIu64 " are live", sum,
			    live);
}

struct error *label_report_warn(const struct decoded *decoded, Goheapd__ScanInfo *scan)
{
	struct error *err = warn_of_failures(decoded->labels, scan);

	return err ? err : check_shares(decoded, scan);
}
