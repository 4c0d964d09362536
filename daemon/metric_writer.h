/*
 * Metrics in the text format of Prometheus (0.0.4) or in OpenMetrics (1.0.0). A family's heading
 * is written with its first sample, so that one without any leaves no trace; families are not
 * interleaved.
 */
#ifndef DAEMON_METRIC_WRITER_H
#define DAEMON_METRIC_WRITER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

struct text;

/*
 * A family's name ends in its unit, if it has one ("bytes"). Info is a set of labels whose samples
 * end in _info; it is a gauge where the format has nothing better.
 */
struct metric_family {
	const char *name, *unit, *help;
	bool is_info;
};

struct metric_writer {
	struct text *text; /* borrowed */
	bool is_open_metrics;
	const struct metric_family *family; /* borrowed until the next one */
	bool has_heading;
	bool has_label; /* the sample under way has one */
};

void metric_writer_init(struct metric_writer *writer, struct text *text, bool is_open_metrics);
/* Ends the page. */
void metric_writer_finish(struct metric_writer *writer);

void metric_family_begin(struct metric_writer *writer, const struct metric_family *family);

/* A sample: its labels come between begin and end. */
void metric_begin(struct metric_writer *writer);
void metric_label(struct metric_writer *writer, const char *key, ProtobufCBinaryData value);
/* Labels that metric_write_label has written. Nothing if there are none. */
void metric_raw_labels(struct metric_writer *writer, const char *labels, size_t size);
void metric_end(struct metric_writer *writer, uint64_t value);
/* value / 10^decimals */
void metric_end_decimal(struct metric_writer *writer, uint64_t value, unsigned decimals);

/*
 * Writes key="value", escaped. Invalid UTF-8 becomes U+FFFD, and so does a zero byte, which some
 * readers take for the end; a value is cut, at a character, beyond METRIC_VALUE_MAX_BYTES.
 */
enum { METRIC_VALUE_MAX_BYTES = 256 };
void metric_write_label(struct text *text, const char *key, ProtobufCBinaryData value);

#endif
