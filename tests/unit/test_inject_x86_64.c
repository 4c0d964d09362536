#include "tests/support/assertions.h"

#include <errno.h>

#include "agent/target/inject_arch.h"
#include "proto/base/bytes.h"

enum {
	LO = 0x10000,
	HI = 0x18000,
	STATE_SIZE = 832, /* legacy region, header, AVX */
	AVX_FEATURES = 7,
	/* of the kernel's rt_sigframe, whose first word is the trampoline */
	FRAME_AX = 8 + 144,
	FRAME_SP = 8 + 160,
	FRAME_IP = 8 + 168,
	FRAME_FPSTATE = 8 + 224,
	FRAME_MASK = 8 + 296,
};

static uint8_t state_bytes[INJECT_IMAGE_SIZE];
static struct inject_image image;

static struct inject_site make_site(void)
{
	struct inject_site site = {
		.lo = LO,
		.hi = HI,
		.exit = 0x401000,
		.sigreturn = 0x402000,
		.saved = { .rip = 0x403000,
			   .rsp = 0xc000012345,
			   .rax = 77,
			   .orig_rax = (uint64_t)-1,
			   .cs = 0x33,
			   .ss = 0x2b },
		.mask = 0x1122334455667788,
		.extended_state = state_bytes,
		.extended_size = STATE_SIZE,
	};

	memset(state_bytes, 0, sizeof(state_bytes));
	store_u64le(state_bytes + 464, AVX_FEATURES);
	store_u64le(state_bytes + 512, AVX_FEATURES);
	return site;
}

static uint64_t word(taddr addr)
{
	assert_true(addr >= image.addr && addr - image.addr + 8 <= image.size);
	return load_u64le(image.bytes + (addr - image.addr));
}

static void the_image_holds_what_the_kernel_looks_for(void **state)
{
	struct inject_site site = make_site();
	taddr fpstate;

	(void)state;
	assert_success(inject_arch_image(&site, &image));
	assert_true(image.addr > LO + 8192);
	assert_true(image.addr + image.size <= HI);
	assert_int_equal(image.addr % 16, 8);
	assert_int_equal(word(image.addr), 0x402000);
	assert_int_equal(word(image.addr + 8), 7);
	assert_int_equal(word(image.addr + FRAME_AX), 77);
	assert_true(word(image.addr + FRAME_SP) == 0xc000012345);
	assert_int_equal(word(image.addr + FRAME_IP), 0x403000);
	assert_true(word(image.addr + FRAME_MASK) == 0x1122334455667788);
	fpstate = word(image.addr + FRAME_FPSTATE);
	assert_int_equal(fpstate % 64, 0);
	assert_int_equal(word(fpstate + 464) & UINT32_MAX, 0x46505853);
	assert_int_equal(word(fpstate + 464) >> 32, STATE_SIZE + 4);
	assert_int_equal(word(fpstate + 472), AVX_FEATURES);
	assert_int_equal(load_u32le(image.bytes + (fpstate - image.addr) + STATE_SIZE), 0x46505845);
}

static void the_alternate_stack_is_left_as_it_is(void **state)
{
	struct inject_site site = make_site();

	(void)state;
	assert_success(inject_arch_image(&site, &image));
	/* uc_stack.ss_size 0: the kernel ignores it, as too small */
	assert_int_equal(word(image.addr + 8 + 32), 0);
}

static void the_child_returns_into_exit_with_0(void **state)
{
	struct inject_site site = make_site();

	(void)state;
	assert_success(inject_arch_image(&site, &image));
	assert_int_equal(image.child_sp % 16, 0);
	/* above the frame: a signal to the parent, handled beneath it, cannot reach it */
	assert_true(image.child_sp > image.addr);
	assert_int_equal(word(image.child_sp), 0x401000);
	assert_int_equal(word(image.child_sp + 16), 0);
}

static void interrupted_calls_are_prepared_as_the_kernel_does(void **state)
{
	static const struct {
		int64_t orig_rax, rax, want_rax;
		uint64_t want_ip;
	} cases[] = {
		{ 202, -512, 202, 0x402ffe },    /* ERESTARTSYS */
		{ 202, -513, 202, 0x402ffe },    /* ERESTARTNOINTR */
		{ 202, -514, 202, 0x402ffe },    /* ERESTARTNOHAND */
		{ 202, -516, -EINTR, 0x403000 }, /* ERESTART_RESTARTBLOCK */
		{ 202, -EINTR, -EINTR, 0x403000 }, { 202, 5, 5, 0x403000 },
		{ -1, -512, -512, 0x403000 }, /* not in a call: a number like any other */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct inject_site site = make_site();

		site.saved.orig_rax = (uint64_t)cases[i].orig_rax;
		site.saved.rax = (uint64_t)cases[i].rax;
		assert_success(inject_arch_image(&site, &image));
		assert_int_equal((int64_t)word(image.addr + FRAME_AX), cases[i].want_rax);
		assert_int_equal(word(image.addr + FRAME_IP), cases[i].want_ip);
	}
}

static void unused_tiles_are_left_out(void **state)
{
	const uint64_t tiles = UINT64_C(1) << 18;
	struct inject_site site = make_site();
	taddr fpstate;

	(void)state;
	store_u64le(state_bytes + 464, AVX_FEATURES | tiles);
	assert_success(inject_arch_image(&site, &image));
	fpstate = word(image.addr + FRAME_FPSTATE);
	assert_int_equal(word(fpstate + 472), AVX_FEATURES);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct inject_site site = make_site();

	(void)state;
	site.lo = HI - 8192;
	assert_error(inject_arch_image(&site, &image), ERROR_UNSUPPORTED);
	site = make_site();
	site.extended_size = 575;
	assert_error(inject_arch_image(&site, &image), ERROR_UNSUPPORTED);
	site = make_site();
	site.extended_size = STATE_SIZE - 1; /* less than its features take */
	assert_error(inject_arch_image(&site, &image), ERROR_UNSUPPORTED);
}

static void only_known_code_matches(void **state)
{
	static const uint8_t osyield[INJECT_CODE_SIZE] = { 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	uint8_t code[INJECT_CODE_SIZE];
	unsigned offset;

	(void)state;
	assert_true(inject_arch_matches(INJECT_SYSCALL, osyield, &offset));
	assert_int_equal(offset, 5);
	assert_false(inject_arch_matches(INJECT_EXIT, osyield, &offset));
	assert_false(inject_arch_matches(INJECT_SIGRETURN, osyield, &offset));
	for (int i = 0; i < 8; i++) {
		memcpy(code, osyield, sizeof(code));
		code[i] ^= 1;
		assert_false(inject_arch_matches(INJECT_SYSCALL, code, &offset));
	}
}

static void the_call_changes_what_it_needs_and_nothing_else(void **state)
{
	const struct inject_call call = { 56, { 1, 2, 3, 4 } };
	struct user_regs_struct saved = {
		.rbx = 9, .r12 = 8, .fs_base = 7, .eflags = 0x202, .orig_rax = 202
	};
	struct user_regs_struct got;

	(void)state;
	inject_arch_call(&saved, 0x1005, 0x2008, &call, &got);
	assert_int_equal(got.rip, 0x1005);
	assert_int_equal(got.rsp, 0x2008);
	assert_int_equal(got.rax, 56);
	assert_int_equal((int64_t)got.orig_rax, -1);
	assert_int_equal(got.rdi, 1);
	assert_int_equal(got.rsi, 2);
	assert_int_equal(got.rdx, 3);
	assert_int_equal(got.r10, 4);
	assert_int_equal(got.rbx, 9);
	assert_int_equal(got.r12, 8);
	assert_int_equal(got.fs_base, 7);
	assert_int_equal(got.eflags, 0x202);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_image_holds_what_the_kernel_looks_for),
		cmocka_unit_test(the_alternate_stack_is_left_as_it_is),
		cmocka_unit_test(the_child_returns_into_exit_with_0),
		cmocka_unit_test(interrupted_calls_are_prepared_as_the_kernel_does),
		cmocka_unit_test(unused_tiles_are_left_out),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(only_known_code_matches),
		cmocka_unit_test(the_call_changes_what_it_needs_and_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
