/*
 * Messages of an agent that was taken over, as far as the wire lets them through, rendered in every
 * form.
 */
#include "daemon/label_query.h"
#include "daemon/render.h"
#include "daemon/render_diff.h"
#include "daemon/scan_check.h"
#include "proto/wire/check.h"
#include "tests/fuzz/fuzz.h"

typedef void renderer(struct text *text, const struct scan_view *view);

static renderer *const renderers[] = {
	render_json_memusage,       render_text_memusage,        render_json_goroutines,
	render_text_goroutines,     render_json_mappings,        render_text_mappings,
	render_prometheus_memusage, render_openmetrics_memusage,
};

static const struct metric_label_key keys[] = {
	{ (char *)(uintptr_t) "tenant", (char *)(uintptr_t) "label_tenant" },
	{ (char *)(uintptr_t) "job", (char *)(uintptr_t) "label_job" },
};
static const struct metric_settings settings = { keys, 2, 3 };

/* label=tenant=acme, by=job, detail=1 */
static void ask_everything(struct label_query *query)
{
	static char selector[] = "tenant=acme", key[] = "job";

	error_free(label_query_select(
	    query, (ProtobufCBinaryData){ sizeof(selector) - 1, (uint8_t *)selector }));
	error_free(
	    label_query_group(query, (ProtobufCBinaryData){ sizeof(key) - 1, (uint8_t *)key }));
	query->detail = true;
}

/* NULL: it goes no further. */
static Goheapd__ScanResult *take_in(const uint8_t *data, size_t size)
{
	struct error *err = wire_check(&goheapd__scan_result__descriptor, data, size, 1 << 20);
	Goheapd__ScanResult *result = err ? NULL : goheapd__scan_result__unpack(NULL, size, data);

	if (result)
		err = scan_check(result);
	if (!err)
		return result;
	error_free(err);
	if (result)
		goheapd__scan_result__free_unpacked(result, NULL);
	return NULL;
}

/* A renderer of objects has the part that it renders, checked against some question. */
static void render_objects(const Goheapd__ScanResult *result, const Goheapd__Analysis *analysis,
			   renderer *const both[2])
{
	const struct scan_view view = {
		.result = result, .id = "0", .analysis = analysis, .goes_on = true
	};
	struct error *err = scan_check_analysis(result, analysis);

	for (size_t i = 0; !err && i < 2; i++) {
		struct text text;

		text_init(&text);
		both[i](&text, &view);
		error_free(text_finish(&text));
		text_fini(&text);
	}
	error_free(err);
}

static void ask_objects(const Goheapd__ScanResult *result)
{
	Goheapd__HistogramQuery histogram = GOHEAPD__HISTOGRAM_QUERY__INIT;
	Goheapd__ObjectsQuery objects = GOHEAPD__OBJECTS_QUERY__INIT;
	Goheapd__ObjectQuery object = GOHEAPD__OBJECT_QUERY__INIT;
	Goheapd__DominatorsQuery dominators = GOHEAPD__DOMINATORS_QUERY__INIT;
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;

	histogram.retained = histogram.garbage = object.contents = true;
	objects.limit = dominators.limit = 1000;
	object.address = result->object ? result->object->address : 0;
	analysis.histogram = &histogram;
	render_objects(result, &analysis,
		       (renderer *[]){ render_json_histogram, render_text_histogram });
	analysis.histogram = NULL;
	analysis.objects = &objects;
	render_objects(result, &analysis,
		       (renderer *[]){ render_json_objects, render_text_objects });
	analysis.objects = NULL;
	analysis.object = &object;
	render_objects(result, &analysis, (renderer *[]){ render_json_object, render_text_object });
	analysis.object = NULL;
	analysis.dominators = &dominators;
	render_objects(result, &analysis,
		       (renderer *[]){ render_json_dominators, render_text_dominators });
}

/* The chains by themselves, and their change to themselves. */
static void ask_chains(const Goheapd__ScanResult *result)
{
	static void (*const differences[])(struct text * text,
					   const struct diff_question *question) = {
		render_json_diff, render_text_diff, render_pprof_diff
	};
	Goheapd__ProfileQuery profile = GOHEAPD__PROFILE_QUERY__INIT;
	Goheapd__HistogramQuery histogram = GOHEAPD__HISTOGRAM_QUERY__INIT;
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	const struct diff_scan scan = { .view = { .result = result, .id = "0" },
					.objects = result };
	const struct diff_question question = { scan, scan, &profile };
	struct error *err;

	profile.max_depth = 64;
	profile.max_samples = 100;
	profile.labels = true;
	analysis.profile = &profile;
	render_objects(result, &analysis,
		       (renderer *[]){ render_pprof_profile, render_text_profile });
	analysis.histogram = &histogram;
	err = scan_check_analysis(result, &analysis);
	for (size_t i = 0; !err && i < sizeof(differences) / sizeof(*differences); i++) {
		struct text text;

		text_init(&text);
		differences[i](&text, &question);
		error_free(text_finish(&text));
		text_fini(&text);
	}
	error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Goheapd__ScanResult *result = take_in(data, size);
	struct label_query query = { 0 };
	struct scan_view view = { .id = "0", .dead = true, .labels = &query, .metrics = &settings };

	if (!result)
		return 0;
	ask_everything(&query);
	view.result = result;
	for (size_t i = 0; i < sizeof(renderers) / sizeof(*renderers); i++) {
		struct text text;

		text_init(&text);
		renderers[i](&text, &view);
		error_free(text_finish(&text));
		text_fini(&text);
	}
	ask_objects(result);
	ask_chains(result);
	goheapd__scan_result__free_unpacked(result, NULL);
	return 0;
}
