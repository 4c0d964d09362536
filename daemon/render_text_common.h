/*
 * What several text answers have in common: sizes, counts, durations, the identity line.
 */
#ifndef DAEMON_RENDER_TEXT_COMMON_H
#define DAEMON_RENDER_TEXT_COMMON_H

#include "daemon/render.h"

/* One binary unit for a whole page, so that its columns can be added up by eye. */
struct size_unit {
	const char *name;
	double bytes;
};

/* The unit in which the page's largest figure has up to four digits before the point. */
struct size_unit size_unit_for(uint64_t largest);

/* "7.41", in the unit. Two decimals; none for plain bytes. */
void text_in_unit(struct text *text, struct size_unit unit, int width, uint64_t bytes);

/* "12 KiB", "310 MiB": a size that stands alone. */
void text_size(struct text *text, uint64_t bytes);

/* "18,204" */
void text_count(struct text *text, uint64_t count);
/* The same at the right of so many columns. */
void text_count_right(struct text *text, int width, uint64_t count);

/* "6d4h", "3h12m", "5m", "12s" */
void text_duration(struct text *text, uint64_t seconds);

/* "02:58:11Z" */
void text_clock(struct text *text, uint64_t time_ns);

/* "checkout (shop/checkout) pid 1234 go1.26.11 rev 9c1e2ab up 6d4h", without a newline. */
void text_identity(struct text *text, const Goheapd__Identity *identity, uint64_t now_ns);

/* The identity line of a scan: who, when, how long stopped, whether it was kept. */
void text_scan_head(struct text *text, const struct scan_view *view);

/* The head word in its column, then the message, folded to the page's width. */
void text_note(struct text *text, const char *head, ProtobufCBinaryData message);

/* The warnings, a WARN line each. */
void text_warnings(struct text *text, Goheapd__Warning *const *warnings, size_t count);

/* A NUL-terminated string as bytes. */
ProtobufCBinaryData text_bytes(const char *string);

enum { TEXT_WIDTH = 96 };

#endif
