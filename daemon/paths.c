#include "daemon/paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* An environment variable's folder, else one below HOME; both as the XDG base directories say. */
static const struct {
	const char *system, *variable, *below_home;
} defaults[] = {
	[PATH_RUN] = { PATH_SYSTEM_RUN_DIR, "XDG_RUNTIME_DIR", NULL },
	[PATH_CACHE] = { "/var/cache/goheapd", "XDG_CACHE_HOME", ".cache" },
};

static const char *absolute_from_environment(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] == '/' ? value : NULL;
}

struct error *path_default(enum path_kind kind, char **ret)
{
	const char *base = absolute_from_environment(defaults[kind].variable);
	const char *home = absolute_from_environment("HOME");
	char *path;
	int size;

	if (geteuid() == 0)
		size = asprintf(&path, "%s", defaults[kind].system);
	else if (base)
		size = asprintf(&path, "%s/goheapd", base);
	else if (home && defaults[kind].below_home)
		size = asprintf(&path, "%s/%s/goheapd", home, defaults[kind].below_home);
	else
		size = asprintf(&path, "/tmp/goheapd-%u", (unsigned)geteuid());
	if (size < 0)
		return &error_nomem;
	*ret = path;
	return NULL;
}

struct error *path_join(const char *folder, const char *name, char **ret)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return &error_nomem;
	*ret = path;
	return NULL;
}

static struct error *make_parents(const char *path)
{
	char *copy scoped(freep) = strdup(path);

	if (!copy)
		return &error_nomem;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return error_system(errno, "cannot make %s", copy);
		*slash = '/';
	}
	return NULL;
}

/* What others could replace must not be trusted: /tmp is everybody's. */
static struct error *check_folder(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return error_system(errno, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return error_new(ERROR_SYSTEM, "%s is not a folder", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return error_new(ERROR_DENIED, "%s belongs to uid %u", path, (unsigned)st.st_uid);
	if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
		return error_new(ERROR_DENIED, "%s can be written by everybody", path);
	return NULL;
}

struct error *path_make_folder(const char *path, unsigned mode)
{
	struct error *err = make_parents(path);

	if (err)
		return err;
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return error_system(errno, "cannot make %s", path);
	return check_folder(path);
}
