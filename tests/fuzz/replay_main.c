/*
 * Runs a fuzz target over its corpus: fuzz_x over tests/fuzz/corpus/x of the source tree. Inputs
 * end at an unmapped page. The test fails by crashing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { PAGE_SIZE = 4096, PATH_SIZE = 4096 };

static bool replay(const uint8_t *content, size_t size)
{
	size_t room = (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
	uint8_t *map = mmap(NULL, room + PAGE_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map + room, PAGE_SIZE, PROT_NONE))
		return false;
	if (size)
		memcpy(map + room - size, content, size);
	LLVMFuzzerTestOneInput(map + room - size, size);
	munmap(map, room + PAGE_SIZE);
	return true;
}

static bool replay_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *content = NULL;
	bool done = false;

	if (fd >= 0 && !fstat(fd, &st))
		content = malloc((size_t)st.st_size + 1);
	if (content && read(fd, content, (size_t)st.st_size) == st.st_size)
		done = replay(content, (size_t)st.st_size);
	free(content);
	if (fd >= 0)
		close(fd);
	return done;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir");
	const char *mark = strstr(argv[0], "fuzz_");
	char path[PATH_SIZE];
	struct dirent **entries;
	int folder, count;
	bool failed = false;

	for (const char *next = mark; next; next = strstr(next + 1, "fuzz_"))
		mark = next;
	if (argc != 1 || !mark) {
		fprintf(stderr, "usage: [srcdir=FOLDER] fuzz_TARGET\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".",
		 mark + strlen("fuzz_"));
	count = scandir(path, &entries, not_hidden, alphasort);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (count <= 0 || folder < 0) {
		printf("Bail out! no corpus in %s\n", path);
		return 1;
	}
	printf("1..%d\n", count);
	for (int i = 0; i < count; i++) {
		bool done = replay_file(folder, entries[i]->d_name);

		printf("%sok %d - %s\n", done ? "" : "not ", i + 1, entries[i]->d_name);
		fflush(stdout);
		failed |= !done;
		free(entries[i]);
	}
	free(entries);
	close(folder);
	return failed;
}
