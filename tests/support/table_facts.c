/*
 * For tests: what the built-in layouts make of a running Go process, next to what its DWARF says:
 *
 *	table_facts PID VERSION
 *
 * uses the layout for that version ("": learned from the process), and prints it and the version
 *whose layout was used; then a line for each global variable: its name, where the code that refers
 *to it says it is, where DWARF says it is (run-time addresses, 0: not there).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/layout_discover.h"
#include "tests/support/live_target.h"

static struct error *run(struct live_target *target, const char *version)
{
	const struct layout_program program = {
		.file = target->elf,
		.load_bias = target->load_bias,
		.memory = target->memory,
		.version = version,
	};
	struct layout *layout scoped(layout_freep) = NULL;
	struct layout_found found;
	struct error *err = layout_discover(&program, &layout, &found);

	if (err)
		return err;
	printf("version %s %s\n", layout->version, found.table_version);
	for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++)
		printf("%s %" PRIx64 " %" PRIx64 "\n", layout_global_name(id),
		       layout_global(layout, id)->addr, layout_global(target->layout, id)->addr);
	return NULL;
}

int main(int argc, char **argv)
{
	struct live_target target;
	struct error *err;

	if (argc != 3) {
		fprintf(stderr, "usage: table_facts PID VERSION\n");
		return 2;
	}
	err = live_target_init(atoi(argv[1]), &target);
	if (!err) {
		err = run(&target, argv[2]);
		live_target_fini(&target);
	}
	if (err)
		fprintf(stderr, "table_facts: %s\n", error_message(err));
	return err != NULL;
}
