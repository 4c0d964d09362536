/*
 * For tests of stacks: a made-up program with a function of each kind that matters, goroutines
 * whose stacks a test writes word by word, and a sink that shows what a scan found.
 */
#ifndef TESTS_SUPPORT_STACK_FIXTURE_H
#define TESTS_SUPPORT_STACK_FIXTURE_H

#include <stdint.h>

#include "agent/goruntime/stack.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

/* Values that no table has: heap pointers, each to be found in one way only. */
enum { HEAP = 0x7000000, LIVE = HEAP, DEAD, OTHER, ARG, OBJECT, INNER, REGISTER, OUTER };

enum stack_fixture_function {
	GOEXIT,
	PARK,
	HOLD,  /* three locals */
	TAKE,  /* two locals, two words of arguments */
	HOUSE, /* two stack objects, and a local before them */
	GUEST, /* its argument is a stack object */
	SIGPANIC,
	CATCH, /* has a deferreturn */
	PREEMPT,
	BARRIER,
	SWITCH,
	CLOCK,
	RUNTIME,
	UNMAPPED, /* a frame without a map */
	OVERFULL, /* its map is larger than its frame */
	STUB,
	KERNEL,          /* assembly that calls the kernel */
	COMPILED_KERNEL, /* the same, from the compiler */
	OWN_KERNEL,      /* the same of the program's own */
	FUNCTIONS
};

struct stack_fixture {
	struct fake_program program;
	struct module_table *modules;
	struct goroutine_table *goroutines;
	struct stack_walker *walker;
	struct fake_sink sink;
	struct stopped_thread threads[1];
	uint32_t thread_count;
};

/* cmocka's, with the fixture as state. */
int stack_fixture_setup(void **state);
int stack_fixture_teardown(void **state);

/* For a second case within a test. */
struct stack_fixture *stack_fixture_renew(void **state);

/* A return address in a function. */
uint64_t stack_fixture_pc(enum stack_fixture_function function);

#define WORDS(array) (array), sizeof(array) / sizeof((array)[0])

/* A goroutine whose innermost frame is function's and begins with the first of the words. */
taddr stack_fixture_g(struct stack_fixture *f, enum stack_fixture_function function,
		      const uint64_t *words, unsigned count);
void stack_fixture_set(struct stack_fixture *f, taddr g, struct layout_field field, uint64_t value);

/* A thread that runs g, at pc in a frame that begins at sp. */
void stack_fixture_run(struct stack_fixture *f, taddr g, uint64_t pc, uint64_t sp);

/* Reads modules and goroutines and makes a walker. */
void stack_fixture_open(struct stack_fixture *f);

/* The same, and scans the first goroutine's stack. */
struct stack_scan stack_fixture_scan(struct stack_fixture *f);

/* How many roots of that kind came. */
unsigned stack_fixture_count(const struct stack_fixture *f, enum root_kind kind);

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, stack_fixture_setup, stack_fixture_teardown)

#endif
