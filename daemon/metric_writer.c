#include "daemon/metric_writer.h"

#include <inttypes.h>

#include "daemon/text.h"
#include "daemon/utf8.h"

void metric_writer_init(struct metric_writer *writer, struct text *text, bool is_open_metrics)
{
	*writer = (struct metric_writer){ .text = text, .is_open_metrics = is_open_metrics };
}

void metric_writer_finish(struct metric_writer *writer)
{
	if (writer->is_open_metrics)
		text_string(writer->text, "# EOF\n");
}

void metric_family_begin(struct metric_writer *writer, const struct metric_family *family)
{
	writer->family = family;
	writer->has_heading = false;
}

/* The suffix that an info's samples have, and in the older format its family, too. */
static const char *suffix(const struct metric_family *family)
{
	return family->is_info ? "_info" : "";
}

static void write_heading(struct metric_writer *writer)
{
	const struct metric_family *family = writer->family;
	struct text *text = writer->text;

	if (!writer->is_open_metrics) {
		text_printf(text, "# HELP %s%s %s\n# TYPE %s%s gauge\n", family->name,
			    suffix(family), family->help, family->name, suffix(family));
		return;
	}
	text_printf(text, "# TYPE %s %s\n", family->name, family->is_info ? "info" : "gauge");
	if (family->unit)
		text_printf(text, "# UNIT %s %s\n", family->name, family->unit);
	text_printf(text, "# HELP %s %s\n", family->name, family->help);
}

void metric_begin(struct metric_writer *writer)
{
	if (!writer->has_heading)
		write_heading(writer);
	writer->has_heading = true;
	writer->has_label = false;
	text_printf(writer->text, "%s%s", writer->family->name, suffix(writer->family));
}

static void separate(struct metric_writer *writer)
{
	text_string(writer->text, writer->has_label ? "," : "{");
	writer->has_label = true;
}

void metric_label(struct metric_writer *writer, const char *key, ProtobufCBinaryData value)
{
	separate(writer);
	metric_write_label(writer->text, key, value);
}

void metric_raw_labels(struct metric_writer *writer, const char *labels, size_t size)
{
	if (!size)
		return;
	separate(writer);
	text_append(writer->text, labels, size);
}

static void end_labels(struct metric_writer *writer)
{
	text_string(writer->text, writer->has_label ? "} " : " ");
}

void metric_end(struct metric_writer *writer, uint64_t value)
{
	end_labels(writer);
	text_printf(writer->text, "%" PRIu64 "\n", value);
}

void metric_end_decimal(struct metric_writer *writer, uint64_t value, unsigned decimals)
{
	uint64_t scale = 1;

	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	end_labels(writer);
	text_printf(writer->text, "%" PRIu64 ".%0*" PRIu64 "\n", value / scale, (int)decimals,
		    value % scale);
}

static void write_character(struct text *text, const uint8_t *start, const uint8_t *end,
			    uint32_t code)
{
	switch (code) {
	case '\\':
		text_string(text, "\\\\");
		break;
	case '"':
		text_string(text, "\\\"");
		break;
	case '\n':
		text_string(text, "\\n");
		break;
	case 0:
	case UTF8_REPLACEMENT:
		text_string(text, "\xef\xbf\xbd");
		break;
	default:
		text_append(text, start, (size_t)(end - start));
		break;
	}
}

void metric_write_label(struct text *text, const char *key, ProtobufCBinaryData value)
{
	const uint8_t *pos = value.data, *end = value.len ? pos + value.len : pos;

	text_printf(text, "%s=\"", key);
	while (pos < end) {
		const uint8_t *start = pos;
		uint32_t code = utf8_next(&pos, end);

		if (pos - value.data > METRIC_VALUE_MAX_BYTES) {
			text_string(text, "…");
			break;
		}
		write_character(text, start, pos, code);
	}
	text_string(text, "\"");
}
