#include "agent/target/snapshot_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

struct snapshot_memory {
	struct memory memory;
	int fd; /* borrowed */
};

static struct error *snapshot_read(struct memory *memory, taddr addr, void *buf, size_t size)
{
	int fd = ((struct snapshot_memory *)memory)->fd;
	uint8_t *out = buf;

	while (size) {
		ssize_t got = addr > INT64_MAX ? 0 : pread(fd, out, size, (off_t)addr);

		if (got < 0 && errno == EINTR)
			continue;
		if (addr > INT64_MAX || (got < 0 && errno == EIO))
			return error_new(ERROR_FAULT, "0x%" PRIx64 ": not readable", addr);
		if (got < 0)
			return error_system(errno, "0x%" PRIx64, addr);
		if (!got)
			return error_new(ERROR_GONE, "0x%" PRIx64 ": the snapshot is gone", addr);
		out += got;
		addr += (uint64_t)got;
		size -= (size_t)got;
	}
	return NULL;
}

static void snapshot_free_memory(struct memory *memory)
{
	memory_fini(memory);
	free(memory);
}

static const struct memory_ops snapshot_ops = { .read = snapshot_read,
						.free = snapshot_free_memory };

struct error *snapshot_memory_open(int mem_fd, struct memory **ret)
{
	struct snapshot_memory *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return &error_nomem;
	memory_init(&snapshot->memory, &snapshot_ops);
	snapshot->fd = mem_fd;
	*ret = &snapshot->memory;
	return NULL;
}
