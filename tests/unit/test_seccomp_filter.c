#include "tests/support/assertions.h"

#include <linux/audit.h>
#include <sys/syscall.h>

#include "agent/target/seccomp_filter.h"

enum { ALLOW = SECCOMP_RET_ALLOW, REFUSE = SECCOMP_RET_ERRNO | 1 };

static const struct seccomp_data data = {
	.nr = SYS_clone,
	.arch = AUDIT_ARCH_X86_64,
	.instruction_pointer = 0x1122334455667788,
	.args = { 0x400, 0xc000123000, 3, 4, 5, 0xfedcba9876543210 },
};

#define WORD(field) (offsetof(struct seccomp_data, field))
#define LOAD(k)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (k))
#define RET(k)      BPF_STMT(BPF_RET | BPF_K, (k))
#define RET_A       BPF_STMT(BPF_RET | BPF_A, 0)

static void assert_returns(const struct sock_filter *code, size_t count, uint32_t expected)
{
	uint32_t returned = ~expected;

	assert_true(seccomp_filter_run(code, count, &data, &returned));
	assert_int_equal(returned, expected);
}

static void assert_refused(const struct sock_filter *code, size_t count)
{
	uint32_t returned = 7;

	assert_false(seccomp_filter_run(code, count, &data, &returned));
	assert_int_equal(returned, 7);
}

#define RETURNS(expected, ...)                                                                     \
	assert_returns((const struct sock_filter[]){ __VA_ARGS__ },                                \
		       sizeof((const struct sock_filter[]){ __VA_ARGS__ }) /                       \
			   sizeof(struct sock_filter),                                             \
		       expected)
#define REFUSED(...)                                                                               \
	assert_refused((const struct sock_filter[]){ __VA_ARGS__ },                                \
		       sizeof((const struct sock_filter[]){ __VA_ARGS__ }) /                       \
			   sizeof(struct sock_filter))

static void every_word_of_a_call_is_seen(void **state)
{
	(void)state;
	RETURNS(SYS_clone, LOAD(WORD(nr)), RET_A);
	RETURNS(AUDIT_ARCH_X86_64, LOAD(WORD(arch)), RET_A);
	RETURNS(0x55667788, LOAD(WORD(instruction_pointer)), RET_A);
	RETURNS(0x11223344, LOAD(WORD(instruction_pointer) + 4), RET_A);
	RETURNS(0x123000, LOAD(WORD(args[1])), RET_A);
	RETURNS(0xc0, LOAD(WORD(args[1]) + 4), RET_A);
	RETURNS(0x76543210, LOAD(WORD(args[5])), RET_A);
	RETURNS(0xfedcba98, LOAD(WORD(args[5]) + 4), RET_A);
	REFUSED(LOAD(64), RET_A);
	REFUSED(LOAD(UINT32_MAX - 3), RET_A);
	REFUSED(LOAD(2), RET_A);
	REFUSED(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), RET_A);
	REFUSED(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), RET_A);
}

static void values_are_moved(void **state)
{
	(void)state;
	RETURNS(5, BPF_STMT(BPF_LD | BPF_IMM, 5), RET_A);
	RETURNS(64, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), RET_A);
	RETURNS(64, BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_MISC | BPF_TXA, 0), RET_A);
	RETURNS(5, BPF_STMT(BPF_LD | BPF_IMM, 5), BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_IMM, 6), BPF_STMT(BPF_MISC | BPF_TXA, 0), RET_A);
	RETURNS(5, BPF_STMT(BPF_LD | BPF_IMM, 5), BPF_STMT(BPF_ST, 15),
		BPF_STMT(BPF_LD | BPF_IMM, 6), BPF_STMT(BPF_LD | BPF_MEM, 15), RET_A);
	RETURNS(9, BPF_STMT(BPF_LDX | BPF_IMM, 9), BPF_STMT(BPF_STX, 0),
		BPF_STMT(BPF_LDX | BPF_IMM, 1), BPF_STMT(BPF_LDX | BPF_MEM, 0),
		BPF_STMT(BPF_MISC | BPF_TXA, 0), RET_A);
	REFUSED(BPF_STMT(BPF_ST, 16), RET_A);
	REFUSED(BPF_STMT(BPF_STX, UINT32_MAX), RET_A);
	REFUSED(BPF_STMT(BPF_LD | BPF_MEM, 16), RET_A);
	REFUSED(BPF_STMT(BPF_LDX | BPF_MEM, 16), RET_A);
}

static void values_are_computed(void **state)
{
	static const struct {
		uint16_t op;
		uint32_t a, b, result;
	} cases[] = {
		{ BPF_ADD, UINT32_MAX, 2, 1 }, { BPF_SUB, 1, 2, UINT32_MAX },
		{ BPF_MUL, 1u << 31, 2, 0 },   { BPF_DIV, 7, 2, 3 },
		{ BPF_AND, 12, 10, 8 },        { BPF_OR, 12, 10, 14 },
		{ BPF_XOR, 12, 10, 6 },        { BPF_LSH, 3, 31, 1u << 31 },
		{ BPF_RSH, 1u << 31, 31, 1 },  { BPF_NEG, 1, 0, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint16_t op = cases[i].op;

		RETURNS(cases[i].result, BPF_STMT(BPF_LD | BPF_IMM, cases[i].a),
			BPF_STMT(BPF_ALU | op | BPF_K, cases[i].b), RET_A);
		RETURNS(cases[i].result, BPF_STMT(BPF_LDX | BPF_IMM, cases[i].b),
			BPF_STMT(BPF_LD | BPF_IMM, cases[i].a), BPF_STMT(BPF_ALU | op | BPF_X, 0),
			RET_A);
	}
	REFUSED(BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), RET_A);
	REFUSED(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), RET_A);
}

static void jumps_go_forward(void **state)
{
	static const struct {
		uint16_t op;
		uint32_t a, b;
		bool holds;
	} cases[] = {
		{ BPF_JEQ, 5, 5, true },          { BPF_JEQ, 5, 6, false },
		{ BPF_JGT, UINT32_MAX, 5, true }, { BPF_JGT, 5, 5, false },
		{ BPF_JGE, 5, 5, true },          { BPF_JGE, 4, 5, false },
		{ BPF_JSET, 6, 2, true },         { BPF_JSET, 6, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t expected = cases[i].holds ? 1 : 2;
		uint16_t op = cases[i].op;

		RETURNS(expected, BPF_STMT(BPF_LD | BPF_IMM, cases[i].a),
			BPF_JUMP(BPF_JMP | op | BPF_K, cases[i].b, 0, 1), RET(1), RET(2));
		RETURNS(expected, BPF_STMT(BPF_LDX | BPF_IMM, cases[i].b),
			BPF_STMT(BPF_LD | BPF_IMM, cases[i].a),
			BPF_JUMP(BPF_JMP | op | BPF_X, 0, 1, 2), RET(3), RET(1), RET(2));
	}
	RETURNS(2, BPF_STMT(BPF_JMP | BPF_JA, 1), RET(1), RET(2));
	REFUSED(BPF_STMT(BPF_JMP | BPF_JA, 1), RET(1));
	REFUSED(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RET(1));
	REFUSED(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), RET(1));
	REFUSED(BPF_JUMP(BPF_JMP | 0xf0 | BPF_K, 0, 0, 0), RET(1));
}

static void a_program_must_return(void **state)
{
	(void)state;
	assert_refused(NULL, 0);
	REFUSED(BPF_STMT(BPF_LD | BPF_IMM, 5));
	for (unsigned code = 0; code <= UINT16_MAX; code++) {
		const struct sock_filter insn = { .code = (uint16_t)code, .k = 3, .jt = 3 };
		uint32_t returned;

		if (BPF_CLASS(code) != BPF_RET)
			assert_false(seccomp_filter_run(&insn, 1, &data, &returned));
	}
}

/* What a container's profile looks like: an architecture, a call, its flags. */
static void an_ordinary_filter_is_followed(void **state)
{
	const struct sock_filter code[] = {
		LOAD(WORD(arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RET(SECCOMP_RET_KILL_PROCESS),
		LOAD(WORD(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		LOAD(WORD(args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10000000, 0, 1),
		RET(REFUSE),
		RET(ALLOW),
	};
	struct seccomp_data other = data;
	uint32_t returned;

	(void)state;
	assert_returns(code, sizeof(code) / sizeof(*code), ALLOW);
	other.args[0] |= 0x10000000;
	assert_true(seccomp_filter_run(code, sizeof(code) / sizeof(*code), &other, &returned));
	assert_int_equal(returned, REFUSE);
	other.arch = AUDIT_ARCH_I386;
	assert_true(seccomp_filter_run(code, sizeof(code) / sizeof(*code), &other, &returned));
	assert_int_equal(returned, SECCOMP_RET_KILL_PROCESS);
}

static void the_stricter_of_two_counts(void **state)
{
	/* from strict to lax */
	static const uint32_t order[] = {
		SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
		SECCOMP_RET_ERRNO,        SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_TRACE,
		SECCOMP_RET_LOG,          SECCOMP_RET_ALLOW,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		for (size_t j = 0; j < sizeof(order) / sizeof(*order); j++) {
			uint32_t strictest = order[i < j ? i : j];

			assert_int_equal(seccomp_filter_stricter(order[i], order[j]), strictest);
		}
		assert_int_equal(seccomp_filter_harmless(order[i] | 38),
				 order[i] == SECCOMP_RET_ERRNO || order[i] == SECCOMP_RET_LOG ||
				     order[i] == SECCOMP_RET_ALLOW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_of_a_call_is_seen),
		cmocka_unit_test(values_are_moved),
		cmocka_unit_test(values_are_computed),
		cmocka_unit_test(jumps_go_forward),
		cmocka_unit_test(a_program_must_return),
		cmocka_unit_test(an_ordinary_filter_is_followed),
		cmocka_unit_test(the_stricter_of_two_counts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("seccomp filter", tests, NULL, NULL);
}
