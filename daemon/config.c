#include "daemon/config.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/label_series.h"
#include "proto/base/config_text.h"

enum {
	MAX_SCANS_MAX = 64,
	INTERVAL_MAX_SECONDS = 86400,
	METRIC_LABELS_MAX = 16,
	METRIC_KEY_MAX_BYTES = 128,
	METRIC_SERIES_DEFAULT = 20,
	METRIC_SERIES_MAX = 1000,
};

void config_init(struct config *config)
{
	*config = (struct config){ .min_stop_interval_us = 1000000,
				   .max_scans = 4,
				   .metrics.series_max = METRIC_SERIES_DEFAULT };
}

static void free_labels(const struct metric_label_key *labels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(labels[i].key);
		free(labels[i].name);
	}
	free((struct metric_label_key *)(uintptr_t)labels);
}

void config_fini(struct config *config)
{
	free_labels(config->metrics.labels, config->metrics.label_count);
	free(config->user);
	*config = (struct config){ 0 };
}

/*
 * libconfuse reports through a callback that gets no argument of ours. The file is read once,
 * before there are threads.
 */
static struct error *first_error;

static __attribute__((format(printf, 2, 0))) void keep_error(cfg_t *cfg, const char *format,
							     va_list args)
{
	char *text;

	if (first_error)
		return;
	if (vasprintf(&text, format, args) < 0) {
		first_error = &error_nomem;
		return;
	}
	if (cfg && cfg->filename && cfg->line)
		first_error = error_new(ERROR_FORMAT, "%s:%d: %s", cfg->filename, cfg->line, text);
	else
		first_error = error_new(ERROR_FORMAT, "%s", text);
	free(text);
}

static int check_interval(cfg_t *cfg, cfg_opt_t *opt)
{
	double seconds = cfg_opt_getnfloat(opt, cfg_opt_size(opt) - 1);

	if (seconds >= 0 && seconds <= INTERVAL_MAX_SECONDS)
		return 0;
	cfg_error(cfg, "%s is in seconds, from 0 to %d", cfg_opt_name(opt), INTERVAL_MAX_SECONDS);
	return -1;
}

static int check_max_scans(cfg_t *cfg, cfg_opt_t *opt)
{
	long count = cfg_opt_getnint(opt, cfg_opt_size(opt) - 1);

	if (count >= 1 && count <= MAX_SCANS_MAX)
		return 0;
	cfg_error(cfg, "%s goes from 1 to %d", cfg_opt_name(opt), MAX_SCANS_MAX);
	return -1;
}

static int check_memory(cfg_t *cfg, cfg_opt_t *opt)
{
	if (cfg_opt_getnint(opt, cfg_opt_size(opt) - 1) >= 0)
		return 0;
	cfg_error(cfg, "%s is a number of bytes; 0 sets no limit", cfg_opt_name(opt));
	return -1;
}

static int check_user(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *name = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (name && *name)
		return 0;
	cfg_error(cfg, "%s must name a user", cfg_opt_name(opt));
	return -1;
}

static int check_series_max(cfg_t *cfg, cfg_opt_t *opt)
{
	long count = cfg_opt_getnint(opt, cfg_opt_size(opt) - 1);

	if (count >= 1 && count <= METRIC_SERIES_MAX)
		return 0;
	cfg_error(cfg, "%s goes from 1 to %d", cfg_opt_name(opt), METRIC_SERIES_MAX);
	return -1;
}

/* Called for each key as it is read. */
static int check_labels(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *key = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (cfg_opt_size(opt) > METRIC_LABELS_MAX) {
		cfg_error(cfg, "%s has more than %d keys", cfg_opt_name(opt), METRIC_LABELS_MAX);
		return -1;
	}
	if (key && *key && strlen(key) <= METRIC_KEY_MAX_BYTES)
		return 0;
	cfg_error(cfg, "%s: a key has 1 to %d bytes", cfg_opt_name(opt), METRIC_KEY_MAX_BYTES);
	return -1;
}

static struct error *fill_label(struct metric_label_key *label, const char *key)
{
	label->key = strdup(key);
	return label->key ? label_series_name(key, &label->name) : &error_nomem;
}

/* Two keys whose labels have one name would be one label given twice. */
static struct error *check_names(const struct metric_label_key *labels, size_t count,
				 const char *path)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (strcmp(labels[i].name, labels[j].name) == 0)
				return error_new(ERROR_FORMAT,
						 "%s: metric_labels: \"%s\" and \"%s\" would both "
						 "be the label %s",
						 path, labels[j].key, labels[i].key,
						 labels[i].name);
		}
	}
	return NULL;
}

static struct error *apply_labels(cfg_t *cfg, struct config *config)
{
	size_t count = cfg_size(cfg, "metric_labels");
	struct metric_label_key *labels = calloc(count + 1, sizeof(*labels));
	struct error *err = labels ? NULL : &error_nomem;

	for (size_t i = 0; !err && i < count; i++)
		err = fill_label(&labels[i], cfg_getnstr(cfg, "metric_labels", (unsigned)i));
	if (!err)
		err = check_names(labels, count, cfg->filename);
	if (err) {
		free_labels(labels, labels ? count : 0);
		return err;
	}
	free_labels(config->metrics.labels, config->metrics.label_count);
	config->metrics.labels = labels;
	config->metrics.label_count = count;
	return NULL;
}

/* Takes what the file has set; the rest stays as it is. */
static struct error *apply(cfg_t *cfg, struct config *config)
{
	struct error *err = cfg_size(cfg, "metric_labels") ? apply_labels(cfg, config) : NULL;

	if (err)
		return err;
	if (cfg_size(cfg, "user")) {
		char *user = strdup(cfg_getstr(cfg, "user"));

		if (!user)
			return &error_nomem;
		free(config->user);
		config->user = user;
	}
	if (cfg_size(cfg, "min_stop_interval"))
		config->min_stop_interval_us =
		    (uint64_t)(cfg_getfloat(cfg, "min_stop_interval") * 1e6);
	if (cfg_size(cfg, "max_scans"))
		config->max_scans = (uint32_t)cfg_getint(cfg, "max_scans");
	if (cfg_size(cfg, "max_scan_memory"))
		config->max_scan_memory = (uint64_t)cfg_getint(cfg, "max_scan_memory");
	if (cfg_size(cfg, "metric_series_max"))
		config->metrics.series_max = (size_t)cfg_getint(cfg, "metric_series_max");
	return NULL;
}

static struct error *parse(cfg_t *cfg, const char *path, FILE *file)
{
	struct error *err;

	cfg->filename = strdup(path); /* cfg_free frees it */
	if (!cfg->filename)
		return &error_nomem;
	cfg_set_error_function(cfg, keep_error);
	cfg_set_validate_func(cfg, "min_stop_interval", check_interval);
	cfg_set_validate_func(cfg, "max_scans", check_max_scans);
	cfg_set_validate_func(cfg, "max_scan_memory", check_memory);
	cfg_set_validate_func(cfg, "user", check_user);
	cfg_set_validate_func(cfg, "metric_labels", check_labels);
	cfg_set_validate_func(cfg, "metric_series_max", check_series_max);
	if (cfg_parse_fp(cfg, file) == CFG_SUCCESS && !first_error)
		return NULL;
	err = take(first_error);
	return err ? err : error_new(ERROR_FORMAT, "%s: cannot be parsed", path);
}

struct error *config_read(struct config *config, const char *path)
{
	cfg_opt_t options[] = {
		CFG_FLOAT("min_stop_interval", 0, CFGF_NODEFAULT),
		CFG_INT("max_scans", 0, CFGF_NODEFAULT),
		CFG_INT("max_scan_memory", 0, CFGF_NODEFAULT),
		CFG_STR("user", NULL, CFGF_NODEFAULT),
		CFG_STR_LIST("metric_labels", NULL, CFGF_NODEFAULT),
		CFG_INT("metric_series_max", 0, CFGF_NODEFAULT),
		CFG_END(),
	};
	char *text scoped(freep) = NULL;
	size_t size = 0;
	struct error *err = config_text_read(path, &text, &size);
	FILE *file;
	cfg_t *cfg;

	if (err || size == 0)
		return err;
	file = fmemopen(text, size, "r");
	if (!file)
		return error_system(errno, "cannot read %s", path);
	cfg = cfg_init(options, CFGF_NONE);
	err = cfg ? parse(cfg, path, file) : &error_nomem;
	if (!err)
		err = apply(cfg, config);
	cfg_free(cfg);
	fclose(file);
	return err;
}
