/*
 * The folder of indexes and the cache of identities: both keyed by what tells one executable's
 * content from another's.
 */
#include "agent/index_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_key.h"
#include "agent/identity_cache.h"
#include "proto/wire/limits.h"
#include "tests/support/assertions.h"

struct folder {
	char root[64], cache[96], index[128];
};

static int setup_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	assert_non_null(folder);
	snprintf(folder->root, sizeof(folder->root), "/tmp/goheapd-index-XXXXXX");
	assert_non_null(mkdtemp(folder->root));
	/* two levels that do not exist yet */
	snprintf(folder->cache, sizeof(folder->cache), "%s/a/cache", folder->root);
	snprintf(folder->index, sizeof(folder->index), "%s/index", folder->cache);
	*state = folder;
	return 0;
}

static void empty_folder(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(path);
}

static int teardown_folder(void **state)
{
	struct folder *folder = *state;
	char above[96];

	empty_folder(folder->index);
	rmdir(folder->cache);
	snprintf(above, sizeof(above), "%s/a", folder->root);
	rmdir(above);
	assert_int_equal(rmdir(folder->root), 0);
	free(folder);
	return 0;
}

static Goheapd__FileKey key_of(uint64_t inode)
{
	Goheapd__FileKey key = GOHEAPD__FILE_KEY__INIT;

	key.device = 1;
	key.inode = inode;
	key.size = 1000;
	key.mtime_ns = 12345;
	key.ctime_ns = 12346;
	return key;
}

static void assert_content(const struct index_store *store, const Goheapd__FileKey *key,
			   const char *expected)
{
	char content[64] = "";
	int fd = index_store_open(store, INDEX_LAYOUT, key);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, content, sizeof(content) - 1), strlen(expected));
	assert_string_equal(content, expected);
	close(fd);
}

static void what_is_written_is_found_under_its_key(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;
	Goheapd__FileKey key = key_of(7), other = key_of(7);

	assert_success(index_store_init(&store, folder->cache));
	assert_int_equal(index_store_open(&store, INDEX_LAYOUT, &key), -1);
	assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "first", 5));
	assert_content(&store, &key, "first");
	assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "second", 6));
	assert_content(&store, &key, "second");
	other.mtime_ns++;
	assert_int_equal(index_store_open(&store, INDEX_LAYOUT, &other), -1);
	index_store_fini(&store);
}

static void the_folder_is_ours_alone(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;
	struct stat st;

	assert_success(index_store_init(&store, folder->cache));
	index_store_fini(&store);
	assert_int_equal(stat(folder->index, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* one that somebody has opened up is closed again */
	assert_int_equal(chmod(folder->index, 0777), 0);
	assert_success(index_store_init(&store, folder->cache));
	index_store_fini(&store);
	assert_int_equal(stat(folder->index, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void a_symbolic_link_is_no_folder(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;

	assert_success(index_store_init(&store, folder->cache));
	index_store_fini(&store);
	assert_int_equal(rmdir(folder->index), 0);
	assert_int_equal(symlink("/tmp", folder->index), 0);
	assert_error(index_store_init(&store, folder->cache), ERROR_SYSTEM);
	assert_int_equal(store.folder_fd, -1);
	assert_int_equal(unlink(folder->index), 0);
}

static void a_folder_of_somebody_else_is_refused(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;

	if (geteuid() != 0)
		skip_because("only root can give a folder away");
	assert_success(index_store_init(&store, folder->cache));
	index_store_fini(&store);
	assert_int_equal(chown(folder->index, 54321, 54321), 0);
	assert_error(index_store_init(&store, folder->cache), ERROR_FORBIDDEN);
}

static void without_a_folder_nothing_is_kept(void **state)
{
	struct index_store store;
	Goheapd__FileKey key = key_of(7);

	(void)state;
	assert_success(index_store_init(&store, NULL));
	assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "x", 1));
	assert_int_equal(index_store_open(&store, INDEX_LAYOUT, &key), -1);
	index_store_fini(&store);
}

static unsigned count_files(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;
	const struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void the_oldest_make_room(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;
	Goheapd__FileKey key;

	assert_success(index_store_init(&store, folder->cache));
	for (uint64_t inode = 0; inode < INDEX_STORE_FILES_MAX + 3; inode++) {
		key = key_of(inode);
		assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "x", 1));
	}
	assert_int_equal(count_files(folder->index), INDEX_STORE_FILES_MAX);
	assert_content(&store, &key, "x");
	index_store_fini(&store);
}

/* A memory file of that size, with one byte at its beginning, sealed as wanted. */
static int types_of(off_t size, int seals)
{
	int fd = memfd_create("types", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (size)
		assert_int_equal(pwrite(fd, "t", 1, 0), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

enum { SEALED = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW };

static struct error *write_types(const struct index_store *store, const Goheapd__FileKey *key,
				 off_t size, int seals)
{
	int fd = types_of(size, seals);
	struct error *err = index_store_write_types(store, key, fd);

	close(fd);
	return err;
}

static void types_are_kept_beside_the_layout_and_must_be_sealed(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;
	Goheapd__FileKey key = key_of(7);
	char byte = 0;
	int fd;

	assert_success(index_store_init(&store, folder->cache));
	assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "layout", 6));
	assert_int_equal(index_store_open(&store, INDEX_TYPES, &key), -1);
	assert_success(write_types(&store, &key, 5000, SEALED));
	assert_content(&store, &key, "layout");
	fd = index_store_open(&store, INDEX_TYPES, &key);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 't');
	assert_int_equal(lseek(fd, 0, SEEK_END), 5000);
	close(fd);
	assert_error(write_types(&store, &key, 5000, SEALED & ~F_SEAL_WRITE), ERROR_FORMAT);
	assert_error(write_types(&store, &key, 5000, SEALED & ~F_SEAL_SHRINK), ERROR_FORMAT);
	assert_error(write_types(&store, &key, 5000, SEALED & ~F_SEAL_GROW), ERROR_FORMAT);
	assert_error(write_types(&store, &key, 0, SEALED), ERROR_FORMAT);
	assert_error(write_types(&store, &key, LIMIT_TYPE_INDEX_BYTES + 1, SEALED), ERROR_FORMAT);
	/* what is no memory file has no seals */
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_error(index_store_write_types(&store, &key, fd), ERROR_FORMAT);
	close(fd);
	index_store_fini(&store);
}

/* A file that takes its place in the folder by its size alone. */
static void make_sparse(const struct folder *folder, const char *name, off_t size, time_t time)
{
	char path[256];
	const struct timespec times[2] = { { time, 0 }, { time, 0 } };
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder->index, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void the_oldest_make_room_for_many_bytes(void **state)
{
	const struct folder *folder = *state;
	struct index_store store;
	Goheapd__FileKey key = key_of(7);

	assert_success(index_store_init(&store, folder->cache));
	make_sparse(folder, "older", (off_t)index_store_bytes_max / 2, 1000);
	make_sparse(folder, "newer", (off_t)index_store_bytes_max / 2, 2000);
	assert_success(index_store_write(&store, INDEX_LAYOUT, &key, "x", 1));
	assert_int_equal(count_files(folder->index), 2);
	assert_int_equal(faccessat(store.folder_fd, "older", F_OK, 0), -1);
	assert_int_equal(faccessat(store.folder_fd, "newer", F_OK, 0), 0);
	index_store_fini(&store);
}

static void keys_differ_in_every_part(void **state)
{
	Goheapd__FileKey key = key_of(7), other;

	(void)state;
	assert_true(file_key_equal(&key, &key));
#define DIFFERS(part)                                                                              \
	other = key;                                                                               \
	other.part++;                                                                              \
	assert_false(file_key_equal(&key, &other))
	DIFFERS(device);
	DIFFERS(inode);
	DIFFERS(size);
	DIFFERS(mtime_ns);
	DIFFERS(ctime_ns);
}

static void a_key_is_taken_of_regular_files_alone(void **state)
{
	Goheapd__FileKey key;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_error(file_key_read(fd, &key), ERROR_NOT_GO);
	close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_success(file_key_read(fd, &key));
	assert_true(key.size > 0);
	close(fd);
}

/* ---- identities ---- */

static Goheapd__Identified identified_as(const char *version)
{
	Goheapd__Identified identified = GOHEAPD__IDENTIFIED__INIT;

	identified.is_go = true;
	identified.inspectable = true;
	identified.has_go_version = true;
	identified.go_version =
	    (ProtobufCBinaryData){ strlen(version), (uint8_t *)(uintptr_t)version };
	return identified;
}

static void identities_are_found_again(void **state)
{
	struct identity_cache cache;
	Goheapd__FileKey key = key_of(1), other = key_of(2);
	Goheapd__Identified identified = identified_as("go1.26.1");

	(void)state;
	identity_cache_init(&cache);
	assert_null(identity_cache_find(&cache, &key));
	assert_success(identity_cache_add(&cache, &key, &identified));
	assert_string_equal(identity_cache_find(&cache, &key)->go_version, "go1.26.1");
	assert_true(identity_cache_find(&cache, &key)->is_go);
	assert_null(identity_cache_find(&cache, &other));
	identity_cache_fini(&cache);
}

static void long_texts_of_identities_are_cut(void **state)
{
	struct identity_cache cache;
	Goheapd__FileKey key = key_of(1);
	char version[10 * IDENTITY_VERSION_SIZE];
	Goheapd__Identified identified;

	(void)state;
	memset(version, 'v', sizeof(version) - 1);
	version[sizeof(version) - 1] = '\0';
	identified = identified_as(version);
	identity_cache_init(&cache);
	assert_success(identity_cache_add(&cache, &key, &identified));
	assert_int_equal(strlen(identity_cache_find(&cache, &key)->go_version),
			 IDENTITY_VERSION_SIZE - 1);
	identity_cache_fini(&cache);
}

static void the_oldest_identity_makes_room(void **state)
{
	struct identity_cache cache;
	Goheapd__Identified identified = identified_as("go1.26.1");
	Goheapd__FileKey key;

	(void)state;
	identity_cache_init(&cache);
	for (uint64_t inode = 0; inode <= IDENTITY_CACHE_SIZE; inode++) {
		key = key_of(inode);
		assert_success(identity_cache_add(&cache, &key, &identified));
	}
	assert_non_null(identity_cache_find(&cache, &key));
	key = key_of(0);
	assert_null(identity_cache_find(&cache, &key));
	key = key_of(1);
	assert_non_null(identity_cache_find(&cache, &key));
	identity_cache_fini(&cache);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(what_is_written_is_found_under_its_key),
		IN_FOLDER(the_folder_is_ours_alone),
		IN_FOLDER(a_symbolic_link_is_no_folder),
		IN_FOLDER(a_folder_of_somebody_else_is_refused),
		cmocka_unit_test(without_a_folder_nothing_is_kept),
		IN_FOLDER(the_oldest_make_room),
		IN_FOLDER(types_are_kept_beside_the_layout_and_must_be_sealed),
		IN_FOLDER(the_oldest_make_room_for_many_bytes),
		cmocka_unit_test(keys_differ_in_every_part),
		cmocka_unit_test(a_key_is_taken_of_regular_files_alone),
		cmocka_unit_test(identities_are_found_again),
		cmocka_unit_test(long_texts_of_identities_are_cut),
		cmocka_unit_test(the_oldest_identity_makes_room),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("index store", tests, NULL, NULL);
}
