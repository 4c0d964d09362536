/* Index files in their folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/binary/index.h"
#include "proto/base/bytes.h"

enum { READ_STEP = 64 << 10, TEMPORARY_NAME_SIZE = 64 };

struct error *index_file_read(int fd, struct bytes *out)
{
	for (off_t offset = 0;;) {
		uint8_t step[READ_STEP];
		ssize_t n = pread(fd, step, sizeof(step), offset);
		struct error *err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(errno, "index file");
		if (!n)
			return NULL;
		err = bytes_append(out, step, (size_t)n);
		if (err)
			return error_context(err, "index file");
		offset += n;
	}
}

static struct error *write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(errno, "index file");
		bytes += n;
		size -= (size_t)n;
	}
	return NULL;
}

/*
 * Fills the temporary file and gives it its name, without fsync. When the machine goes down soon
 * after, the name may lead to a file that is empty, cut or holed: its size and checksum say so to
 * index_decode, which every reader goes through, and it is made anew from the binary and put in its
 * place, for the price of one slow scan. Nothing is lost that is nowhere else. To wait for the
 * disk, for up to 256 MiB, would make every first scan of a binary slower for that. A temporary
 * file that such a crash leaves counts for the folder's limits like any other, and goes with the
 * oldest.
 */
static struct error *finish_file(int folder_fd, int fd, const char *temporary, const char *name,
				 const void *bytes, size_t size)
{
	struct error *err = write_all(fd, bytes, size);

	if (err)
		return err;
	if (renameat(folder_fd, temporary, folder_fd, name))
		return error_system(errno, "index file %s", name);
	return NULL;
}

struct error *index_file_write(enum index_kind kind, int folder_fd,
			       const struct index_file_key *executable, const void *bytes,
			       size_t size)
{
	char name[INDEX_NAME_SIZE], temporary[TEMPORARY_NAME_SIZE];
	int fd scoped(closep) = -1;
	struct error *err;

	if (size > index_size_max(kind))
		return error_new(ERROR_LIMIT, "an index of %zu bytes", size);
	index_file_name(kind, executable, name);
	snprintf(temporary, sizeof(temporary), ".new-%d", (int)getpid());
	/* what a crash of an earlier process with this pid left */
	if (unlinkat(folder_fd, temporary, 0) && errno != ENOENT)
		return error_system(errno, "index file %s", temporary);
	fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return error_system(errno, "index file %s", temporary);
	err = finish_file(folder_fd, fd, temporary, name, bytes, size);
	if (err)
		unlinkat(folder_fd, temporary, 0);
	return err;
}
