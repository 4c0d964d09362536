#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 1000, FILE_MODE = 0666 };

static struct error *write_all(int fd, const struct text *text, const char *name)
{
	const uint8_t *pos = text->bytes.data;
	size_t left = text->bytes.size;

	while (left) {
		ssize_t size = write(fd, pos, left);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return error_system(errno, "%s", name);
		pos += size;
		left -= (size_t)size;
	}
	return NULL;
}

static struct error *refuse_terminal(int fd, const char *name)
{
	if (!isatty(fd))
		return NULL;
	return error_new(ERROR_BAD_REQUEST,
			 "%s is a terminal, which a profile would only garble; name a file with "
			 "--output, or try goheap top",
			 name);
}

/* Closing tells of what could not be written, too. */
static struct error *write_file(int fd, const struct text *text, const char *name)
{
	struct error *err = refuse_terminal(fd, name);

	if (!err)
		err = write_all(fd, text, name);
	if (close(fd) < 0 && !err)
		err = error_system(errno, "%s", name);
	return err;
}

static struct error *write_named(const char *name, const struct text *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);

	return fd < 0 ? error_system(errno, "%s", name) : write_file(fd, text, name);
}

/* "goheap-1234.pb.gz", then "goheap-1234.2.pb.gz": what is there stays. */
static void make_name(const char *process, unsigned number, char *name, size_t size)
{
	char plain[64];
	size_t used = 0;

	for (; process[used] && used + 1 < sizeof(plain); used++)
		plain[used] = strchr("/.", process[used]) ? '_' : process[used];
	plain[used] = '\0';
	if (number == 1)
		snprintf(name, size, "goheap-%s.pb.gz", plain);
	else
		snprintf(name, size, "goheap-%s.%u.pb.gz", plain, number);
}

static struct error *write_new(const struct options *options, const struct text *text)
{
	char name[128] = "";
	int fd = -1;
	struct error *err;

	for (unsigned number = 1; fd < 0 && number <= NAMES_MAX; number++) {
		make_name(options->process, number, name, sizeof(name));
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return error_system(errno, "%s", name);
	err = write_file(fd, text, name);
	if (!err)
		fprintf(stderr, "goheap: %s; look at it with: go tool pprof %s\n", name, name);
	return err;
}

struct error *output_write(const struct options *options, const struct text *text)
{
	const char *output = options->output;
	struct error *err;

	if (output && strcmp(output, "-") != 0)
		return write_named(output, text);
	if (!output && isatty(STDOUT_FILENO))
		return write_new(options, text);
	err = refuse_terminal(STDOUT_FILENO, "standard output");
	return err ? err : write_all(STDOUT_FILENO, text, "standard output");
}
