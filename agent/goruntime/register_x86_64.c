/*
 * System V ABI, AMD64 supplement, figure 3.36, for DWARF's numbers; pt_regs of Linux for a
 * thread's; uapi/asm/sigcontext.h; runtime/preempt_amd64.s, whose beginning is the same since
 * go1.15.
 */
#include "agent/goruntime/register.h"

#include "agent/goruntime/goroutine.h"

enum { CONTEXT_REGISTERS = 40, WORD = 8 };

static const struct {
	uint8_t thread;   /* of r15, r14, r13, r12, bp, bx, r11, ... r8, ax, cx, dx, si, di, sp */
	uint8_t context;  /* of r8 ... r15, di, si, bp, bx, dx, ax, cx, sp */
	uint16_t preempt; /* offset */
} registers[REGISTER_COUNT] = {
	{ 10, 13, 0 },                 /* ax */
	{ 12, 12, 16 },                /* dx */
	{ 11, 14, 8 },                 /* cx */
	{ 5, 11, 24 },                 /* bx */
	{ 13, 9, 32 },                 /* si */
	{ 14, 8, 40 },                 /* di */
	{ 4, 10, REGISTER_NOT_KEPT },  /* bp */
	{ 15, 15, REGISTER_NOT_KEPT }, /* sp */
	{ 9, 0, 48 },                  /* r8 */
	{ 8, 1, 56 },
	{ 7, 2, 64 },
	{ 6, 3, 72 },
	{ 3, 4, 80 },
	{ 2, 5, 88 },
	{ 1, 6, 96 },
	{ 0, 7, 104 }, /* r15 */
};

_Static_assert((int)REGISTER_COUNT == (int)THREAD_GPR_COUNT, "all of them are there");

unsigned register_of_thread(unsigned number)
{
	return registers[number].thread;
}

unsigned register_in_context(unsigned number)
{
	return CONTEXT_REGISTERS + WORD * registers[number].context;
}

unsigned register_in_preempt(unsigned number)
{
	return registers[number].preempt;
}
