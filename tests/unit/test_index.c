#include "agent/binary/index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/bytes.h"
#include "tests/support/assertions.h"
#include "tests/support/elf_writer.h"

static const char stored_layout[] = "what layout_store wrote";

static const struct index_key sample_key = {
	.executable = { .device = 0xfe01,
			.inode = 123456,
			.size = 15354236,
			.mtime_ns = 1700000000123456789,
			.ctime_ns = 1700000001000000000 },
	.debug_file = { 0xfe01, 654321, 99, 1700000000123456789, 1700000001000000000 },
	.build_id = "build id",
	.build_id_size = 8,
};

static void encode(const struct index_key *key, struct bytes *out)
{
	const struct bytes layout = { .data = (uint8_t *)stored_layout,
				      .size = sizeof(stored_layout) };

	bytes_init(out, INDEX_SIZE_MAX);
	assert_success(index_encode(INDEX_LAYOUT, key, &layout, out));
}

static void what_is_stored_is_loaded(void **state)
{
	struct bytes file;
	const uint8_t *layout = NULL;
	size_t size = 0;

	(void)state;
	encode(&sample_key, &file);
	assert_success(
	    index_decode(INDEX_LAYOUT, file.data, file.size, &sample_key, &layout, &size));
	assert_int_equal(size, sizeof(stored_layout));
	assert_memory_equal(layout, stored_layout, size);
	bytes_fini(&file);
}

static void every_damaged_byte_is_noticed(void **state)
{
	struct bytes file;

	(void)state;
	encode(&sample_key, &file);
	for (size_t at = 0; at < file.size; at++) {
		const uint8_t *layout = NULL;
		size_t size = 0;

		file.data[at] ^= 0x10;
		assert_error(
		    index_decode(INDEX_LAYOUT, file.data, file.size, &sample_key, &layout, &size),
		    ERROR_FORMAT);
		assert_null(layout);
		file.data[at] ^= 0x10;
	}
	bytes_fini(&file);
}

static void every_truncation_and_anything_more_is_refused(void **state)
{
	struct bytes file;
	const uint8_t *layout = NULL;
	size_t layout_size = 0;

	(void)state;
	encode(&sample_key, &file);
	for (size_t size = 0; size < file.size; size++) {
		struct tail_copy copy = tail_copy(file.data, size);

		assert_error(index_decode(INDEX_LAYOUT, copy.bytes, size, &sample_key, &layout,
					  &layout_size),
			     ERROR_FORMAT);
		tail_copy_fini(&copy);
	}
	assert_success(bytes_append(&file, "", 1));
	assert_error(
	    index_decode(INDEX_LAYOUT, file.data, file.size, &sample_key, &layout, &layout_size),
	    ERROR_FORMAT);
	bytes_fini(&file);
}

static void the_index_of_another_state_is_stale(void **state)
{
	struct bytes file;
	struct index_key others[] = { sample_key, sample_key, sample_key, sample_key, sample_key,
				      sample_key, sample_key, sample_key, sample_key, sample_key };
	const uint8_t *layout = NULL;
	size_t size = 0;

	(void)state;
	others[0].executable.device++;
	others[1].executable.inode++;
	others[2].executable.size++;
	others[3].executable.mtime_ns++;
	others[4].executable.ctime_ns--;
	others[5].build_id[7] ^= 1;
	others[6].build_id_size--;
	others[7].debug_file.inode++;
	others[8].debug_file.ctime_ns--;
	others[9].debug_file = (struct index_file_key){ 0 }; /* DWARF in the executable */
	encode(&sample_key, &file);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_error(
		    index_decode(INDEX_LAYOUT, file.data, file.size, &others[i], &layout, &size),
		    ERROR_FORMAT);
	bytes_fini(&file);
}

static void an_index_of_types_is_none_of_a_layout(void **state)
{
	char name[INDEX_NAME_SIZE], other_name[INDEX_NAME_SIZE];
	const uint8_t *content = NULL;
	struct index_draft draft;
	struct bytes file;
	size_t size = 0;

	(void)state;
	bytes_init(&file, INDEX_SIZE_MAX);
	assert_success(bytes_append(&file, "before", 6));
	assert_success(index_begin(INDEX_TYPES, &sample_key, &file, &draft));
	assert_success(bytes_append(&file, "types", 5));
	index_end(&draft, &file);
	assert_success(
	    index_decode(INDEX_TYPES, file.data + 6, file.size - 6, &sample_key, &content, &size));
	assert_int_equal(size, 5);
	assert_memory_equal(content, "types", size);
	assert_error(
	    index_decode(INDEX_LAYOUT, file.data + 6, file.size - 6, &sample_key, &content, &size),
	    ERROR_FORMAT);
	bytes_fini(&file);
	index_file_name(INDEX_LAYOUT, &sample_key.executable, name);
	index_file_name(INDEX_TYPES, &sample_key.executable, other_name);
	assert_string_not_equal(name, other_name);
}

static void names_differ_where_files_do(void **state)
{
	struct index_file_key other = sample_key.executable;
	char name[INDEX_NAME_SIZE], other_name[INDEX_NAME_SIZE];

	(void)state;
	index_file_name(INDEX_LAYOUT, &sample_key.executable, name);
	assert_string_equal(name, "fe01-1e240-ea497c-17979cfe3d85cd15-17979cfe71c4ca00.index");
	other.ctime_ns++;
	index_file_name(INDEX_LAYOUT, &other, other_name);
	assert_string_not_equal(name, other_name);
	other = (struct index_file_key){ UINT64_MAX, UINT64_MAX, UINT64_MAX, INT64_MIN, INT64_MIN };
	index_file_name(INDEX_LAYOUT, &other, name);
	assert_true(strlen(name) + 1 < INDEX_NAME_SIZE);
}

static void keys_come_from_the_file(void **state)
{
	int fd = memory_file("12345", 5);
	struct index_file_key key, again;
	struct timespec times[2] = { { 5, 6 }, { 7, 8 } };

	(void)state;
	assert_success(index_file_key_read(fd, &key));
	assert_int_equal(key.size, 5);
	assert_int_equal(futimens(fd, times), 0);
	assert_success(index_file_key_read(fd, &again));
	assert_int_equal(again.mtime_ns, 7000000008);
	assert_int_equal(again.inode, key.inode);
	close(fd);
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_error(index_file_key_read(fd, &key), ERROR_NOT_GO);
	close(fd);
}

static int make_folder(char path[64])
{
	int fd;

	strcpy(path, "/tmp/test_index.XXXXXX");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void files_are_written_whole_and_for_us_alone(void **state)
{
	char path[64], name[INDEX_NAME_SIZE];
	int folder = make_folder(path), fd;
	struct bytes file, read_back;
	struct stat st;

	(void)state;
	encode(&sample_key, &file);
	index_file_name(INDEX_LAYOUT, &sample_key.executable, name);
	assert_success(index_file_write(INDEX_LAYOUT, folder, &sample_key.executable, "old", 3));
	assert_success(
	    index_file_write(INDEX_LAYOUT, folder, &sample_key.executable, file.data, file.size));
	assert_int_equal(fstatat(folder, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	bytes_init(&read_back, INDEX_SIZE_MAX);
	assert_success(index_file_read(fd, &read_back));
	assert_int_equal(read_back.size, file.size);
	assert_memory_equal(read_back.data, file.data, file.size);
	assert_int_equal(unlinkat(folder, name, 0), 0);
	assert_int_equal(rmdir(path), 0); /* nothing else was left in it */
	bytes_fini(&file);
	bytes_fini(&read_back);
	close(fd);
	close(folder);
}

static void files_beyond_the_limit_are_refused(void **state)
{
	uint8_t *large = calloc(1, INDEX_SIZE_MAX + 1);
	int fd = memory_file(large, INDEX_SIZE_MAX + 1);
	char path[64];
	int folder = make_folder(path);
	struct bytes out;

	(void)state;
	bytes_init(&out, INDEX_SIZE_MAX);
	assert_error(index_file_read(fd, &out), ERROR_LIMIT);
	assert_error(index_file_write(INDEX_LAYOUT, folder, &sample_key.executable, large,
				      INDEX_SIZE_MAX + 1),
		     ERROR_LIMIT);
	assert_int_equal(rmdir(path), 0);
	bytes_fini(&out);
	free(large);
	close(fd);
	close(folder);
}

static void a_folder_that_is_gone_is_an_error(void **state)
{
	char path[64];
	int folder = make_folder(path);

	(void)state;
	assert_int_equal(rmdir(path), 0);
	assert_error(index_file_write(INDEX_LAYOUT, folder, &sample_key.executable, "x", 1),
		     ERROR_SYSTEM);
	close(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_stored_is_loaded),
		cmocka_unit_test(every_damaged_byte_is_noticed),
		cmocka_unit_test(every_truncation_and_anything_more_is_refused),
		cmocka_unit_test(the_index_of_another_state_is_stale),
		cmocka_unit_test(an_index_of_types_is_none_of_a_layout),
		cmocka_unit_test(names_differ_where_files_do),
		cmocka_unit_test(keys_come_from_the_file),
		cmocka_unit_test(files_are_written_whole_and_for_us_alone),
		cmocka_unit_test(files_beyond_the_limit_are_refused),
		cmocka_unit_test(a_folder_that_is_gone_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
