#include "agent/agent_config.h"

#include <confuse.h>
#include <string.h>

#include "proto/base/config_file.h"

enum { DEFAULT_MIN_STOP_INTERVAL_MS = 1000, DEFAULT_MAX_SCANS = 4, DEFAULT_MAX_KEPT_SCANS = 8 };

static const double default_huge_page_weight = 0.25;

void agent_config_init(struct agent_config *config)
{
	*config = (struct agent_config){ .min_stop_interval_ms = DEFAULT_MIN_STOP_INTERVAL_MS,
					 .max_scans = DEFAULT_MAX_SCANS,
					 .max_kept_scans = DEFAULT_MAX_KEPT_SCANS,
					 .huge_page_weight = default_huge_page_weight };
}

static void patterns_fini(struct config_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		free(patterns->items[i]);
	free(patterns->items);
	*patterns = (struct config_patterns){ 0 };
}

void agent_config_fini(struct agent_config *config)
{
	patterns_fini(&config->clone_allowed_cgroups);
	patterns_fini(&config->clone_allowed_units);
	free(take(config->user));
	free(take(config->debug_dir));
}

static struct error *take_patterns(cfg_t *cfg, const char *key, struct config_patterns *ret)
{
	struct config_patterns patterns = { 0 };
	size_t count = cfg_size(cfg, key);

	if (!count)
		return NULL;
	patterns.items = calloc(count, sizeof(*patterns.items));
	for (; patterns.items && patterns.count < count; patterns.count++) {
		char *copy = strdup(cfg_getnstr(cfg, key, (unsigned)patterns.count));

		if (!copy)
			break;
		patterns.items[patterns.count] = copy;
	}
	if (patterns.count < count) {
		patterns_fini(&patterns);
		return &error_nomem;
	}
	patterns_fini(ret);
	*ret = patterns;
	return NULL;
}

static struct error *take_text(cfg_t *cfg, const char *key, char **ret)
{
	char *text;

	if (!cfg_size(cfg, key))
		return NULL;
	text = strdup(cfg_getstr(cfg, key));
	if (!text)
		return &error_nomem;
	free(*ret);
	*ret = text;
	return NULL;
}

static struct error *take_values(cfg_t *cfg, struct agent_config *config)
{
	struct error *err = take_text(cfg, "user", &config->user);

	if (!err)
		err = take_text(cfg, "debug_dir", &config->debug_dir);
	if (!err)
		err = take_patterns(cfg, "clone_allowed_cgroups", &config->clone_allowed_cgroups);
	if (!err)
		err = take_patterns(cfg, "clone_allowed_units", &config->clone_allowed_units);
	if (err)
		return err;
	if (cfg_size(cfg, "min_stop_interval"))
		config->min_stop_interval_ms =
		    (uint64_t)(cfg_getfloat(cfg, "min_stop_interval") * 1000);
	if (cfg_size(cfg, "max_scans"))
		config->max_scans = (unsigned)cfg_getint(cfg, "max_scans");
	if (cfg_size(cfg, "max_scan_memory"))
		config->max_scan_memory = (uint64_t)cfg_getint(cfg, "max_scan_memory");
	if (cfg_size(cfg, "max_kept_scans"))
		config->max_kept_scans = (unsigned)cfg_getint(cfg, "max_kept_scans");
	if (cfg_size(cfg, "max_kept_memory")) {
		config->has_max_kept_memory = true;
		config->max_kept_memory = (uint64_t)cfg_getint(cfg, "max_kept_memory");
	}
	if (cfg_size(cfg, "huge_page_weight"))
		config->huge_page_weight = cfg_getfloat(cfg, "huge_page_weight");
	return NULL;
}

struct error *agent_config_read(struct agent_config *config, const char *path)
{
	struct cfg_t *cfg;
	struct error *err = config_file_read(path, &cfg);

	if (err)
		return err;
	err = take_values(cfg, config);
	config_file_free(cfg);
	return err;
}
