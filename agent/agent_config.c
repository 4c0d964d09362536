#include "agent/agent_config.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/config_text.h"

enum { DEFAULT_MIN_STOP_INTERVAL_MS = 1000, DEFAULT_MAX_SCANS = 4, MAX_SCANS_LIMIT = 64 };

void agent_config_init(struct agent_config *config)
{
	*config = (struct agent_config){ .min_stop_interval_ms = DEFAULT_MIN_STOP_INTERVAL_MS,
					 .max_scans = DEFAULT_MAX_SCANS };
}

/* The library reports through a function without an argument of ours. */
static char complaint[512];

static __attribute__((format(printf, 2, 0))) void complain(cfg_t *cfg, const char *format,
							   va_list args)
{
	int used = snprintf(complaint, sizeof(complaint), "%s:%d: ", cfg->filename, cfg->line);

	if (used > 0 && (size_t)used < sizeof(complaint))
		vsnprintf(complaint + used, sizeof(complaint) - (size_t)used, format, args);
}

static int check_not_negative(cfg_t *cfg, cfg_opt_t *opt)
{
	double value =
	    opt->type == CFGT_FLOAT ? cfg_opt_getnfloat(opt, 0) : (double)cfg_opt_getnint(opt, 0);

	if (value >= 0 && value < 1e15)
		return 0;
	cfg_error(cfg, "%s cannot be negative or that large", opt->name);
	return -1;
}

static int check_scans(cfg_t *cfg, cfg_opt_t *opt)
{
	long value = cfg_opt_getnint(opt, 0);

	if (value >= 1 && value <= MAX_SCANS_LIMIT)
		return 0;
	cfg_error(cfg, "%s must be from 1 to %d", opt->name, MAX_SCANS_LIMIT);
	return -1;
}

static void take_values(struct agent_config *config, cfg_t *cfg)
{
	config->min_stop_interval_ms = (uint64_t)(cfg_getfloat(cfg, "min_stop_interval") * 1000);
	config->max_scans = (unsigned)cfg_getint(cfg, "max_scans");
	config->max_scan_memory = (uint64_t)cfg_getint(cfg, "max_scan_memory");
}

static struct error *parse(cfg_t *cfg, const char *path, FILE *file)
{
	cfg->filename = strdup(path); /* cfg_free frees it */
	if (!cfg->filename)
		return &error_nomem;
	cfg_set_error_function(cfg, complain);
	cfg_set_validate_func(cfg, "min_stop_interval", check_not_negative);
	cfg_set_validate_func(cfg, "max_scan_memory", check_not_negative);
	cfg_set_validate_func(cfg, "max_scans", check_scans);
	complaint[0] = '\0';
	if (cfg_parse_fp(cfg, file) == CFG_SUCCESS)
		return NULL;
	return error_new(ERROR_BAD_REQUEST, "%s", complaint);
}

struct error *agent_config_read(struct agent_config *config, const char *path)
{
	cfg_opt_t options[] = {
		CFG_FLOAT("min_stop_interval", (double)config->min_stop_interval_ms / 1000,
			  CFGF_NONE),
		CFG_INT("max_scans", (long)config->max_scans, CFGF_NONE),
		CFG_INT("max_scan_memory", (long)config->max_scan_memory, CFGF_NONE),
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
		return error_system(errno, "read %s", path);
	cfg = cfg_init(options, CFGF_IGNORE_UNKNOWN);
	err = cfg ? parse(cfg, path, file) : &error_nomem;
	if (!err)
		take_values(config, cfg);
	cfg_free(cfg);
	fclose(file);
	return err;
}
