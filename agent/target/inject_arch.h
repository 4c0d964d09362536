/*
 * What the injection needs to know about one architecture: Go's functions as bytes, and how the
 * kernel lays out a signal frame. For inject.c.
 */
#ifndef AGENT_TARGET_INJECT_ARCH_H
#define AGENT_TARGET_INJECT_ARCH_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

enum {
	INJECT_CODE_SIZE = 16,        /* bytes of a function that are looked at */
	INJECT_IMAGE_SIZE = 16 << 10, /* what is laid on a signal stack, at most */
};

enum inject_role { INJECT_SYSCALL, INJECT_EXIT, INJECT_SIGRETURN };

/* Where a signal frame and the rest are to be laid, and whose they are. */
struct inject_site {
	taddr lo, hi;          /* the idle signal stack */
	taddr exit, sigreturn; /* functions of the target */
	struct user_regs_struct saved;
	uint64_t mask;           /* blocked signals, as saved */
	uint8_t *extended_state; /* INJECT_IMAGE_SIZE bytes; used up */
	size_t extended_size;
};

struct inject_image {
	taddr addr; /* of its first byte; also the stack pointer of the injected call */
	taddr child_sp;
	size_t size;
	uint8_t bytes[INJECT_IMAGE_SIZE];
};

struct inject_call {
	uint64_t number;
	uint64_t args[4];
};

/* ERROR_UNSUPPORTED_ARCH where there is no injection. */
must_check struct error *inject_arch_check(void);

/* Whether the code is the function of that role; *ret_offset is where it is to be entered. */
bool inject_arch_matches(enum inject_role role, const uint8_t code[INJECT_CODE_SIZE],
			 unsigned *ret_offset);

/* Whether the thread runs in a mode whose frames we know. */
bool inject_arch_usable(const struct user_regs_struct *registers);

/* ERROR_UNSUPPORTED if it does not fit, with room for a signal beneath it. */
must_check struct error *inject_arch_image(const struct inject_site *site,
					   struct inject_image *ret);

/* The registers with which the call runs at `syscall; ret`. */
void inject_arch_call(const struct user_regs_struct *saved, taddr syscall, taddr sp,
		      const struct inject_call *call, struct user_regs_struct *ret);

/* The call as a seccomp filter sees it. */
void inject_arch_filter_data(const struct user_regs_struct *registers, struct seccomp_data *ret);

int64_t inject_arch_result(const struct user_regs_struct *registers);

/* Whether the result says that the kernel is about to run the call again. */
bool inject_arch_restarts(int64_t result);

#endif
