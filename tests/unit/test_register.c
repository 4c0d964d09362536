/* Where registers are, against what the system's headers say. */
#include "agent/goruntime/register.h"

#include <stddef.h>
#include <sys/user.h>
#include <ucontext.h>

#include "tests/support/assertions.h"

/* A number of DWARF's, the place in what ptrace gives, and that in a signal frame. */
#define ROW(number, name, index)                                                                   \
	{                                                                                          \
		number, offsetof(struct user_regs_struct, name),                                   \
		    offsetof(ucontext_t, uc_mcontext.gregs[index])                                 \
	}

static const struct {
	unsigned number;
	size_t in_ptrace, in_context;
} rows[] = {
	ROW(0, rax, REG_RAX),  ROW(1, rdx, REG_RDX),  ROW(2, rcx, REG_RCX),  ROW(3, rbx, REG_RBX),
	ROW(4, rsi, REG_RSI),  ROW(5, rdi, REG_RDI),  ROW(6, rbp, REG_RBP),  ROW(7, rsp, REG_RSP),
	ROW(8, r8, REG_R8),    ROW(9, r9, REG_R9),    ROW(10, r10, REG_R10), ROW(11, r11, REG_R11),
	ROW(12, r12, REG_R12), ROW(13, r13, REG_R13), ROW(14, r14, REG_R14), ROW(15, r15, REG_R15),
};

static void signal_frames_have_them_where_the_kernel_puts_them(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REGISTER_COUNT; i++)
		assert_int_equal(register_in_context(rows[i].number), rows[i].in_context);
}

/* A thread's come in ptrace's order, without what no pointer is in; the stack pointer is last. */
static void threads_have_them_in_the_order_of_ptrace(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REGISTER_COUNT; i++) {
		unsigned before = 0;

		for (unsigned k = 0; k < REGISTER_COUNT; k++)
			before += rows[k].in_ptrace < rows[i].in_ptrace;
		assert_int_equal(register_of_thread(rows[i].number), before);
	}
}

static void preemption_keeps_all_but_two(void **state)
{
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < REGISTER_COUNT; i++) {
		unsigned offset = register_in_preempt(i);

		if (offset == REGISTER_NOT_KEPT)
			continue;
		assert_int_equal(offset % 8, 0);
		assert_false(kept >> offset / 8 & 1);
		kept |= 1U << offset / 8;
	}
	assert_int_equal(kept, (1 << 14) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_frames_have_them_where_the_kernel_puts_them),
		cmocka_unit_test(threads_have_them_in_the_order_of_ptrace),
		cmocka_unit_test(preemption_keeps_all_but_two),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("registers", tests, NULL, NULL);
}
