/*
 * The yardstick of a snapshot: how long a bare fork of a C process of a given resident size takes,
 * which the process cannot get below. Like the other programs of the benchmarks it prints a line of
 * JSON when it is ready and answers each line of its input, with the seconds of one fork.
 *
 * The kernel takes longer where neighbouring pages lie anywhere in the machine's memory, as those
 * of a heap do that has grown by and by: it looks at the description of each, and they are in its
 * own memory side by side as the pages are in the machine's. A process that touches its memory from
 * front to back gets many pages in a row. Scattered, it touches them in random order.
 *
 * usage: fork BYTES HUGE_BYTES [scattered], HUGE_BYTES of BYTES being in huge pages
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Fisher and Yates, with random numbers that are the same in every run. */
static void touch_in_random_order(char *memory, size_t size)
{
	size_t count = size / PAGE_BYTES;
	size_t *order = malloc((count + 1) * sizeof(*order));

	if (!order) {
		perror("fork: malloc");
		exit(1);
	}
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)lrand48() % i, page = order[i - 1];

		order[i - 1] = order[other];
		order[other] = page;
	}
	for (size_t i = 0; i < count; i++)
		memory[order[i] * PAGE_BYTES] = 1;
	free(order);
}

static void hold(size_t size, int advice, bool scattered)
{
	void *memory;

	if (size == 0)
		return;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("fork: mmap");
		exit(1);
	}
	madvise(memory, size, advice); /* a kernel without huge pages refuses, and has none */
	if (scattered)
		touch_in_random_order(memory, size);
	memset(memory, 1, size);
}

/* The time until the parent runs again, as a target's threads would. */
static double time_fork(void)
{
	double start = now(), seconds;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	seconds = now() - start;
	if (child < 0) {
		perror("fork: fork");
		exit(1);
	}
	waitpid(child, NULL, 0);
	return seconds;
}

int main(int argc, char **argv)
{
	size_t size, huge;
	char line[64];

	if (argc != 3 && (argc != 4 || strcmp(argv[3], "scattered") != 0)) {
		fprintf(stderr, "usage: fork BYTES HUGE_BYTES [scattered]\n");
		return 2;
	}
	size = strtoull(argv[1], NULL, 10);
	huge = strtoull(argv[2], NULL, 10);
	hold(huge, MADV_HUGEPAGE, false);
	hold(size > huge ? size - huge : 0, MADV_NOHUGEPAGE, argc == 4);
	printf("{\"event\":\"ready\"}\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("{\"seconds\":%.9f}\n", time_fork());
		fflush(stdout);
	}
	return 0;
}
