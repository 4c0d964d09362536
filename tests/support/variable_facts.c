/*
 * For tests: stops a Go process and prints, as JSON, every root that leads into its heap with the
 * variable that holds it; first what the table of variables took.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/elf_symbols.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/span.h"
#include "agent/goruntime/variable_table.h"
#include "proto/base/bytes.h"
#include "tests/support/live_scan.h"
#include "tests/support/live_target.h"
#include "tests/support/live_threads.h"

enum { INDEX_MAX = 256 << 20 };

struct facts {
	struct root_sink sink; /* first: what the callback gets */
	struct live_target target;
	struct live_threads threads;
	struct module_table *modules;
	struct live_scan scan;
	struct bytes index_bytes;
	struct type_index *index;
	struct elf_symbols *symbols;
	struct go_types *types;
	struct variable_table *variables;
	const char *comma;
};

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static struct error *print_root(struct root_sink *sink, const struct root *root)
{
	struct facts *facts = (struct facts *)sink;
	struct variable variable;

	if (span_table_object(facts->scan.spans, root->value) == OBJECT_NONE)
		return NULL;
	variable_table_find(facts->variables, root->kind, root->goroutine, root->slot, &variable);
	printf("%s\n[%" PRIu64 ", ", facts->comma, root->value);
	print_text(variable.name);
	printf(", ");
	print_text(variable.package);
	printf(", %d, ", variable.kind);
	print_text(go_type_at(facts->types, variable.type)->name);
	printf(", %" PRIu64 ", %" PRIu64 ", ", variable.size, root->slot - variable.addr);
	print_text(variable.file ? variable.file : "");
	printf(", %" PRIu32 ", %d]", variable.line, root->kind);
	facts->comma = ",";
	return NULL;
}

static struct error *open_index(struct facts *facts)
{
	struct error *err = elf_symbols_read(facts->target.elf, &facts->symbols);

	if (err || !elf_file_has_dwarf(facts->target.elf))
		return err;
	err = type_index_build(&(struct type_index_files){ facts->target.elf, NULL, 0, 0 },
			       &facts->index_bytes);
	return err ? err
		   : type_index_open(facts->index_bytes.data, facts->index_bytes.size,
				     &facts->index);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static struct error *read_variables(struct facts *facts)
{
	const struct live_target *t = &facts->target;
	size_t before = allocated();
	double began = seconds();
	struct error *err = go_types_new(t->memory, t->layout, facts->modules, facts->index,
					 t->load_bias, &facts->types);

	if (!err)
		err = variable_table_read(facts->types, facts->modules, facts->scan.goroutines,
					  facts->scan.walker, facts->index, facts->symbols,
					  t->load_bias, &facts->variables);
	printf("{\"seconds\": %.6f, \"bytes\": %zu, \"roots\": [", seconds() - began,
	       allocated() - before);
	return err;
}

static struct error *run(pid_t pid, struct facts *facts)
{
	struct error *err = live_target_init(pid, &facts->target);

	if (!err)
		err = live_threads_stop(pid, &facts->threads);
	if (!err)
		err = open_index(facts);
	if (!err)
		err =
		    module_table_read(facts->target.memory, facts->target.layout, &facts->modules);
	if (!err)
		err = live_scan_init(&facts->target, facts->modules, facts->threads.threads,
				     facts->threads.count, &facts->scan);
	if (!err)
		err = read_variables(facts);
	if (!err)
		err = live_scan_roots(&facts->target, &facts->scan, &facts->sink);
	puts("]}");
	return err;
}

int main(int argc, char **argv)
{
	struct facts facts = { .sink = { print_root }, .target.exe_fd = -1, .comma = "" };
	struct error *err;

	bytes_init(&facts.index_bytes, INDEX_MAX);
	err = run(argc > 1 ? atoi(argv[1]) : 0, &facts);
	variable_table_free(facts.variables);
	go_types_free(facts.types);
	elf_symbols_free(facts.symbols);
	type_index_free(facts.index);
	bytes_fini(&facts.index_bytes);
	live_scan_fini(&facts.scan);
	module_table_free(facts.modules);
	live_threads_fini(&facts.threads);
	live_target_fini(&facts.target);
	if (!err)
		return 0;
	fprintf(stderr, "variable_facts: %s\n", error_message(err));
	error_free(err);
	return 1;
}
