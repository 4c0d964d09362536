#include "proto/base/config_file.h"

#include <confuse.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/config_text.h"

enum {
	INTERVAL_MAX_SECONDS = 86400,
	SCANS_MAX = 64,
	KEPT_SCANS_MAX = 64,
	METRIC_LABELS_MAX = 16,
	METRIC_KEY_MAX_BYTES = 128,
	METRIC_SERIES_MAX = 1000,
};

/* libconfuse reports through a callback that gets no argument of ours. */
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

/* ---- ranges; each is called for a value as it is read, which is the option's last ---- */

static int check_interval(cfg_t *cfg, cfg_opt_t *opt)
{
	double seconds = cfg_opt_getnfloat(opt, cfg_opt_size(opt) - 1);

	if (seconds >= 0 && seconds <= INTERVAL_MAX_SECONDS)
		return 0;
	cfg_error(cfg, "%s is in seconds, from 0 to %d", cfg_opt_name(opt), INTERVAL_MAX_SECONDS);
	return -1;
}

static int check_weight(cfg_t *cfg, cfg_opt_t *opt)
{
	double weight = cfg_opt_getnfloat(opt, cfg_opt_size(opt) - 1);

	if (weight >= 0 && weight <= 1)
		return 0;
	cfg_error(cfg, "%s goes from 0 to 1", cfg_opt_name(opt));
	return -1;
}

static int check_count(cfg_t *cfg, cfg_opt_t *opt, long min, long max)
{
	long count = cfg_opt_getnint(opt, cfg_opt_size(opt) - 1);

	if (count >= min && count <= max)
		return 0;
	cfg_error(cfg, "%s goes from %ld to %ld", cfg_opt_name(opt), min, max);
	return -1;
}

static int check_scans(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_count(cfg, opt, 1, SCANS_MAX);
}

static int check_kept_scans(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_count(cfg, opt, 0, KEPT_SCANS_MAX);
}

static int check_kept_memory(cfg_t *cfg, cfg_opt_t *opt)
{
	if (cfg_opt_getnint(opt, cfg_opt_size(opt) - 1) >= 0)
		return 0;
	cfg_error(cfg, "%s is a number of bytes", cfg_opt_name(opt));
	return -1;
}

static int check_series(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_count(cfg, opt, 1, METRIC_SERIES_MAX);
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

static int check_folder(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *path = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (path && *path == '/' && strlen(path) <= CONFIG_FOLDER_MAX_BYTES)
		return 0;
	cfg_error(cfg, "%s is a path that begins with /, of up to %d bytes", cfg_opt_name(opt),
		  CONFIG_FOLDER_MAX_BYTES);
	return -1;
}

static int check_list(cfg_t *cfg, cfg_opt_t *opt, unsigned count_max, unsigned size_max)
{
	const char *item = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

	if (cfg_opt_size(opt) > count_max) {
		cfg_error(cfg, "%s has more than %u entries", cfg_opt_name(opt), count_max);
		return -1;
	}
	if (item && *item && strlen(item) <= size_max)
		return 0;
	cfg_error(cfg, "%s: an entry has 1 to %u bytes", cfg_opt_name(opt), size_max);
	return -1;
}

static int check_labels(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_list(cfg, opt, METRIC_LABELS_MAX, METRIC_KEY_MAX_BYTES);
}

static int check_patterns(cfg_t *cfg, cfg_opt_t *opt)
{
	return check_list(cfg, opt, CONFIG_PATTERNS_MAX, CONFIG_PATTERN_MAX_BYTES);
}

static const struct {
	const char *key;
	cfg_validate_callback_t check;
} checks[] = {
	{ "min_stop_interval", check_interval },     { "max_scans", check_scans },
	{ "max_scan_memory", check_memory },         { "user", check_user },
	{ "metric_labels", check_labels },           { "metric_series_max", check_series },
	{ "clone_allowed_cgroups", check_patterns }, { "clone_allowed_units", check_patterns },
	{ "huge_page_weight", check_weight },        { "debug_dir", check_folder },
	{ "max_kept_scans", check_kept_scans },      { "max_kept_memory", check_kept_memory },
};

/* ---- reading ---- */

static cfg_t *make_parser(void)
{
	cfg_opt_t options[] = {
		CFG_FLOAT("min_stop_interval", 0, CFGF_NODEFAULT),
		CFG_INT("max_scans", 0, CFGF_NODEFAULT),
		CFG_INT("max_scan_memory", 0, CFGF_NODEFAULT),
		CFG_INT("max_kept_scans", 0, CFGF_NODEFAULT),
		CFG_INT("max_kept_memory", 0, CFGF_NODEFAULT),
		CFG_STR("user", NULL, CFGF_NODEFAULT),
		CFG_STR_LIST("metric_labels", NULL, CFGF_NODEFAULT),
		CFG_INT("metric_series_max", 0, CFGF_NODEFAULT),
		CFG_STR_LIST("clone_allowed_cgroups", NULL, CFGF_NODEFAULT),
		CFG_STR_LIST("clone_allowed_units", NULL, CFGF_NODEFAULT),
		CFG_FLOAT("huge_page_weight", 0, CFGF_NODEFAULT),
		CFG_STR("debug_dir", NULL, CFGF_NODEFAULT),
		CFG_END(),
	};
	cfg_t *cfg = cfg_init(options, CFGF_NONE);

	if (!cfg)
		return NULL;
	cfg_set_error_function(cfg, keep_error);
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		cfg_set_validate_func(cfg, checks[i].key, checks[i].check);
	return cfg;
}

static struct error *parse(cfg_t *cfg, const char *path, char *text, size_t size)
{
	struct error *err;
	FILE *file;
	int result;

	cfg->filename = strdup(path); /* cfg_free frees it */
	if (!cfg->filename)
		return &error_nomem;
	file = fmemopen(text, size, "r");
	if (!file)
		return error_system(errno, "cannot read %s", path);
	result = cfg_parse_fp(cfg, file);
	fclose(file);
	err = take(first_error);
	if (!err && result != CFG_SUCCESS)
		err = error_new(ERROR_FORMAT, "%s: cannot be parsed", path);
	return err;
}

struct error *config_file_read(const char *path, struct cfg_t **ret)
{
	char *text scoped(freep) = NULL;
	size_t size = 0;
	struct error *err = config_text_read(path, &text, &size);
	cfg_t *cfg;

	if (err)
		return err;
	cfg = make_parser();
	if (!cfg)
		return &error_nomem;
	if (size) /* there are no files of nothing in memory */
		err = parse(cfg, path, text, size);
	if (err) {
		cfg_free(cfg);
		return err;
	}
	*ret = cfg;
	return NULL;
}

void config_file_free(struct cfg_t *cfg)
{
	cfg_free(cfg);
}
