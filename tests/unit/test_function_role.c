#include "agent/goruntime/function_role.h"

#include "agent/goruntime/addr_map.h"
#include "tests/support/assertions.h"

enum { RUNTIME = ROLE_RUNTIME | ROLE_SYSTEM_CALL };

static void functions_are_told_by_name(void **state)
{
	(void)state;
	assert_int_equal(function_roles("runtime.goexit"), RUNTIME | ROLE_TOP);
	assert_int_equal(function_roles("runtime.goexit1"), RUNTIME);
	assert_int_equal(function_roles("runtime.asyncPreempt"), RUNTIME | ROLE_INJECTED);
	assert_int_equal(function_roles("runtime.asyncPreempt2"), RUNTIME);
	assert_int_equal(function_roles("runtime.copystack"),
			 RUNTIME | ROLE_MOVES_STACK | ROLE_UNWALKABLE);
	assert_int_equal(function_roles("reflect.makeFuncStub"), ROLE_REFLECT_STUB);
	assert_int_equal(function_roles("internal/runtime/maps.memHashAES"), RUNTIME);
	assert_int_equal(function_roles("syscall.RawSyscall6"), ROLE_SYSTEM_CALL);
	assert_int_equal(function_roles("syscallers.RawSyscall6"), 0);
	assert_int_equal(function_roles("main.goexit"), 0);
	assert_int_equal(function_roles("runtime/debug.SetGCPercent"), 0);
	assert_int_equal(function_roles(""), ROLE_RUNTIME); /* assembly of nobody's */
}

/* One for each register, then one for each number of words, and a body that all of them share. */
static void write_barriers_have_many_names(void **state)
{
	static const char *const names[] = { "runtime.gcWriteBarrier", "runtime.gcWriteBarrierBX",
					     "runtime.gcWriteBarrier8", "gcWriteBarrier" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(function_roles(names[i]) & ~(uint32_t)ROLE_SYSTEM_CALL,
				 ROLE_RUNTIME | ROLE_UNMAPPED_CALL | ROLE_UNWALKABLE);
}

static void static_assembly_has_no_package(void **state)
{
	(void)state;
	assert_true(function_roles("gogo") & ROLE_SWITCH);
	assert_true(function_roles("runtime.gogo") & ROLE_SWITCH);
	assert_true(function_roles("gosave_systemstack_switch") & ROLE_SWITCH);
	assert_true(function_roles("time.now") & ROLE_CLOCK);
}

static void a_map_keeps_what_it_is_given(void **state)
{
	struct addr_map map = { 0 };
	int values[1000];

	(void)state;
	assert_null(addr_map_get(&map, 1));
	for (unsigned i = 0; i < 1000; i++)
		assert_success(addr_map_put(&map, 0x1000 * (taddr)(i + 1), &values[i]));
	assert_int_equal(map.count, 1000);
	for (unsigned i = 0; i < 1000; i++)
		assert_ptr_equal(addr_map_get(&map, 0x1000 * (taddr)(i + 1)), &values[i]);
	assert_null(addr_map_get(&map, 0x1001));
	assert_null(addr_map_get(&map, 0));
	assert_success(addr_map_put(&map, 0x1000, &values[7]));
	assert_int_equal(map.count, 1000);
	assert_ptr_equal(addr_map_get(&map, 0x1000), &values[7]);
	assert_error(addr_map_put(&map, 0, &values[0]), ERROR_FORMAT);
	addr_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_told_by_name),
		cmocka_unit_test(write_barriers_have_many_names),
		cmocka_unit_test(static_assembly_has_no_package),
		cmocka_unit_test(a_map_keeps_what_it_is_given),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
