#include "daemon/route.h"

#include <string.h>

#include "daemon/answer.h"
#include "daemon/answer_diff.h"
#include "daemon/answer_objects.h"
#include "daemon/answer_profile.h"
#include "daemon/params.h"

enum { METHODS_READ = METHOD_GET | METHOD_HEAD };

const struct route routes[] = {
	{ METHODS_READ, "healthz", ROLE_ANYBODY, 0, { FORMAT_TEXT }, false, answer_healthz },
	{ METHODS_READ, "readyz", ROLE_ANYBODY, 0, { FORMAT_TEXT }, false, answer_readyz },
	{ METHODS_READ,
	  "pids",
	  ROLE_CALLER,
	  PARAM_FORMAT | PARAM_TIMEOUT,
	  { FORMAT_JSON, FORMAT_TEXT },
	  false,
	  answer_pids },
	{ METHODS_READ,
	  "pid/*",
	  ROLE_TARGET,
	  PARAM_FORMAT | PARAM_TIMEOUT | PARAM_START,
	  { FORMAT_JSON, FORMAT_TEXT },
	  false,
	  answer_overview },
	{ METHODS_READ,
	  "pid/*/memusage",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAMS_LABELS,
	  { FORMAT_JSON, FORMAT_TEXT, FORMAT_PROMETHEUS, FORMAT_OPENMETRICS },
	  true,
	  answer_memusage },
	{ METHODS_READ,
	  "pid/*/goroutines",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_DEAD | PARAM_RETAINED,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_goroutines },
	{ METHODS_READ,
	  "pid/*/mappings",
	  ROLE_TARGET,
	  PARAMS_SCAN,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_mappings },
	{ METHODS_READ,
	  "pid/*/scans",
	  ROLE_KEPT,
	  PARAM_FORMAT | PARAM_TIMEOUT | PARAM_START,
	  { FORMAT_JSON, FORMAT_TEXT },
	  false,
	  answer_scans },
	{ METHODS_READ,
	  "pid/*/histogram",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_TOP | PARAM_RETAINED | PARAM_GARBAGE,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_histogram },
	{ METHODS_READ,
	  "pid/*/objects",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_TYPE | PARAM_MIN_BYTES | PARAM_LIMIT | PARAM_CURSOR | PARAM_RETAINED,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_objects },
	{ METHODS_READ,
	  "pid/*/object/*",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_CONTENTS,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_object },
	{ METHODS_READ,
	  "pid/*/dominators",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_OBJECT | PARAM_LIMIT | PARAM_CURSOR,
	  { FORMAT_JSON, FORMAT_TEXT },
	  true,
	  answer_dominators },
	{ METHODS_READ,
	  "pid/*/profile",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAMS_PROFILE,
	  { FORMAT_PPROF },
	  true,
	  answer_profile },
	{ METHODS_READ,
	  "pid/*/debug/pprof",
	  ROLE_TARGET,
	  PARAM_FORMAT | PARAM_TIMEOUT | PARAM_START,
	  { FORMAT_HTML, FORMAT_TEXT },
	  false,
	  answer_pprof_index },
	{ METHODS_READ,
	  "pid/*/debug/pprof/heap",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAMS_PROFILE | PARAMS_GO_PPROF,
	  { FORMAT_PPROF, FORMAT_TEXT },
	  true,
	  answer_pprof_heap },
	{ METHODS_READ,
	  "pid/*/debug/pprof/goroutine",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAM_DEAD | PARAMS_GO_PPROF,
	  { FORMAT_PPROF, FORMAT_TEXT, FORMAT_JSON },
	  true,
	  answer_pprof_goroutine },
	{ METHODS_READ,
	  "pid/*/diff",
	  ROLE_TARGET,
	  PARAMS_SCAN | PARAMS_PROFILE | PARAM_SINCE | PARAM_OVER,
	  { FORMAT_JSON, FORMAT_TEXT, FORMAT_PPROF },
	  true,
	  answer_diff },
	{ 0 },
};

/* Paths of the contract that this version does not have; "**" stands for any rest. */
static const char *const planned[] = {
	"",           "metrics", "sd", "history", "pid/*/threads", "pid/*/leaks", "pid/*/metrics",
	"pid/*/core",
};

/* The next segment of a pattern, of which *pos is stepped behind its slash. */
static size_t pattern_segment(const char **pos, const char **ret)
{
	size_t size = strcspn(*pos, "/");

	*ret = *pos;
	*pos += size + ((*pos)[size] == '/');
	return size;
}

static bool segment_fits(const char *pattern, size_t size, const char *segment, bool is_first)
{
	if (size == 1 && *pattern == '*')
		return *segment != '\0';
	if (is_first && strcmp(segment, "comm") == 0)
		segment = "pid";
	return strlen(segment) == size && memcmp(segment, pattern, size) == 0;
}

static bool path_fits(const char *pattern, const struct uri *uri)
{
	size_t i = 0;

	while (*pattern) {
		const char *segment;
		size_t size = pattern_segment(&pattern, &segment);

		if (size == 2 && memcmp(segment, "**", 2) == 0)
			return true;
		if (i == uri->segment_count ||
		    !segment_fits(segment, size, uri->segments[i], i == 0))
			return false;
		i++;
	}
	return i == uri->segment_count;
}

const struct route *route_find(const struct uri *uri)
{
	for (const struct route *route = routes; route->path; route++) {
		if (path_fits(route->path, uri))
			return route;
	}
	return NULL;
}

const char *route_absence(const struct uri *uri)
{
	if (path_fits("debug/pprof/**", uri))
		return "goheapd has no profile of itself here; those of a process are at "
		       "/pid/N/debug/pprof/heap";
	if (path_fits("pid/*/debug/pprof/**", uri))
		return "goheapd looks at memory, from outside: there are heap and goroutine, and "
		       "no "
		       "other profile of Go's names";
	for (size_t i = 0; i < sizeof(planned) / sizeof(*planned); i++) {
		if (path_fits(planned[i], uri))
			return "this path is not available in this version; there are /pids, "
			       "/pid/N, /pid/N/memusage, /pid/N/profile, /pid/N/goroutines "
			       "and /pid/N/mappings";
	}
	return "there is no such path; start at /pids";
}

bool route_is_for_pprof(const struct uri *uri)
{
	const char *format = uri_param(uri, "format");

	return (format && strcmp(format, "pprof") == 0) || path_fits("debug/pprof/**", uri) ||
	       path_fits("pid/*/debug/pprof/**", uri) || path_fits("pid/*/profile/**", uri);
}
