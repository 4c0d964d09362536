#include "agent/goruntime/closure_site.h"

#include "agent/goruntime/closure_site_code.h"
#include "agent/goruntime/module.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_program.h"

enum { TYPES = 0x700000, TYPES_SIZE = 0x10000, MAKER = FAKE_TEXT, MADE = FAKE_TEXT + 0x300 };

static const struct fake_function functions[] = {
	{ .name = "main.maker" },
	{ .name = "main.other" },
	{ .name = "main.more" },
	{ .name = "main.maker.func1" },
};

/* Code that is written instruction by instruction, to lie at MAKER. */
struct code {
	uint8_t bytes[512];
	size_t size;
};

static void put(struct code *code, const char *bytes, size_t size)
{
	assert_true(code->size + size <= sizeof(code->bytes));
	memcpy(code->bytes + code->size, bytes, size);
	code->size += size;
}

#define PUT(code, literal) put(code, literal, sizeof(literal) - 1)

static void put_lea(struct code *code, const char *opcode, taddr target)
{
	int32_t offset = (int32_t)(target - (MAKER + code->size + 7));

	put(code, opcode, 3);
	put(code, (const char *)&offset, sizeof(offset));
}

#define LEA_RAX   "\x48\x8d\x05"
#define LEA_RBX   "\x48\x8d\x1d"
#define LEA_RCX   "\x48\x8d\x0d"
#define LEA_R9    "\x4c\x8d\x0d"
#define CALL      "\xe8\x01\x02\x03\x04"
#define STORE_RCX "\x48\x89\x08" /* mov %rcx, (%rax) */

/* What go1.19 to go1.26 make. */
static void put_site(struct code *code, taddr type, taddr made)
{
	put_lea(code, LEA_RAX, type);
	PUT(code, CALL);
	put_lea(code, LEA_RCX, made);
	PUT(code, STORE_RCX);
}

struct found {
	struct closure_site sites[8];
	size_t count;
};

static struct error *collect(void *arg, const struct closure_site *site)
{
	struct found *found = arg;

	assert_true(found->count < 8);
	found->sites[found->count++] = *site;
	return NULL;
}

static struct found scan(const struct code *code, size_t size)
{
	const struct module module = { .text = FAKE_TEXT,
				       .etext = FAKE_TEXT + 0x1000,
				       .types = TYPES,
				       .etypes = TYPES + TYPES_SIZE };
	struct tail_copy copy = tail_copy(code->bytes, size);
	struct found found = { 0 };

	assert_success(closure_site_scan(copy.bytes, size, MAKER, &module, collect, &found));
	tail_copy_fini(&copy);
	return found;
}

static void assert_one(const struct code *code, taddr type, taddr made)
{
	struct found found = scan(code, code->size);

	assert_int_equal(found.count, 1);
	assert_int_equal(found.sites[0].type, type);
	assert_int_equal(found.sites[0].code, made);
}

static void assert_none(const struct code *code)
{
	assert_int_equal(scan(code, code->size).count, 0);
}

static void a_closure_has_the_type_it_is_allocated_as(void **state)
{
	struct code code = { 0 };

	(void)state;
	PUT(&code, "\x55\x48\x89\xe5");
	put_site(&code, TYPES + 0x120, MADE);
	assert_one(&code, TYPES + 0x120, MADE);
}

static void arguments_may_lie_on_the_stack_or_in_any_register(void **state)
{
	struct code stack = { 0 }, registers = { 0 };

	(void)state;
	put_lea(&stack, LEA_RAX, TYPES); /* go1.15 */
	PUT(&stack, "\x48\x89\x04\x24" CALL "\x48\x8b\x44\x24\x08");
	put_lea(&stack, LEA_RCX, MADE);
	PUT(&stack, STORE_RCX);
	assert_one(&stack, TYPES, MADE);

	PUT(&registers, "\xb8\x10\x00\x00\x00"); /* go1.27: size, type, zeroed */
	put_lea(&registers, LEA_RBX, TYPES + 8);
	PUT(&registers, "\xb9\x01\x00\x00\x00" CALL);
	put_lea(&registers, LEA_R9, MADE);
	PUT(&registers, "\x84\x00\x4c\x89\x08"); /* test %al, (%rax); mov %r9, (%rax) */
	assert_one(&registers, TYPES + 8, MADE);
}

static void the_type_of_a_captured_variable_is_not_the_closures(void **state)
{
	struct code code = { 0 };

	(void)state;
	put_lea(&code, LEA_RAX, TYPES + 0x40);
	PUT(&code, CALL);
	put_site(&code, TYPES + 0x80, MADE);
	assert_one(&code, TYPES + 0x80, MADE);
}

static void what_looks_alike_is_no_closure(void **state)
{
	struct code uncalled = { 0 }, unstored = { 0 }, other = { 0 }, offset = { 0 },
		    outside = { 0 };
	struct code apart = { 0 };

	(void)state;
	put_lea(&uncalled, LEA_RAX, TYPES);
	put_lea(&uncalled, LEA_RCX, MADE);
	PUT(&uncalled, STORE_RCX);
	assert_none(&uncalled);

	put_lea(&unstored, LEA_RAX, TYPES);
	PUT(&unstored, CALL);
	put_lea(&unstored, LEA_RCX, MADE);
	assert_none(&unstored);

	put_lea(&other, LEA_RAX, TYPES);
	PUT(&other, CALL);
	put_lea(&other, LEA_RCX, MADE);
	PUT(&other, "\x48\x89\x10"); /* mov %rdx, (%rax) */
	assert_none(&other);

	put_lea(&offset, LEA_RAX, TYPES);
	PUT(&offset, CALL);
	put_lea(&offset, LEA_RCX, MADE);
	PUT(&offset, "\x48\x89\x48\x08"); /* mov %rcx, 8(%rax) */
	assert_none(&offset);

	put_site(&outside, TYPES + TYPES_SIZE, MADE);
	put_site(&outside, TYPES, FAKE_TEXT + 0x1000);
	assert_none(&outside);

	put_lea(&apart, LEA_RAX, TYPES);
	PUT(&apart, CALL);
	for (int i = 0; i < CLOSURE_SITE_SIZE_MAX; i++)
		PUT(&apart, "\x90");
	put_lea(&apart, LEA_RCX, MADE);
	PUT(&apart, STORE_RCX);
	assert_none(&apart);
}

static void code_that_is_cut_has_the_sites_before_the_cut(void **state)
{
	struct code code = { 0 };
	size_t whole;

	(void)state;
	put_site(&code, TYPES, MADE);
	whole = code.size;
	put_site(&code, TYPES + 8, MADE + 8);
	for (size_t size = 0; size < code.size; size++)
		assert_int_equal(scan(&code, size).count, size >= whole);
	assert_int_equal(scan(&code, code.size).count, 2);
}

/* A program whose first function has this code. */
static struct closure_sites *sites_of(const struct code *code, bool is_mapped)
{
	struct fake_program program;
	struct module_table *modules = NULL;
	struct closure_sites *sites = NULL;
	struct memory *memory;

	fake_program_init(&program, functions, 4);
	fake_program_set(&program, program.moduledata, program.layout.moduledata_types, TYPES);
	fake_program_set(&program, program.moduledata, program.layout.moduledata_etypes,
			 TYPES + TYPES_SIZE);
	if (is_mapped) {
		fake_memory_map(program.memory, FAKE_TEXT, 4 * FAKE_FUNCTION_SIZE);
		memcpy(fake_memory_bytes(program.memory, FAKE_TEXT, code->size), code->bytes,
		       code->size);
	}
	memory = fake_memory_memory(program.memory);
	assert_success(module_table_read(memory, &program.layout, &modules));
	assert_success(closure_sites_read(memory, modules, &sites));
	module_table_free(modules);
	fake_program_fini(&program);
	return sites;
}

static void sites_are_found_by_their_function(void **state)
{
	struct code code = { 0 };
	struct closure_sites *sites;

	(void)state;
	put_site(&code, TYPES + 0x20, MADE);
	put_site(&code, TYPES + 0x10, FAKE_TEXT + 0x200);
	put_site(&code, TYPES + 0x20, MADE); /* its maker was inlined */
	sites = sites_of(&code, true);
	assert_int_equal(closure_sites_find(sites, MADE), TYPES + 0x20);
	assert_int_equal(closure_sites_find(sites, FAKE_TEXT + 0x200), TYPES + 0x10);
	assert_int_equal(closure_sites_find(sites, FAKE_TEXT), 0);
	closure_sites_free(sites);
}

static void sites_that_differ_say_nothing(void **state)
{
	struct code code = { 0 };
	struct closure_sites *sites;

	(void)state;
	put_site(&code, TYPES + 0x20, MADE);
	put_site(&code, TYPES + 0x10, MADE);
	put_site(&code, TYPES + 0x20, MADE);
	sites = sites_of(&code, true);
	assert_int_equal(closure_sites_find(sites, MADE), 0);
	closure_sites_free(sites);
}

static void text_that_cannot_be_read_has_no_sites(void **state)
{
	struct closure_sites *sites = sites_of(&(struct code){ 0 }, false);

	(void)state;
	assert_int_equal(closure_sites_find(sites, MADE), 0);
	closure_sites_free(sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closure_has_the_type_it_is_allocated_as),
		cmocka_unit_test(arguments_may_lie_on_the_stack_or_in_any_register),
		cmocka_unit_test(the_type_of_a_captured_variable_is_not_the_closures),
		cmocka_unit_test(what_looks_alike_is_no_closure),
		cmocka_unit_test(code_that_is_cut_has_the_sites_before_the_cut),
		cmocka_unit_test(sites_are_found_by_their_function),
		cmocka_unit_test(sites_that_differ_say_nothing),
		cmocka_unit_test(text_that_cannot_be_read_has_no_sites),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
