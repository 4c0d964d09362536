#include "agent/binary/data_ref.h"

#include <stdlib.h>

#include "tests/support/assertions.h"

enum { PC = 0x401000 };

static size_t read_refs(const uint8_t *code, size_t size, struct data_ref **ret)
{
	struct tail_copy copy = tail_copy(code, size);
	size_t count = 0;

	assert_success(data_ref_read(copy.bytes, size, PC, ret, &count));
	tail_copy_fini(&copy);
	return count;
}

static void reads_and_writes_have_their_width_and_addresses_none(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00,       /* lea 0x10(%rip) */
		0x48, 0x8b, 0x1d, 0x20, 0x00, 0x00, 0x00,       /* mov 0x20(%rip), %rbx */
		0x8b, 0x0d, 0xf0, 0xff, 0xff, 0xff,             /* mov -0x10(%rip), %ecx */
		0xc6, 0x05, 0x30, 0x00, 0x00, 0x00, 0x01,       /* movb $1, 0x30(%rip) */
		0x48, 0x83, 0x3d, 0x40, 0x00, 0x00, 0x00, 0x00, /* cmpq $0, 0x40(%rip) */
		0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x48, 0x8b, 0x03,                         /* nopw; mov (%rbx), %rax */
		0xf0, 0x0f, 0xc1, 0x05, 0x50, 0x00, 0x00, 0x00, /* lock xadd %eax, 0x50(%rip) */
		0xc3,
	};
	const struct data_ref expected[] = {
		{ PC + 7 + 0x10, 0 },  { PC + 14 + 0x20, 8 }, { PC + 20 - 0x10, 4 },
		{ PC + 27 + 0x30, 1 }, { PC + 35 + 0x40, 8 }, { PC + 55 + 0x50, 4 },
	};
	struct data_ref *refs;
	size_t count = read_refs(code, sizeof(code), &refs);

	(void)state;
	assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(refs[i].addr, expected[i].addr);
		assert_int_equal(refs[i].width, expected[i].width);
	}
	free(refs);
}

static void bytes_that_are_no_instruction_end_it(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x1d, 0x20, 0x00, 0x00, 0x00, /* mov 0x20(%rip), %rbx */
		0x06,                                     /* no instruction in 64-bit mode */
		0x48, 0x8b, 0x1d, 0x20, 0x00, 0x00, 0x00,
	};
	struct data_ref *refs;

	(void)state;
	assert_int_equal(read_refs(code, sizeof(code), &refs), 1);
	free(refs);
}

static void every_truncation_is_read_up_to_its_last_whole_instruction(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x1d, 0x20, 0, 0, 0, 0x8b, 0x0d, 0x10, 0, 0, 0
	};

	(void)state;
	for (size_t size = 0; size <= sizeof(code); size++) {
		struct data_ref *refs;

		assert_int_equal(read_refs(code, size, &refs), (size >= 7) + (size >= 13));
		free(refs);
	}
}

static void more_references_than_the_limit_are_left_out(void **state)
{
	enum { INSTRUCTION_SIZE = 7, COUNT = DATA_REF_COUNT_MAX + 10 };
	static uint8_t code[COUNT * INSTRUCTION_SIZE];
	static const uint8_t load[INSTRUCTION_SIZE] = { 0x48, 0x8b, 0x1d, 0x20, 0, 0, 0 };
	struct data_ref *refs;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		memcpy(code + i * INSTRUCTION_SIZE, load, INSTRUCTION_SIZE);
	assert_int_equal(read_refs(code, sizeof(code), &refs), DATA_REF_COUNT_MAX);
	free(refs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_writes_have_their_width_and_addresses_none),
		cmocka_unit_test(bytes_that_are_no_instruction_end_it),
		cmocka_unit_test(every_truncation_is_read_up_to_its_last_whole_instruction),
		cmocka_unit_test(more_references_than_the_limit_are_left_out),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
