#include "daemon/config.h"

#include <confuse.h>
#include <string.h>

#include "daemon/label_series.h"
#include "proto/base/config_file.h"

enum { METRIC_SERIES_DEFAULT = 20 };

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

struct error *config_read(struct config *config, const char *path)
{
	struct cfg_t *cfg;
	struct error *err = config_file_read(path, &cfg);

	if (err)
		return err;
	err = apply(cfg, config);
	config_file_free(cfg);
	return err;
}
