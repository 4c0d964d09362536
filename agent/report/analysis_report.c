#include "agent/report/analysis_report.h"

#include "agent/report/analysed.h"
#include "agent/report/dominator_list.h"
#include "agent/report/global_list.h"
#include "agent/report/histogram.h"
#include "agent/report/object_detail.h"
#include "agent/report/object_list.h"
#include "agent/report/reference_profile.h"

bool analysis_wants_walk(const Goheapd__Analysis *query)
{
	return query->profile || query->histogram || query->objects || query->object ||
	       query->dominators || query->label_types;
}

bool analysis_wants_names(const Goheapd__Analysis *query)
{
	return analysis_wants_walk(query) || query->has_globals;
}

bool analysis_wants_chains(const Goheapd__Analysis *query)
{
	return query->profile || query->object;
}

bool analysis_wants_objects(const Goheapd__Analysis *query)
{
	return query->object || (query->profile && query->profile->retained);
}

bool analysis_wants_retained(const Goheapd__Analysis *query)
{
	return (query->profile && query->profile->retained) ||
	       (query->histogram && query->histogram->retained) ||
	       (query->objects && query->objects->retained) || query->object || query->dominators ||
	       query->goroutine_retained || query->has_globals;
}

struct error *analysis_report_fill(const struct analysed *analysed, const Goheapd__Analysis *query,
				   Goheapd__ScanResult *result)
{
	struct error *err = NULL;

	if (query->profile)
		err = reference_profile_fill(analysed, query->profile, result);
	if (!err && query->histogram)
		err = histogram_fill(analysed, query->histogram, result);
	if (!err && query->objects)
		err = object_list_fill(analysed, query->objects, result);
	if (!err && query->object)
		err = object_detail_fill(analysed, query->object, result);
	if (!err && query->dominators)
		err = dominator_list_fill(analysed, query->dominators, result);
	if (!err && query->has_globals)
		err = global_list_fill(analysed->retained, query->globals, &result->globals,
				       &result->n_globals);
	return err;
}
