/* Where goroutines come from: functions and modules. */
#include "tests/support/assertions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/binary/build_info.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/module.h"
#include "agent/report/goroutine_origin.h"
#include "tests/support/fake_program.h"

static char *dependencies[] = { "example.org/dep", "example.org/dep/v2", "gopkg.in/yaml.v3" };

static const struct build_info build = {
	.path = "shop/checkout/cmd/server",
	.module = "shop/checkout",
	.dependencies = dependencies,
	.dependency_count = 3,
};

static void assert_module(const char *function, const char *expected)
{
	const char *module = origin_module_of(&build, function);

	if (!expected) {
		assert_null(module);
		return;
	}
	assert_non_null(module);
	assert_string_equal(module, expected);
}

static void the_longest_module_path_has_a_package(void **state)
{
	(void)state;
	assert_module("main.main.func1", "shop/checkout");
	assert_module("shop/checkout/cart.(*Cart).Run", "shop/checkout");
	assert_module("example.org/dep.Start", "example.org/dep");
	assert_module("example.org/dep/inner.Start.func2", "example.org/dep");
	assert_module("example.org/dep/v2/inner.Start", "example.org/dep/v2");
	assert_module("gopkg.in/yaml%2ev3.Parse", "gopkg.in/yaml.v3");
	assert_module("gopkg.in/yaml.v3/inner.Parse", "gopkg.in/yaml.v3");
	assert_module("gopkg.in/yaml%2.Parse", NULL);
	assert_module("example.org/depot.Start", NULL);
	assert_module("example.org/dep.Do[example.org/dep/v2/inner.T]", "example.org/dep");
}

static void packages_without_a_point_are_the_standard_librarys(void **state)
{
	(void)state;
	assert_module("runtime.main", "std");
	assert_module("net/http.(*conn).serve", "std");
	assert_module("internal/poll.(*FD).Read", "std");
	assert_null(origin_module_of(NULL, "runtime.main"));
}

static void a_program_without_a_module_goes_by_its_path(void **state)
{
	static const struct build_info bare = { .path = "command-line-arguments", .module = "" };

	(void)state;
	assert_string_equal(origin_module_of(&bare, "main.main"), "command-line-arguments");
}

enum { WORK, MAIN, SHAPED, FUNCTIONS };

static const struct fake_function functions[FUNCTIONS] = {
	[WORK] = { "main.work", .frame = 8 },
	[MAIN] = { "main.main", .frame = 8 },
	[SHAPED] = { "main.each[go.shape.int]", .frame = 8 },
};

static void assert_origin(struct origin_table *table, const struct goroutine *g,
			  enum origin_kind kind, const char *expected)
{
	struct label_text text;

	assert_success(origin_of(table, g, kind, &text));
	assert_int_equal(text.size, strlen(expected));
	if (text.size)
		assert_memory_equal(text.bytes, expected, text.size);
}

static void places_are_looked_up_by_pc(void **state)
{
	struct fake_program program;
	struct module_table *modules;
	struct origin_table *table;
	struct goroutine g = { .id = 7 };

	(void)state;
	fake_program_init(&program, functions, FUNCTIONS);
	assert_success(
	    module_table_read(fake_memory_memory(program.memory), &program.layout, &modules));
	assert_success(origin_table_new(modules, &build, &table));
	g.start_pc = fake_program_pc(WORK, 0);
	g.created_pc = fake_program_pc(MAIN, 0x30);
	assert_origin(table, &g, ORIGIN_ENTRY, "main.work");
	assert_origin(table, &g, ORIGIN_CREATED_BY, "main.main");
	assert_origin(table, &g, ORIGIN_MODULE, "shop/checkout");
	g.start_pc = fake_program_pc(SHAPED, 0);
	assert_origin(table, &g, ORIGIN_ENTRY, "main.each[...]");
	g.id = 1;
	assert_origin(table, &g, ORIGIN_CREATED_BY, "");
	g = (struct goroutine){ .id = 8, .start_pc = 0x10 };
	assert_origin(table, &g, ORIGIN_ENTRY, "");
	assert_origin(table, &g, ORIGIN_CREATED_BY, "");
	assert_origin(table, &g, ORIGIN_MODULE, "");
	origin_table_free(table);
	module_table_free(modules);
	fake_program_fini(&program);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_module_path_has_a_package),
		cmocka_unit_test(packages_without_a_point_are_the_standard_librarys),
		cmocka_unit_test(a_program_without_a_module_goes_by_its_path),
		cmocka_unit_test(places_are_looked_up_by_pc),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
