/* The beginnings of closures' functions as Go's compiler makes them. */
#include "agent/binary/closure_load.h"

#include "tests/support/assertions.h"

enum { ENTRY = 0x480ce0, RAX = 0, RDX = 1, RCX = 2 };

static struct closure_load loads[CLOSURE_LOADS_MAX];

static unsigned find(const uint8_t *code, size_t size)
{
	struct closure_reader *reader = NULL;
	unsigned count;

	assert_success(closure_reader_new(&reader));
	count = closure_reader_find(reader, code, size, ENTRY, loads);
	closure_reader_free(reader);
	return count;
}

static void assert_load(unsigned i, size_t at, uint64_t offset, int64_t place, bool in_frame)
{
	assert_int_equal(loads[i].pc, ENTRY + at);
	assert_int_equal(loads[i].offset, offset);
	assert_int_equal(loads[i].place, place);
	assert_int_equal(loads[i].in_frame, in_frame);
}

static void what_is_loaded_is_known_by_register_and_place_in_the_frame(void **state)
{
	static const uint8_t code[] = {
		0x49, 0x3b, 0x66, 0x10,       /* cmp 0x10(%r14),%rsp */
		0x76, 0x20,                   /* jbe */
		0x55,                         /* push %rbp */
		0x48, 0x89, 0xe5,             /* mov %rsp,%rbp */
		0x48, 0x83, 0xec, 0x50,       /* sub $0x50,%rsp */
		0x48, 0x8b, 0x4a, 0x10,       /* mov 0x10(%rdx),%rcx */
		0x48, 0x8b, 0x52, 0x08,       /* mov 0x8(%rdx),%rdx */
		0x48, 0x89, 0x54, 0x24, 0x48, /* mov %rdx,0x48(%rsp) */
		0x48, 0x8b, 0x4a, 0x18,       /* mov 0x18(%rdx),%rcx: not of the closure */
	};

	(void)state;
	assert_int_equal(find(code, sizeof(code)), 3);
	assert_load(0, 18, 16, RCX, false);
	assert_load(1, 22, 8, RDX, false);
	/* sp is 0x60 below the CFA: the return address, rbp, 0x50 */
	assert_load(2, 27, 8, 0x48 - 0x60, true);
}

static void a_closure_that_was_put_in_the_frame_is_taken_out_again(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x18,       /* sub $0x18,%rsp */
		0x48, 0x89, 0x54, 0x24, 0x08, /* mov %rdx,0x8(%rsp) */
		0xe8, 0,    0,    0,    0,    /* call */
		0x48, 0x8b, 0x42, 0x08,       /* mov 0x8(%rdx),%rax: rdx is anything now */
		0x48, 0x8b, 0x4c, 0x24, 0x08, /* mov 0x8(%rsp),%rcx */
		0x48, 0x8d, 0x41, 0x20,       /* lea 0x20(%rcx),%rax */
	};

	(void)state;
	assert_int_equal(find(code, sizeof(code)), 1);
	assert_load(0, sizeof(code), 32, RAX, false);
	assert_true(loads[0].is_address);
}

static void functions_that_are_no_closures_load_nothing(void **state)
{
	static const uint8_t code[] = {
		0x31, 0xd2,             /* xor %edx,%edx */
		0x48, 0x8b, 0x4a, 0x10, /* mov 0x10(%rdx),%rcx */
	};

	(void)state;
	assert_int_equal(find(code, sizeof(code)), 0);
	assert_int_equal(find(code, 0), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_loaded_is_known_by_register_and_place_in_the_frame),
		cmocka_unit_test(a_closure_that_was_put_in_the_frame_is_taken_out_again),
		cmocka_unit_test(functions_that_are_no_closures_load_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("closure loads", tests, NULL, NULL);
}
