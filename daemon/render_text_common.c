#include "daemon/render_text_common.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000, REVISION_CHARS = 7, NAME_CHARS = 24, MODULE_CHARS = 32 };

static const struct size_unit units[] = {
	{ "B", 1 },
	{ "KiB", 1024 },
	{ "MiB", 1024.0 * 1024 },
	{ "GiB", 1024.0 * 1024 * 1024 },
	{ "TiB", 1024.0 * 1024 * 1024 * 1024 },
};
enum { UNIT_COUNT = sizeof(units) / sizeof(*units) };

struct size_unit size_unit_for(uint64_t largest)
{
	size_t i = 0;

	while (i + 1 < UNIT_COUNT && (double)largest >= units[i + 1].bytes)
		i++;
	return units[i];
}

void text_in_unit(struct text *text, struct size_unit unit, int width, uint64_t bytes)
{
	text_printf(text, "%*.*f", width, unit.bytes > 1 ? 2 : 0, (double)bytes / unit.bytes);
}

void text_size(struct text *text, uint64_t bytes)
{
	struct size_unit unit = size_unit_for(bytes);
	double value = (double)bytes / unit.bytes;
	int decimals = unit.bytes == 1 || value >= 100 ? 0 : value >= 10 ? 1 : 2;

	text_printf(text, "%.*f %s", decimals, value, unit.name);
}

void text_count_right(struct text *text, int width, uint64_t count)
{
	char digits[24], out[32];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	size_t used = 0;

	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	text_printf(text, "%*.*s", width, (int)used, out);
}

void text_count(struct text *text, uint64_t count)
{
	text_count_right(text, 0, count);
}

void text_duration(struct text *text, uint64_t seconds)
{
	uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

	if (days)
		text_printf(text, "%" PRIu64 "d%" PRIu64 "h", days, hours % 24);
	else if (hours)
		text_printf(text, "%" PRIu64 "h%" PRIu64 "m", hours, minutes % 60);
	else if (minutes)
		text_printf(text, "%" PRIu64 "m", minutes);
	else
		text_printf(text, "%" PRIu64 "s", seconds);
}

void text_clock(struct text *text, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_SECOND);
	struct tm tm;
	char clock[16];

	gmtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%SZ", &tm);
	text_string(text, clock);
}

ProtobufCBinaryData text_bytes(const char *string)
{
	return (ProtobufCBinaryData){ .len = strlen(string), .data = (uint8_t *)(uintptr_t)string };
}

void text_identity(struct text *text, const Goheapd__Identity *identity, uint64_t now_ns)
{
	const Goheapd__Build *build = identity->build;

	text_escaped(text, identity->comm, NAME_CHARS);
	if (build->has_module && build->module.len) {
		text_string(text, " (");
		text_escaped(text, build->module, MODULE_CHARS);
		text_string(text, ")");
	}
	text_printf(text, " pid %" PRIu32 " ", identity->pid);
	if (identity->go_version.len)
		text_escaped(text, identity->go_version, NAME_CHARS);
	else
		text_string(text, "go of unknown version");
	if (build->has_vcs_revision && build->vcs_revision.len) {
		ProtobufCBinaryData revision = build->vcs_revision;

		if (revision.len > REVISION_CHARS)
			revision.len = REVISION_CHARS;
		text_string(text, " rev ");
		text_escaped(text, revision, REVISION_CHARS);
	}
	if (now_ns > identity->start_time_ns) {
		text_string(text, " up ");
		text_duration(text, (now_ns - identity->start_time_ns) / NS_PER_SECOND);
	}
}

void text_scan_head(struct text *text, const struct scan_view *view)
{
	const Goheapd__ScanInfo *scan = view->result->scan;

	text_identity(text, view->result->identity, scan->started_at_ns);
	text_string(text, " | ");
	text_clock(text, scan->started_at_ns);
	text_printf(text, " stopped %.*f ms", scan->pause_us < 100000 ? 1 : 0,
		    (double)scan->pause_us / 1000);
	if (scan->depth == GOHEAPD__DEPTH__DEPTH_CENSUS)
		text_string(text, ", census");
	if (view->cached)
		text_string(text, ", kept from then");
	text_string(text, "\n");
}

/* Words are put on a line until it is full; one that is longer than a line is left whole. */
static void append_folded(struct text *text, size_t indent, ProtobufCBinaryData message)
{
	size_t column = indent;
	const uint8_t *pos = message.data, *end = message.len ? pos + message.len : pos;

	while (pos < end) {
		const uint8_t *stop = memchr(pos, ' ', (size_t)(end - pos));
		ProtobufCBinaryData word = { .data = (uint8_t *)(uintptr_t)pos,
					     .len = (size_t)((stop ? stop : end) - pos) };

		if (column > indent && column + word.len + 1 > TEXT_WIDTH) {
			text_printf(text, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			text_string(text, " ");
			column++;
		}
		column += text_escaped(text, word, SIZE_MAX);
		pos = stop ? stop + 1 : end;
	}
}

void text_note(struct text *text, const char *head, ProtobufCBinaryData message)
{
	size_t indent =
	    strcmp(head, "!!") == 0 ? 3 : 7; /* alarms stand out, the rest has columns */

	text_printf(text, "%-*s", (int)indent, head);
	append_folded(text, indent, message);
	text_string(text, "\n");
}

void text_warnings(struct text *text, Goheapd__Warning *const *warnings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		text_note(text, "WARN", warnings[i]->message);
}
