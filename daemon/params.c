#include "daemon/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/quantity.h"
#include "daemon/rfc3339.h"
#include "daemon/scan_ask.h"
#include "daemon/uri.h"

enum {
	SECOND_US = 1000000,
	TIMEOUT_MAX_SECONDS = 600,
	MAX_AGE_MAX_SECONDS = 3600,
	MAX_PAUSE_MAX_SECONDS = 60,
	KEEP_MAX_SECONDS = 86400,
	DEPTH_MAX = 1024,
	DEPTH_DEFAULT = 256,
	SAMPLES_DEFAULT = 16000, /* Pyroscope's limit */
	DEBUG_MAX = 2,
	OVER_MAX_SECONDS = 3600,
};

static struct error *seconds(const char *name, const char *value, uint64_t max_seconds,
			     bool zero_is_allowed, uint64_t *ret_us)
{
	uint64_t us;

	if (!quantity_seconds(value, &us) || us > max_seconds * SECOND_US ||
	    (us == 0 && !zero_is_allowed))
		return error_new(ERROR_BAD_REQUEST,
				 "%s=%s: a number of seconds is wanted, %s to %u", name, value,
				 zero_is_allowed ? "0" : "more than 0", (unsigned)max_seconds);
	*ret_us = us;
	return NULL;
}

static struct error *set_format(struct params *params, const char *value)
{
	params->format = value; /* which are offered is for negotiate() to say */
	return NULL;
}

static struct error *set_timeout(struct params *params, const char *value)
{
	return seconds("timeout", value, TIMEOUT_MAX_SECONDS, false, &params->timeout_us);
}

static struct error *set_start(struct params *params, const char *value)
{
	if (!rfc3339_is_valid(value))
		return error_new(ERROR_BAD_REQUEST,
				 "start=%s: the process's start_time is wanted, as /pid/N gives it",
				 value);
	params->start = value;
	return NULL;
}

static struct error *set_mode(struct params *params, const char *value)
{
	static const char *const names[] = {
		[GOHEAPD__MODE__MODE_AUTO] = "auto",
		[GOHEAPD__MODE__MODE_FORK] = "fork",
		[GOHEAPD__MODE__MODE_STOP] = "stop",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]) == 0) {
			params->mode = (Goheapd__Mode)i;
			return NULL;
		}
	}
	return error_new(ERROR_BAD_REQUEST, "mode=%s: auto, fork or stop is wanted", value);
}

static struct error *set_depth(struct params *params, const char *value)
{
	if (strcmp(value, "full") == 0)
		params->depth = GOHEAPD__DEPTH__DEPTH_FULL;
	else if (strcmp(value, "census") == 0)
		params->depth = GOHEAPD__DEPTH__DEPTH_CENSUS;
	else
		return error_new(ERROR_BAD_REQUEST, "depth=%s: full or census is wanted", value);
	return NULL;
}

static struct error *set_max_age(struct params *params, const char *value)
{
	return seconds("max_age", value, MAX_AGE_MAX_SECONDS, true, &params->max_age_us);
}

static struct error *set_max_pause(struct params *params, const char *value)
{
	return seconds("max_pause", value, MAX_PAUSE_MAX_SECONDS, false, &params->max_pause_us);
}

static struct error *set_keep(struct params *params, const char *value)
{
	struct error *err = seconds("keep", value, KEEP_MAX_SECONDS, true, &params->keep_us);

	params->has_keep = !err && params->keep_us;
	return err;
}

static bool is_scan_id(const char *value)
{
	return strlen(value) == SCAN_ID_DIGITS &&
	       strspn(value, "0123456789abcdef") == SCAN_ID_DIGITS;
}

static struct error *set_scan(struct params *params, const char *value)
{
	if (!is_scan_id(value))
		return error_new(ERROR_BAD_REQUEST,
				 "scan=%s: the id of a kept scan is wanted, as /pid/N/scans has it",
				 value);
	params->scan = value;
	return NULL;
}

static struct error *flag(const char *name, const char *value, bool *ret)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return error_new(ERROR_BAD_REQUEST, "%s=%s: 0 or 1 is wanted", name, value);
	*ret = value[0] == '1';
	return NULL;
}

static struct error *set_dead(struct params *params, const char *value)
{
	return flag("dead", value, &params->dead);
}

static struct error *set_detail(struct params *params, const char *value)
{
	return flag("detail", value, &params->labels.detail);
}

/* A whole number from least to most. */
static struct error *whole_number(const char *name, const char *value, uint64_t least,
				  uint64_t most, uint64_t *ret)
{
	uint64_t number;

	if (!quantity_u64(value, &number) || number < least || number > most)
		return error_new(ERROR_BAD_REQUEST,
				 "%s=%s: a number from %" PRIu64 " to %" PRIu64 " is wanted", name,
				 value, least, most);
	*ret = number;
	return NULL;
}

static struct error *set_max_depth(struct params *params, const char *value)
{
	uint64_t number = params->max_depth;
	struct error *err = whole_number("max_depth", value, 1, DEPTH_MAX, &number);

	params->max_depth = (uint32_t)number;
	return err;
}

static struct error *set_max_samples(struct params *params, const char *value)
{
	uint64_t number = params->max_samples;
	struct error *err = whole_number("max_samples", value, 1, PARAMS_SAMPLES_MAX, &number);

	params->max_samples = (uint32_t)number;
	return err;
}

static struct error *set_min_bytes(struct params *params, const char *value)
{
	return whole_number("min_bytes", value, 0, INT64_MAX, &params->min_bytes);
}

static struct error *set_sample(struct params *params, const char *value)
{
	if (strcmp(value, "inuse") != 0 && strcmp(value, "retained") != 0)
		return error_new(ERROR_BAD_REQUEST, "sample=%s: inuse or retained is wanted",
				 value);
	params->retained = value[0] == 'r';
	return NULL;
}

static struct error *set_debug(struct params *params, const char *value)
{
	uint64_t debug = 0;
	struct error *err = whole_number("debug", value, 0, DEBUG_MAX, &debug);

	params->debug = (unsigned)debug;
	return err;
}

/* Go collects garbage first where it is not 0. What is live is known without. */
static struct error *set_gc(struct params *params, const char *value)
{
	uint64_t gc;

	(void)params;
	return whole_number("gc", value, 0, UINT32_MAX, &gc);
}

static struct error *set_seconds(struct params *params, const char *value)
{
	uint64_t seconds_over = 0;
	struct error *err = whole_number("seconds", value, 1, OVER_MAX_SECONDS, &seconds_over);

	params->over_us = seconds_over * SECOND_US;
	return err;
}

static struct error *set_over(struct params *params, const char *value)
{
	uint64_t us;

	if (!quantity_duration(value, &us) || us == 0 ||
	    us > OVER_MAX_SECONDS * (uint64_t)SECOND_US)
		return error_new(ERROR_BAD_REQUEST,
				 "over=%s: a number of seconds is wanted, or one like 5m, up to 1h",
				 value);
	params->over_us = us;
	return NULL;
}

static struct error *set_since(struct params *params, const char *value)
{
	if (!is_scan_id(value) && !rfc3339_is_valid(value))
		return error_new(ERROR_BAD_REQUEST,
				 "since=%s: the id of a kept scan is wanted, or a time like "
				 "2026-02-03T02:58:11Z",
				 value);
	params->since = value;
	return NULL;
}

static struct error *set_with_labels(struct params *params, const char *value)
{
	return flag("labels", value, &params->with_labels);
}

static struct error *add_label(struct params *params, ProtobufCBinaryData value)
{
	return label_query_select(&params->labels, value);
}

static struct error *set_by(struct params *params, ProtobufCBinaryData value)
{
	return label_query_group(&params->labels, value);
}

static struct error *set_type(struct params *params, ProtobufCBinaryData value)
{
	if (!value.len)
		return error_new(ERROR_BAD_REQUEST, "type=: the name of a type is wanted");
	params->has_type = true;
	params->type = value;
	return NULL;
}

static struct error *set_limit(struct params *params, const char *value)
{
	uint64_t limit;
	struct error *err = whole_number("limit", value, 1, PARAMS_LIMIT_MAX, &limit);

	if (!err)
		params->limit = (uint32_t)limit;
	return err;
}

static struct error *set_cursor(struct params *params, const char *value)
{
	return page_cursor_parse(value, &params->cursor);
}

static struct error *set_top(struct params *params, const char *value)
{
	return whole_number("top", value, 1, INT64_MAX, &params->top);
}

static struct error *set_retained(struct params *params, const char *value)
{
	return flag("retained", value, &params->retained);
}

static struct error *set_garbage(struct params *params, const char *value)
{
	return flag("garbage", value, &params->garbage);
}

static struct error *set_contents(struct params *params, const char *value)
{
	return flag("contents", value, &params->contents);
}

static struct error *set_object(struct params *params, const char *value)
{
	if (!quantity_address(value, &params->object))
		return error_new(ERROR_BAD_REQUEST,
				 "object=%s: an address is wanted, such as 0xc000123000", value);
	params->has_object = true;
	return NULL;
}

/* What stems from a target, labels and types, may hold any byte; everything else is text. */
static const struct rule {
	unsigned bit;
	const char *name;
	struct error *(*set)(struct params *params, const char *value);
	struct error *(*set_bytes)(struct params *params, ProtobufCBinaryData value);
} rules[] = {
	{ PARAM_FORMAT, "format", set_format, NULL },
	{ PARAM_MODE, "mode", set_mode, NULL },
	{ PARAM_DEPTH, "depth", set_depth, NULL },
	{ PARAM_MAX_AGE, "max_age", set_max_age, NULL },
	{ PARAM_MAX_PAUSE, "max_pause", set_max_pause, NULL },
	{ PARAM_TIMEOUT, "timeout", set_timeout, NULL },
	{ PARAM_SCAN, "scan", set_scan, NULL },
	{ PARAM_KEEP, "keep", set_keep, NULL },
	{ PARAM_START, "start", set_start, NULL },
	{ PARAM_DEAD, "dead", set_dead, NULL },
	{ PARAM_LABEL, "label", NULL, add_label },
	{ PARAM_BY, "by", NULL, set_by },
	{ PARAM_DETAIL, "detail", set_detail, NULL },
	{ PARAM_MAX_DEPTH, "max_depth", set_max_depth, NULL },
	{ PARAM_MAX_SAMPLES, "max_samples", set_max_samples, NULL },
	{ PARAM_MIN_BYTES, "min_bytes", set_min_bytes, NULL },
	{ PARAM_SAMPLE, "sample", set_sample, NULL },
	{ PARAM_WITH_LABELS, "labels", set_with_labels, NULL },
	{ PARAM_DEBUG, "debug", set_debug, NULL },
	{ PARAM_GC, "gc", set_gc, NULL },
	{ PARAM_SECONDS, "seconds", set_seconds, NULL },
	{ PARAM_SINCE, "since", set_since, NULL },
	{ PARAM_OVER, "over", set_over, NULL },
	{ PARAM_TYPE, "type", NULL, set_type },
	{ PARAM_LIMIT, "limit", set_limit, NULL },
	{ PARAM_CURSOR, "cursor", set_cursor, NULL },
	{ PARAM_TOP, "top", set_top, NULL },
	{ PARAM_RETAINED, "retained", set_retained, NULL },
	{ PARAM_GARBAGE, "garbage", set_garbage, NULL },
	{ PARAM_CONTENTS, "contents", set_contents, NULL },
	{ PARAM_OBJECT, "object", set_object, NULL },
};
enum { RULE_COUNT = sizeof(rules) / sizeof(*rules) };

static const struct rule *rule_find(const char *name, unsigned accepted)
{
	for (unsigned i = 0; i < RULE_COUNT; i++) {
		if (rules[i].bit & accepted && strcmp(rules[i].name, name) == 0)
			return &rules[i];
	}
	return NULL;
}

static struct error *unknown_parameter(const char *name, unsigned accepted)
{
	char list[256] = "";

	for (unsigned i = 0; i < RULE_COUNT; i++) {
		size_t used = strlen(list);

		if (rules[i].bit & accepted)
			snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
				 rules[i].name);
	}
	return error_new(ERROR_BAD_REQUEST, "unknown parameter \"%s\"; this path takes %s", name,
			 *list ? list : "none");
}

void params_init(struct params *params)
{
	*params = (struct params){
		.timeout_us = 60 * SECOND_US,
		.max_pause_us = SECOND_US / 4,
		.mode = GOHEAPD__MODE__MODE_AUTO,
		.depth = GOHEAPD__DEPTH__DEPTH_FULL,
		.max_depth = DEPTH_DEFAULT,
		.max_samples = SAMPLES_DEFAULT,
		.limit = PARAMS_LIMIT_DEFAULT,
	};
}

struct error *params_check_depth(const struct params *params)
{
	if (params->depth == GOHEAPD__DEPTH__DEPTH_FULL)
		return NULL;
	return error_new(ERROR_BAD_REQUEST, "depth=census: a census looks at no objects, which "
					    "this answer is about");
}

const char *params_scan(const struct params *params)
{
	return params->cursor.count ? params->cursor.id : params->scan;
}

static struct error *rule_apply(const struct rule *rule, struct params *params, const char *value,
				size_t size)
{
	ProtobufCBinaryData bytes = { .len = size, .data = (uint8_t *)(uintptr_t)value };

	if (rule->set_bytes)
		return rule->set_bytes(params, bytes);
	if (strlen(value) != size)
		return error_new(ERROR_BAD_REQUEST, "%s: the value holds a zero byte", rule->name);
	return rule->set(params, value);
}

struct error *params_set(struct params *params, const char *name, const char *value)
{
	const struct rule *rule = rule_find(name, ~0u);

	return rule ? rule_apply(rule, params, value, strlen(value)) : unknown_parameter(name, ~0u);
}

static struct error *check_cursor(const struct params *params)
{
	if (!params->scan || strcmp(params->scan, params_scan(params)) == 0)
		return NULL;
	return error_new(ERROR_BAD_REQUEST, "cursor= is of another scan than scan=%s",
			 params->scan);
}

struct error *params_read(const struct uri *uri, unsigned accepted, struct params *ret)
{
	struct params params;
	struct error *err = NULL;

	params_init(&params);
	for (size_t i = 0; !err && i < uri->param_count; i++) {
		const struct uri_param *param = &uri->params[i];
		const struct rule *rule = rule_find(param->name, accepted);

		err = rule ? rule_apply(rule, &params, param->value, param->value_size)
			   : unknown_parameter(param->name, accepted);
	}
	if (!err)
		err = check_cursor(&params);
	if (!err)
		*ret = params;
	return err;
}
