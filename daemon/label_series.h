/*
 * Label sets as series of metrics: what of them the configuration allows, so that what programs put
 * into labels does not grow somebody's metrics without bound. Sets that agree in the allowed keys
 * are one series; the largest stay, the others are summed up.
 */
#ifndef DAEMON_LABEL_SERIES_H
#define DAEMON_LABEL_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text.h"
#include "proto/goheapd.pb-c.h"

struct metric_settings;

/* Figures that may be added up over sets; bytes are absent in a census. */
struct label_sum {
	uint64_t goroutines, stack_bytes, share_bytes, exclusive_bytes;
	bool has_bytes;
};

struct label_series {
	const char *labels; /* as metric_write_label writes them, not NUL-terminated */
	size_t labels_size;
	struct label_sum sum;
};

/* Largest share first. */
struct label_series_list {
	struct label_series *series;
	size_t count;
	struct label_sum other; /* of the series beyond the largest */
	size_t folded;          /* how many these were */
	struct text labels;     /* what the series point into */
};

struct label_sum label_sum_of(const Goheapd__LabelUsage *usage);

/* Give it back with label_series_fini, also after a failure. */
must_check struct error *label_series_init(struct label_series_list *list,
					   const Goheapd__LabelReport *report,
					   const struct metric_settings *settings);
void label_series_fini(struct label_series_list *list);

/*
 * The name of a metric's label for a key: "label_" and the key with everything but letters, digits
 * and '_' replaced by '_'. The caller frees *ret.
 */
must_check struct error *label_series_name(const char *key, char **ret);

#endif
