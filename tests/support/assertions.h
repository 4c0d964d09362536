/*
 * What every unit test includes: cmocka with the headers it wants before it, checks of errors, and
 * copies of bytes that end at an unmapped page.
 */
#ifndef TESTS_SUPPORT_ASSERTIONS_H
#define TESTS_SUPPORT_ASSERTIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base/error.h"

/* The call succeeds; otherwise its message is printed. */
#define assert_success(call)                                                                       \
	do {                                                                                       \
		struct error *err_ = (call);                                                       \
		if (err_) {                                                                        \
			print_message("# %s\n", error_message(err_));                              \
			error_free(err_);                                                          \
			fail_msg("%s failed", #call);                                              \
		}                                                                                  \
	} while (0)

/* The call fails with that code. */
#define assert_error(call, expected)                                                               \
	do {                                                                                       \
		struct error *err_ = (call);                                                       \
		if (!err_)                                                                         \
			fail_msg("%s succeeded", #call);                                           \
		if (error_code(err_) != (expected))                                                \
			print_message("# %s\n", error_message(err_));                              \
		assert_int_equal(error_code(err_), expected);                                      \
		error_free(err_);                                                                  \
	} while (0)

/*
 * Ends a test that cannot run here. Not cmocka's skip(), which writes "not ok ... # SKIP", a
 * failure to readers of TAP (cmocka 1.1.5).
 */
#define skip_because(reason)                                                                       \
	do {                                                                                       \
		print_message("# not run: %s\n", reason);                                          \
		return;                                                                            \
	} while (0)

struct tail_copy {
	uint8_t *map;
	size_t map_size;
	uint8_t *bytes; /* the copy: reading past its end stops the test */
};

/* Give it back with tail_copy_fini. */
static inline struct tail_copy tail_copy(const void *bytes, size_t size)
{
	const size_t page = 4096;
	size_t room = (size + page - 1) / page * page;
	struct tail_copy copy = { .map_size = room + page };

	copy.map =
	    mmap(NULL, copy.map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(copy.map, MAP_FAILED);
	assert_int_equal(mprotect(copy.map + room, page, PROT_NONE), 0);
	copy.bytes = copy.map + room - size;
	if (size)
		memcpy(copy.bytes, bytes, size);
	return copy;
}

static inline void tail_copy_fini(struct tail_copy *copy)
{
	munmap(copy->map, copy->map_size);
}

#endif
