/*
 * What Go's linker wrote into a binary about its making: the version of Go with its experiments,
 * the main package, its module, and the state of its version control. debug/buildinfo,
 * cmd/link/internal/ld/data.go (buildinfo), runtime/debug/mod.go.
 */
#ifndef AGENT_BINARY_BUILD_INFO_H
#define AGENT_BINARY_BUILD_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct elf_file;

enum {
	BUILD_INFO_VERSION_MAX = 1024,
	BUILD_INFO_MODULES_MAX = 4 << 20, /* lines for every dependency */
	BUILD_INFO_DEPENDENCIES_MAX = 16384,
};

/* Texts are owned, never NULL, "" if unknown, and may hold any bytes but NUL. */
struct build_info {
	char *version; /* as Go spells it: "go1.26.11-X:nogreenteagc" */
	char *path;    /* of the main package */
	char *module, *module_version;
	char *vcs_revision, *vcs_time;
	bool vcs_modified;
	char **dependencies; /* paths of the modules it was built with, but its own */
	size_t dependency_count;
};

/* Where the older form, which holds pointers, finds what they point to; link-time addresses. */
struct build_info_reader {
	struct error *(*read)(void *arg, taddr addr, void *buf, size_t size);
	struct error *(*read_pointer)(void *arg, taddr addr, taddr *ret);
	void *arg;
};

/*
 * Parses the bytes from the header on, which the newer form (since go1.18) is complete in. The
 * caller frees *ret.
 */
must_check struct error *build_info_parse(const uint8_t *bytes, size_t size,
					  const struct build_info_reader *reader,
					  struct build_info **ret);

/*
 * Finds it by its section or, where there are no section headers, in the writable segments.
 * *ret is NULL if the file has none: it may still be a Go program.
 */
must_check struct error *build_info_read(const struct elf_file *file, struct build_info **ret);

/* All unknown. */
must_check struct error *build_info_new(struct build_info **ret);
void build_info_free(struct build_info *info);
DEFINE_FREEP(build_info, build_info_free)

#endif
