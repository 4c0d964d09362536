/*
 * The registers of a stopped thread: the kernel's own struct, to be put back as it was, and a view
 * of it that does not depend on the architecture's names.
 */
#ifndef AGENT_TARGET_REGISTERS_H
#define AGENT_TARGET_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum { REGISTERS_GENERAL = 16 };

struct registers {
	uint64_t pc, sp, bp;
	uint64_t tls; /* the thread pointer (amd64: fs_base) */
	/* amd64: in the order of pt_regs: r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di sp */
	uint64_t general[REGISTERS_GENERAL];
};

void registers_view(const struct user_regs_struct *raw, struct registers *ret);

#endif
