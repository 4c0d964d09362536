/*
 * The parameters of a request: which there are, which of them a path takes, and their values,
 * checked.
 */
#ifndef DAEMON_PARAMS_H
#define DAEMON_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/label_query.h"
#include "daemon/page_cursor.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct uri;

/* A path's parameters are a sum of these. */
enum {
	PARAM_FORMAT = 1 << 0,
	PARAM_TIMEOUT = 1 << 1,
	PARAM_START = 1 << 2,
	PARAM_MODE = 1 << 3,
	PARAM_DEPTH = 1 << 4,
	PARAM_MAX_AGE = 1 << 5,
	PARAM_MAX_PAUSE = 1 << 6,
	PARAM_DEAD = 1 << 7,
	PARAM_LABEL = 1 << 8,
	PARAM_BY = 1 << 9,
	PARAM_DETAIL = 1 << 10,
	PARAM_MAX_DEPTH = 1 << 11,
	PARAM_MAX_SAMPLES = 1 << 12,
	PARAM_MIN_BYTES = 1 << 13,
	PARAM_SAMPLE = 1 << 14,
	PARAM_WITH_LABELS = 1 << 15, /* labels=1 */
	PARAM_TYPE = 1 << 16,
	PARAM_LIMIT = 1 << 17,
	PARAM_CURSOR = 1 << 18,
	PARAM_TOP = 1 << 19,
	PARAM_RETAINED = 1 << 20,
	PARAM_GARBAGE = 1 << 21,
	PARAM_CONTENTS = 1 << 22,
	PARAM_OBJECT = 1 << 23,
	PARAM_SCAN = 1 << 24,
	PARAM_KEEP = 1 << 25,
	PARAM_DEBUG = 1 << 26,
	PARAM_GC = 1 << 27,
	PARAM_SECONDS = 1 << 28,
	PARAM_SINCE = 1 << 29,
	PARAM_OVER = 1 << 30,

	PARAMS_SCAN = PARAM_FORMAT | PARAM_TIMEOUT | PARAM_START | PARAM_MODE | PARAM_DEPTH |
		      PARAM_MAX_AGE | PARAM_MAX_PAUSE | PARAM_SCAN | PARAM_KEEP,
	PARAMS_LABELS = PARAM_LABEL | PARAM_BY | PARAM_DETAIL,
	PARAMS_PROFILE = PARAM_MAX_DEPTH | PARAM_MAX_SAMPLES | PARAM_MIN_BYTES | PARAM_SAMPLE |
			 PARAM_WITH_LABELS | PARAM_BY,
	PARAMS_GO_PPROF = PARAM_DEBUG | PARAM_GC | PARAM_SECONDS, /* as Go's own paths */
};

/* What keeps a scan for its next page, as it were, unless keep= says more. */
enum { PARAMS_PAGE_KEEP_SECONDS = 300 };

/* Rows of a page, unless limit= says so. */
enum { PARAMS_LIMIT_DEFAULT = 100, PARAMS_LIMIT_MAX = 10000 };

/* Chains of a profile; more than that do not fit into its 4 MiB. */
enum { PARAMS_SAMPLES_MAX = 200000 };

/* Strings and bytes belong to the uri. */
struct params {
	const char *format; /* NULL: not given */
	const char *start;  /* NULL: any */
	const char *scan;   /* id of a kept one; NULL: a new one */
	uint64_t timeout_us, max_age_us, max_pause_us;
	/* How long the scan is kept; a path whose answers go on with it has a time of its own. */
	uint64_t keep_us;
	bool has_keep; /* the asker has said it, and what will be asked is open */
	Goheapd__Mode mode;
	Goheapd__Depth depth;
	bool dead;
	struct label_query labels;
	uint32_t max_depth, max_samples; /* of a profile */
	uint64_t min_bytes;
	bool retained, with_labels;
	unsigned debug;
	const char *since; /* NULL: not given; the id of a kept scan, or a time */
	uint64_t over_us;  /* between two scans whose difference is asked for; 0: it is not */
	/* Of objects. */
	bool has_type;
	ProtobufCBinaryData type;  /* its name exactly */
	uint32_t limit;            /* rows of a page */
	struct page_cursor cursor; /* no numbers: the first page */
	uint64_t top;              /* rows of a histogram; 0: all */
	bool garbage, contents;
	bool has_object;
	uint64_t object; /* an address in it */
};

/*
 * Reads the uri's parameters, of which the path takes accepted; for the others the defaults.
 * ERROR_BAD_REQUEST names the parameter that is unknown or malformed; of labels there are errors of
 * their own (daemon/label_query.h).
 */
must_check struct error *params_read(const struct uri *uri, unsigned accepted, struct params *ret);

/*
 * ERROR_BAD_REQUEST if depth=census was asked for on a path that needs objects, which a census does
 * not look at.
 */
must_check struct error *params_check_depth(const struct params *params);

/* The id of the kept scan that is asked, by scan= or cursor=; NULL: a new one. */
const char *params_scan(const struct params *params);

/* The same values from the command line of goheap. */
must_check struct error *params_set(struct params *params, const char *name, const char *value);
void params_init(struct params *params);

#endif
