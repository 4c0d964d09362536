/*
 * For tests: what the table of types makes of a running Go process, an answer in JSON for each line
 * on standard input:
 *
 *   type ADDR      of a descriptor
 *   itab ADDR      the dynamic type of an itab
 *   closure CODE   of a function's closures
 *   pointer ADDR   of pointers to the type of a descriptor
 *   name NAME      of a struct of the runtime's
 *   let-go         memory is gone from now on
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/type_index.h"
#include "agent/goruntime/go_type.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "proto/base/bytes.h"
#include "tests/support/live_target.h"

enum { LINE_MAX_SIZE = 256, INDEX_MAX = 256 << 20 };

struct facts {
	struct live_target target;
	struct module_table *modules;
	struct bytes index_bytes;
	struct type_index *index;
	struct go_types *types;
};

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void print_member(const char *key, const char *text)
{
	printf(", \"%s\": ", key);
	print_text(text);
}

static const char *name_of(const struct facts *facts, type_id id)
{
	return go_type_at(facts->types, id)->name;
}

static void print_fields(const struct facts *facts, const struct go_type *type)
{
	printf(", \"fields\": [");
	for (uint32_t i = 0; i < type->field_count; i++) {
		printf("%s{\"name\": ", i ? ", " : "");
		print_text(type->fields[i].name);
		printf(", \"offset\": %" PRIu64, type->fields[i].offset);
		print_member("type", name_of(facts, type->fields[i].type));
		printf("}");
	}
	printf("]");
}

static void print_flag(const char *key, bool flag)
{
	printf(", \"%s\": %s", key, flag ? "true" : "false");
}

static void print_type(const struct facts *facts, type_id id)
{
	const struct go_type *type = go_type_at(facts->types, id);

	printf("{\"id\": %" PRIu32 ", \"addr\": %" PRIu64 ", \"size\": %" PRIu64
	       ", \"ptr_bytes\": %" PRIu64 ", \"length\": %" PRIu64 ", \"kind\": %d",
	       id, type->descriptor, type->size, type->ptr_bytes, type->length, type->kind);
	print_member("name", type->name);
	print_member("elem", name_of(facts, type->elem));
	print_member("key", name_of(facts, type->key));
	print_member("bucket", name_of(facts, type->bucket));
	printf(", \"bucket_size\": %" PRIu64, go_type_at(facts->types, type->bucket)->size);
	print_flag("has_methods", type->has_methods);
	print_flag("indirect_key", type->indirect_key);
	print_flag("indirect_elem", type->indirect_elem);
	print_flag("direct", type->direct_interface);
	print_fields(facts, type);
	puts("}");
	fflush(stdout);
}

static struct error *pointer_to(struct facts *facts, taddr descriptor, type_id *ret)
{
	type_id elem;
	struct error *err = go_types_by_descriptor(facts->types, descriptor, &elem);

	return err ? err : go_types_pointer_to(facts->types, elem, ret);
}

static struct error *find(struct facts *facts, const char *line, type_id *ret)
{
	char name[LINE_MAX_SIZE];
	uint64_t addr;

	*ret = TYPE_UNKNOWN;
	if (sscanf(line, "type %" SCNu64, &addr) == 1)
		return go_types_by_descriptor(facts->types, addr, ret);
	if (sscanf(line, "itab %" SCNu64, &addr) == 1)
		return go_types_by_itab(facts->types, addr, ret);
	if (sscanf(line, "closure %" SCNu64, &addr) == 1)
		return go_types_by_closure(facts->types, addr, ret);
	if (sscanf(line, "pointer %" SCNu64, &addr) == 1)
		return pointer_to(facts, addr, ret);
	if (sscanf(line, "name %255s", name) == 1)
		return go_types_by_name(facts->types, name, ret);
	if (!strcmp(line, "let-go\n"))
		return go_types_let_go(facts->types, NULL);
	return error_new(ERROR_BAD_REQUEST, "not a question: %s", line);
}

static struct error *answer(struct facts *facts)
{
	struct error *err = NULL;
	char line[LINE_MAX_SIZE];

	while (!err && fgets(line, sizeof(line), stdin)) {
		type_id id;

		err = find(facts, line, &id);
		if (!err)
			print_type(facts, id);
	}
	return err;
}

/* With DWARF if there is some. */
static struct error *open_index(struct facts *facts)
{
	struct error *err;

	if (!elf_file_has_dwarf(facts->target.elf))
		return NULL;
	err = type_index_build(&(struct type_index_files){ facts->target.elf, NULL, 0, 0 },
			       &facts->index_bytes);
	return err ? err
		   : type_index_open(facts->index_bytes.data, facts->index_bytes.size,
				     &facts->index);
}

static struct error *run(pid_t pid, struct facts *facts)
{
	struct error *err = live_target_init(pid, &facts->target);

	if (!err)
		err = open_index(facts);
	if (!err)
		err =
		    module_table_read(facts->target.memory, facts->target.layout, &facts->modules);
	if (!err)
		err = go_types_new(facts->target.memory, facts->target.layout, facts->modules,
				   facts->index, facts->target.load_bias, &facts->types);
	return err ? err : answer(facts);
}

int main(int argc, char **argv)
{
	struct facts facts = { .target.exe_fd = -1 };
	struct error *err;

	if (argc != 2) {
		fprintf(stderr, "usage: go_type_facts PID\n");
		return 2;
	}
	bytes_init(&facts.index_bytes, INDEX_MAX);
	err = run((pid_t)atoi(argv[1]), &facts);
	go_types_free(facts.types);
	type_index_free(facts.index);
	bytes_fini(&facts.index_bytes);
	module_table_free(facts.modules);
	live_target_fini(&facts.target);
	if (err)
		fprintf(stderr, "go_type_facts: %s\n", error_message(err));
	error_free(err);
	return err ? 1 : 0;
}
