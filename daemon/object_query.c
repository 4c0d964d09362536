#include "daemon/object_query.h"

#include "daemon/params.h"
#include "daemon/profile_query.h"
#include "daemon/render.h"

struct error *object_query_histogram(struct object_query *query, const struct params *params)
{
	struct error *err = params_check_depth(params);

	goheapd__analysis__init(&query->analysis);
	goheapd__histogram_query__init(&query->histogram);
	query->histogram.has_retained = query->histogram.has_garbage = true;
	query->histogram.retained = params->retained;
	query->histogram.garbage = params->garbage;
	query->analysis.histogram = &query->histogram;
	return err;
}

struct error *object_query_objects(struct object_query *query, const struct params *params)
{
	struct error *err = params_check_depth(params);

	goheapd__analysis__init(&query->analysis);
	goheapd__objects_query__init(&query->objects);
	query->objects.has_type = params->has_type;
	query->objects.type = params->type;
	query->objects.has_min_bytes = params->min_bytes > 0;
	query->objects.min_bytes = params->min_bytes;
	query->objects.limit = params->limit;
	query->objects.has_retained = true;
	query->objects.retained = params->retained;
	query->analysis.objects = &query->objects;
	return err ? err : page_cursor_to_objects(&params->cursor, &query->objects);
}

struct error *object_query_object(struct object_query *query, const struct params *params)
{
	struct error *err = params_check_depth(params);

	goheapd__analysis__init(&query->analysis);
	goheapd__object_query__init(&query->object);
	query->object.address = params->object;
	query->object.has_contents = true;
	query->object.contents = params->contents;
	query->analysis.object = &query->object;
	return err;
}

/* Goroutines themselves are no part of it. */
struct error *object_query_goroutines(struct object_query *query, const struct params *params)
{
	goheapd__analysis__init(&query->analysis);
	query->analysis.has_goroutine_retained = query->analysis.goroutine_retained =
	    params->retained;
	return params->retained ? params_check_depth(params) : NULL;
}

/* A census has none of what detail=1 asks of objects. */
static bool wants_detail(const struct params *params)
{
	return params->labels.detail && params->depth == GOHEAPD__DEPTH__DEPTH_FULL;
}

/* Of what types the memory of label sets is, which takes a walk of all that is live. */
struct error *object_query_memusage(struct object_query *query, const struct params *params)
{
	goheapd__analysis__init(&query->analysis);
	query->analysis.has_label_types = query->analysis.label_types = wants_detail(params);
	return NULL;
}

/* The page has no room for types, and tells the largest globals. */
struct error *object_query_memusage_text(struct object_query *query, const struct params *params)
{
	goheapd__analysis__init(&query->analysis);
	query->analysis.has_globals = wants_detail(params);
	query->analysis.globals = query->analysis.has_globals ? RENDER_GLOBALS_MAX : 0;
	return NULL;
}

bool object_query_is_empty(const struct object_query *query)
{
	const Goheapd__Analysis *asked = &query->analysis;

	return !asked->profile && !asked->histogram && !asked->objects && !asked->object &&
	       !asked->dominators && !asked->goroutine_retained && !asked->label_types &&
	       !asked->has_globals;
}

struct error *object_query_dominators(struct object_query *query, const struct params *params)
{
	struct error *err = params_check_depth(params);

	goheapd__analysis__init(&query->analysis);
	goheapd__dominators_query__init(&query->dominators);
	query->dominators.has_object = params->has_object;
	query->dominators.object = params->object;
	query->dominators.limit = params->limit;
	query->analysis.dominators = &query->dominators;
	return err ? err : page_cursor_to_dominators(&params->cursor, &query->dominators);
}

struct error *object_query_profile(struct object_query *query, const struct params *params)
{
	struct error *err = profile_query(params, &query->profile);

	if (err)
		return err;
	goheapd__analysis__init(&query->analysis);
	query->analysis.profile = &query->profile;
	return NULL;
}

/*
 * As many chains as may be: one that is folded in one scan and not in the other would look like a
 * change. They are folded when they have been compared.
 */
struct error *object_query_diff(struct object_query *query, const struct params *params)
{
	struct error *err = profile_query(params, &query->diff.profile);

	if (err)
		return err;
	query->diff.profile.max_samples = PARAMS_SAMPLES_MAX;
	query->diff.profile.min_bytes = 0;
	goheapd__histogram_query__init(&query->diff.histogram);
	goheapd__analysis__init(&query->analysis);
	query->analysis.profile = &query->diff.profile;
	query->analysis.histogram = &query->diff.histogram;
	return NULL;
}
