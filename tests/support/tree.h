/*
 * A folder of made-up files, such as a recorded /proc, for a test. Header only, since it belongs
 * to no room. Failures end the test program.
 */
#ifndef TESTS_SUPPORT_TREE_H
#define TESTS_SUPPORT_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char root[64];
};

static inline void tree_init(struct tree *tree)
{
	strcpy(tree->root, "/tmp/goheapd-tree-XXXXXX");
	if (!mkdtemp(tree->root))
		abort();
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type,
				  struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

static inline void tree_fini(struct tree *tree)
{
	nftw(tree->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The full path of name, in a buffer that the next call reuses; its folders are made. */
static inline const char *tree_path(const struct tree *tree, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", tree->root, name);
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	return path;
}

static inline void tree_write_bytes(const struct tree *tree, const char *name, const void *bytes,
				    size_t size)
{
	FILE *file = fopen(tree_path(tree, name), "we");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

static inline void tree_write(const struct tree *tree, const char *name, const char *text)
{
	tree_write_bytes(tree, name, text, strlen(text));
}

static inline void tree_link(const struct tree *tree, const char *name, const char *target)
{
	const char *path = tree_path(tree, name);

	unlink(path);
	if (symlink(target, path))
		abort();
}

static inline void tree_remove(const struct tree *tree, const char *name)
{
	if (remove(tree_path(tree, name)))
		abort();
}

static inline int tree_open(const struct tree *tree, const char *name)
{
	int fd = open(tree_path(tree, name), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

#endif
