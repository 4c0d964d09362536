#include "tests/support/assertions.h"

#include "agent/target/maps.h"

static const char text[] =
    "00400000-004a1000 r-xp 00000000 08:01 1234                               /srv/shop\n"
    "004a1000-0055c000 r--p 000a1000 08:01 1234                               /srv/shop\n"
    "c000000000-c000400000 rw-p 00000000 00:00 0                              [anon: Go: heap]\n"
    "c000400000-c004000000 ---p 00000000 00:00 0 \n"
    "7f0000000000-7f0000001000 rw-s 00000000 00:05 99                         /dev/shm/a b "
    "(deleted)\n"
    "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
    "7ffd00030000-7ffd00032000 r-xp 00000000 00:00 0                          [vdso]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static struct maps *parse(const char *bytes, size_t size)
{
	struct maps *maps = NULL;

	assert_success(maps_parse(bytes, size, &maps));
	return maps;
}

static void every_column_is_read(void **state)
{
	struct maps *maps = parse(text, strlen(text));
	const struct mapping *code = &maps->items[0], *shared = &maps->items[4];

	(void)state;
	assert_int_equal(maps->count, 8);
	assert_int_equal(code->start, 0x400000);
	assert_int_equal(code->end, 0x4a1000);
	assert_true(code->read && !code->write && code->execute && !code->shared);
	assert_int_equal(code->inode, 1234);
	assert_int_equal(code->device_major, 8);
	assert_int_equal(code->device_minor, 1);
	assert_int_equal(maps->items[1].offset, 0xa1000);
	assert_string_equal(code->name, "/srv/shop");
	assert_false(code->deleted);
	assert_true(shared->shared && shared->write);
	assert_true(shared->deleted);
	assert_string_equal(shared->name, "/dev/shm/a b");
	maps_free(maps);
}

static void kinds_are_told_apart(void **state)
{
	static const enum mapping_kind kinds[] = {
		MAPPING_FILE, MAPPING_FILE,      MAPPING_ANONYMOUS, MAPPING_ANONYMOUS,
		MAPPING_FILE, MAPPING_ANONYMOUS, MAPPING_SPECIAL,   MAPPING_SPECIAL,
	};
	struct maps *maps = parse(text, strlen(text));

	(void)state;
	for (uint32_t i = 0; i < maps->count; i++)
		assert_int_equal(maps->items[i].kind, kinds[i]);
	maps_free(maps);
}

static void addresses_are_found_in_their_mapping_only(void **state)
{
	struct maps *maps = parse(text, strlen(text));

	(void)state;
	assert_ptr_equal(maps_find(maps, 0x400000), &maps->items[0]);
	assert_ptr_equal(maps_find(maps, 0x4a0fff), &maps->items[0]);
	assert_ptr_equal(maps_find(maps, 0x4a1000), &maps->items[1]);
	assert_null(maps_find(maps, 0));
	assert_null(maps_find(maps, 0x3fffff));
	assert_null(maps_find(maps, 0x55c000));
	assert_ptr_equal(maps_find(maps, 0xffffffffff600fff), &maps->items[7]);
	assert_null(maps_find(maps, UINT64_MAX));
	maps_free(maps);
}

static void a_name_is_only_bytes(void **state)
{
	static const char odd[] =
	    "1000-2000 r--p 00000000 08:01 7    /a\\012b \x01\xff[heap] (deleted)x\n"
	    "3000-4000 r--p 00000000 08:01 7    / (deleted)\n"
	    "5000-6000 rw-p 00000000 00:00 0    [anon:x (deleted)]\n"
	    "7000-8000 rw-p 00000000 00:00 0    [what]\n";
	struct maps *maps = parse(odd, strlen(odd));

	(void)state;
	assert_string_equal(maps->items[0].name, "/a\\012b \x01\xff[heap] (deleted)x");
	assert_int_equal(maps->items[0].kind, MAPPING_FILE);
	assert_string_equal(maps->items[1].name, "/");
	assert_true(maps->items[1].deleted);
	assert_int_equal(maps->items[2].kind, MAPPING_ANONYMOUS);
	assert_false(maps->items[2].deleted);
	assert_int_equal(maps->items[3].kind, MAPPING_SPECIAL);
	maps_free(maps);
}

static void malformed_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"\n",
		"x\n",
		"1000-1000 r--p 00000000 08:01 7\n",
		"2000-1000 r--p 00000000 08:01 7\n",
		"1000-2000 r--z 00000000 08:01 7\n",
		"1000-2000 r-p 00000000 08:01 7\n",
		"1000 - 2000 r--p 00000000 08:01 7\n",
		"10000000000000000-20000000000000000 r--p 00000000 08:01 7\n",
		"1000-2000 r--p 00000000 08:01\n",
		"1000-2000 r--p 00000000 100000000:01 7\n",
		"1000-2000 r--p 00000000 08:01 7x\n",
		"1000-2000 r--p 00000000 08:01 99999999999999999999\n",
		"1000-3000 r--p 00000000 08:01 7\n2000-4000 r--p 00000000 08:01 7\n",
		"3000-4000 r--p 00000000 08:01 7\n1000-2000 r--p 00000000 08:01 7\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct maps *maps = NULL;

		assert_error(maps_parse(lines[i], strlen(lines[i]), &maps), ERROR_FORMAT);
		assert_null(maps);
	}
}

static void every_truncation_is_refused_or_whole_lines(void **state)
{
	(void)state;
	for (size_t size = 0; size < strlen(text); size++) {
		struct tail_copy copy = tail_copy(text, size);
		struct maps *maps = NULL;

		if (!size || text[size - 1] == '\n') {
			assert_success(maps_parse((const char *)copy.bytes, size, &maps));
			maps_free(maps);
		} else {
			assert_error(maps_parse((const char *)copy.bytes, size, &maps),
				     ERROR_FORMAT);
			assert_null(maps);
		}
		tail_copy_fini(&copy);
	}
}

static void a_process_without_mappings_is_gone(void **state)
{
	FILE *empty = tmpfile();
	struct maps *maps = NULL;

	(void)state;
	assert_error(maps_read(fileno(empty), &maps), ERROR_GONE);
	fclose(empty);
}

static void lines_that_stay_out_of_order_are_refused(void **state)
{
	FILE *file = tmpfile();
	struct maps *maps = NULL;

	(void)state;
	fputs("2000-3000 rw-p 00000000 00:00 0 \n1000-4000 rw-p 00000000 00:00 0 \n", file);
	fflush(file);
	assert_error(maps_read(fileno(file), &maps), ERROR_FORMAT);
	assert_null(maps);
	fclose(file);
}

static void a_descriptor_is_read_from_its_beginning(void **state)
{
	FILE *file = tmpfile();
	struct maps *maps = NULL;

	(void)state;
	fputs(text, file);
	fflush(file);
	assert_success(maps_read(fileno(file), &maps));
	assert_int_equal(maps->count, 8);
	maps_free(maps);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_column_is_read),
		cmocka_unit_test(lines_that_stay_out_of_order_are_refused),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(addresses_are_found_in_their_mapping_only),
		cmocka_unit_test(a_name_is_only_bytes),
		cmocka_unit_test(malformed_lines_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_whole_lines),
		cmocka_unit_test(a_process_without_mappings_is_gone),
		cmocka_unit_test(a_descriptor_is_read_from_its_beginning),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
