/*
 * Prints what the type index of an executable has, one line for each thing, for
 * tests/integration/types.py: type_facts EXECUTABLE [DEBUG-FILE]. Of functions those whose entries
 * stand on stdin. What it took to build the index goes to stderr.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/type_index.h"
#include "proto/base/bytes.h"

enum { SIZE_MAX_MIB = 256 };

static struct error *open_file(const char *path, struct elf_file **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC); /* stays open for the file's life */

	return fd < 0 ? error_new(ERROR_SYSTEM, "%s cannot be opened", path)
		      : elf_file_open(fd, ret);
}

static struct error *print_fields(const struct type_index *index, const struct indexed_type *type)
{
	for (uint32_t i = 0; i < type->field_count; i++) {
		struct indexed_field field;
		struct error *err = type_index_field(index, type->first_field + i, &field);

		if (err)
			return err;
		printf("field\t%s\t%" PRIu64 "\t%" PRIu32 "\n", field.name, field.offset,
		       field.type);
	}
	return NULL;
}

static struct error *print_types(const struct type_index *index)
{
	for (uint32_t i = 1; i < type_index_type_count(index); i++) {
		struct indexed_type type;
		struct error *err = type_index_type(index, i, &type);

		if (err)
			return err;
		printf("type\t%" PRIu32 "\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t0x%" PRIx64
		       "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%d\t%" PRIu32 "\t%" PRIu32 "\n",
		       i, type.name, type.kind, type.size, type.length, type.descriptor, type.elem,
		       type.key, type.representation, type.has_methods,
		       type_index_find_name(index, type.name),
		       type_index_find_descriptor(index, type.descriptor));
		err = print_fields(index, &type);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *print_globals(const struct type_index *index)
{
	for (uint32_t i = 0; i < type_index_global_count(index); i++) {
		struct indexed_global global;
		struct error *err = type_index_global(index, i, &global);

		if (err)
			return err;
		printf("global\t%s\t0x%" PRIx64 "\t%" PRIu32 "\n", global.name, global.addr,
		       global.type);
	}
	return NULL;
}

static struct error *print_locals(const struct type_index *index, taddr entry)
{
	uint32_t first, count;
	struct error *err = type_index_locals(index, entry, &first, &count);

	for (uint32_t i = first; !err && i < first + count; i++) {
		struct indexed_local local;

		err = type_index_local(index, i, &local);
		if (!err)
			printf("local\t%s\t%s\t0x%" PRIx64 "\t0x%" PRIx64 "\t%" PRId64 "\t%" PRIu64
			       "\t%" PRIu64 "\t%" PRIu32 "\t%d\t%d\t%d\n",
			       local.name, local.function, local.start, local.end, local.offset,
			       local.size, local.piece_offset, local.type, local.is_heap_address,
			       local.is_spilled, local.is_register);
	}
	return err;
}

static struct error *print_captures(const struct type_index *index, taddr entry)
{
	uint32_t first, count;
	struct error *err = type_index_captures(index, entry, &first, &count);

	for (uint32_t i = first; !err && i < first + count; i++) {
		struct indexed_field capture;

		err = type_index_capture(index, i, &capture);
		if (!err)
			printf("capture\t%s\t%" PRIu64 "\t%" PRIu32 "\n", capture.name,
			       capture.offset, capture.type);
	}
	return err;
}

/* Those whose entries stand on stdin. */
static struct error *print_functions(const struct type_index *index)
{
	struct error *err = NULL;
	taddr entry;

	while (!err && scanf("%" SCNx64, &entry) == 1) {
		printf("function\t0x%" PRIx64 "\n", entry);
		err = print_locals(index, entry);
		if (!err)
			err = print_captures(index, entry);
	}
	return err;
}

static struct error *print_all(const struct bytes *bytes)
{
	struct type_index *index scoped(type_index_freep) = NULL;
	struct error *err = type_index_open(bytes->data, bytes->size, &index);

	if (!err)
		err = print_types(index);
	if (!err)
		err = print_globals(index);
	return err ? err : print_functions(index);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct error *run(int argc, char **argv)
{
	struct elf_file *executable scoped(elf_file_freep) = NULL;
	struct elf_file *debug scoped(elf_file_freep) = NULL;
	struct bytes bytes;
	struct rusage usage;
	double begun = seconds();
	struct error *err = open_file(argv[1], &executable);

	bytes_init(&bytes, (size_t)SIZE_MAX_MIB << 20);
	if (!err && argc > 2)
		err = open_file(argv[2], &debug);
	if (!err)
		err =
		    type_index_build(&(struct type_index_files){ executable, debug, 0, 0 }, &bytes);
	if (!err) {
		getrusage(RUSAGE_SELF, &usage);
		fprintf(stderr, "bytes %zu, seconds %.2f, peak %ld KiB\n", bytes.size,
			seconds() - begun, usage.ru_maxrss);
		err = print_all(&bytes);
	}
	bytes_fini(&bytes);
	return err;
}

int main(int argc, char **argv)
{
	struct error *err scoped(error_freep) = NULL;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: type_facts EXECUTABLE [DEBUG-FILE]\n");
		return 2;
	}
	err = run(argc, argv);
	if (err)
		fprintf(stderr, "type_facts: %s\n", error_message(err));
	return err ? 1 : 0;
}
