/*
 * The yardstick of a snapshot: how long a bare fork of a C process of a given resident size takes,
 * which the process cannot get below. Like the other programs of the benchmarks it prints a line of
 * JSON when it is ready and answers each line of its input, with the seconds of one fork.
 *
 * usage: fork BYTES HUGE_BYTES, HUGE_BYTES of BYTES being in huge pages
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void hold(size_t size, int advice)
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

	if (argc != 3) {
		fprintf(stderr, "usage: fork BYTES HUGE_BYTES\n");
		return 2;
	}
	size = strtoull(argv[1], NULL, 10);
	huge = strtoull(argv[2], NULL, 10);
	hold(huge, MADV_HUGEPAGE);
	hold(size > huge ? size - huge : 0, MADV_NOHUGEPAGE);
	printf("{\"event\":\"ready\"}\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("{\"seconds\":%.9f}\n", time_fork());
		fflush(stdout);
	}
	return 0;
}
