/*
 * The mappings of a process, from /proc/PID/maps. Names are bytes as the kernel printed them; a
 * newline in a file's name is "\012" in them. Sorted by address, never overlapping.
 */
#ifndef AGENT_TARGET_MAPS_H
#define AGENT_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum mapping_kind {
	MAPPING_ANONYMOUS, /* also "[heap]", "[stack]" and "[anon:...]" */
	MAPPING_FILE,      /* also memfd, shared memory and devices: whatever has an inode */
	MAPPING_SPECIAL,   /* "[vdso]", "[vvar]", "[vsyscall]" and what we do not know */
};

struct mapping {
	taddr start, end; /* start < end */
	uint64_t offset;  /* in the file */
	uint64_t inode;   /* 0: not a file */
	uint32_t device_major, device_minor;
	enum mapping_kind kind;
	bool read, write, execute, shared;
	bool deleted;     /* the name ended in " (deleted)", which is cut off */
	const char *name; /* belongs to the maps; "" if there is none */
};

struct maps {
	struct mapping *items;
	uint32_t count;
	char *text; /* what the names point into */
};

/*
 * Reads a descriptor of /proc/PID/maps from its beginning; again, where it changed meanwhile and does
 * not make sense. ERROR_GONE if it is empty, ERROR_FORMAT if it never makes sense.
 */
must_check struct error *maps_read(int fd, struct maps **ret);

/* The same of bytes we hold. ERROR_FORMAT, or ERROR_LIMIT for too many. */
must_check struct error *maps_parse(const char *text, size_t size, struct maps **ret);
void maps_free(struct maps *maps);
DEFINE_FREEP(maps, maps_free)

/* The mapping that holds addr, or NULL. */
const struct mapping *maps_find(const struct maps *maps, taddr addr);

#endif
