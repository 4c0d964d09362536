#include "daemon/profile_query.h"

#include <string.h>

static bool is_module(ProtobufCBinaryData key)
{
	static const char name[] = "@module";

	return key.len == sizeof(name) - 1 && memcmp(key.data, name, key.len) == 0;
}

struct error *profile_query(const struct params *params, Goheapd__ProfileQuery *ret)
{
	struct error *err = params_check_depth(params);

	if (err)
		return err;
	if (params->labels.has_by && !is_module(params->labels.by))
		return error_new(ERROR_BAD_REQUEST,
				 "by: chains begin at their roots, or with by=@module at the Go "
				 "modules of these; labels=1 tells label sets apart");
	goheapd__profile_query__init(ret);
	ret->max_depth = params->max_depth;
	ret->max_samples = params->max_samples;
	ret->min_bytes = params->min_bytes;
	ret->has_by_module = ret->has_labels = ret->has_retained = true;
	ret->by_module = params->labels.has_by;
	ret->labels = params->with_labels;
	ret->retained = params->retained;
	return NULL;
}
