/*
 * What has changed from one scan to another, of one process or of two: by type, by reference chain,
 * by label set. All of them are known by their names, so that the programs may be different builds.
 */
#ifndef DAEMON_DIFF_H
#define DAEMON_DIFF_H

#include <stdbool.h>

#include "daemon/chain_tree.h"
#include "daemon/name_sums.h"

struct diff_labels {
	struct chain_labels labels; /* none: goroutines without any */
	int64_t goroutines, reachable_bytes, exclusive_bytes;
	bool has_bytes;
};

/* Lists have what has changed, largest growth first. Bytes are the results'. */
struct diff {
	double seconds; /* from the one to the other; negative if it was the later one */
	int64_t live_bytes, live_objects;
	bool has_slope; /* of one process, and time went by */
	double slope;   /* bytes a second */
	bool has_seconds_to_limit;
	double seconds_to_limit; /* at that slope */
	struct name_sums types;
	int64_t unknown_objects, unknown_bytes;
	struct chain_tree chains; /* all of them, with what has not changed */
	struct diff_labels *labels;
	size_t label_count;
	bool has_labels; /* both scans say */
};

/* One of the two scans; both results are borrowed. */
struct diff_side {
	const Goheapd__ScanResult *scan;    /* identity, scan, heap and what there is of the rest */
	const Goheapd__ScanResult *objects; /* profile and histogram; may be the same */
};

/*
 * The results must have passed scan_check and are needed as long as *ret. Give it back with
 * diff_fini, also after a failure.
 */
must_check struct error *diff_init(struct diff *ret, const struct diff_side *from,
				   const struct diff_side *to, uint32_t max_depth);
void diff_fini(struct diff *diff);

#endif
