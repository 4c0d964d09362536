/*
 * A file is a header (magic, version, checksum and size of the rest), then the key and the
 * content. The checksum guards against damage; against malice nothing is needed, since
 * whoever reads the content checks it as it would check the executable's.
 */
#include "agent/binary/index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <zlib.h>

#include "proto/base/bytes.h"
#include "proto/base/cursor.h"

enum {
	MAGIC_SIZE = 8,
	HEADER_SIZE = 24, /* magic, version, checksum, size */
	CHECKSUM_OFFSET = 12,
	SIZE_OFFSET = 16,
	FILE_KEY_NUMBERS = 5,
};

static const struct {
	char magic[8 + 1];
	uint32_t version; /* raise it when the meaning of the content changes */
	size_t size_max;
	const char *suffix;
} kinds[] = {
	[INDEX_LAYOUT] = { "goheapix", 2, INDEX_SIZE_MAX, "index" },
	[INDEX_TYPES] = { "goheaptx", 1, INDEX_TYPES_SIZE_MAX, "types" },
};

size_t index_size_max(enum index_kind kind)
{
	return kinds[kind].size_max;
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

struct error *index_file_key_read(int fd, struct index_file_key *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_system(errno, "stat");
	if (!S_ISREG(st.st_mode))
		return error_new(ERROR_NOT_GO, "not a regular file");
	*ret = (struct index_file_key){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = nanoseconds(&st.st_mtim),
		.ctime_ns = nanoseconds(&st.st_ctim),
	};
	return NULL;
}

void index_key_set_build_id(struct index_key *key, const struct elf_file *file)
{
	size_t size;
	const uint8_t *gnu = elf_file_build_id(file, &size);
	const char *go = elf_file_go_build_id(file);

	memset(key->build_id, 0, sizeof(key->build_id));
	key->build_id_size = (uint32_t)(size ? size : strlen(go));
	memcpy(key->build_id, size ? gnu : (const uint8_t *)go, key->build_id_size);
}

void index_file_name(enum index_kind kind, const struct index_file_key *executable,
		     char ret[INDEX_NAME_SIZE])
{
	snprintf(
	    ret, INDEX_NAME_SIZE, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%s",
	    executable->device, executable->inode, executable->size, (uint64_t)executable->mtime_ns,
	    (uint64_t)executable->ctime_ns, kinds[kind].suffix);
}

static struct error *put_u64(struct bytes *out, uint64_t value)
{
	uint8_t *p;
	struct error *err = bytes_extend(out, sizeof(value), &p);

	if (!err)
		store_u64le(p, value);
	return err;
}

static struct error *put_blob(struct bytes *out, const void *data, size_t size)
{
	struct error *err = put_u64(out, size);

	return err ? err : bytes_append(out, data, size);
}

static void file_key_numbers(const struct index_file_key *key, uint64_t ret[FILE_KEY_NUMBERS])
{
	const uint64_t numbers[FILE_KEY_NUMBERS] = { key->device, key->inode, key->size,
						     (uint64_t)key->mtime_ns,
						     (uint64_t)key->ctime_ns };

	memcpy(ret, numbers, sizeof(numbers));
}

static struct error *put_file_key(struct bytes *out, const struct index_file_key *key)
{
	uint64_t numbers[FILE_KEY_NUMBERS];
	struct error *err = NULL;

	file_key_numbers(key, numbers);
	for (size_t i = 0; !err && i < FILE_KEY_NUMBERS; i++)
		err = put_u64(out, numbers[i]);
	return err;
}

static struct error *put_key(struct bytes *out, const struct index_key *key)
{
	struct error *err = put_file_key(out, &key->executable);

	if (!err)
		err = put_file_key(out, &key->debug_file);
	return err ? err : put_blob(out, key->build_id, key->build_id_size);
}

static uint32_t checksum_of(const uint8_t *bytes, size_t size)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, size);
}

/* What is only known at the end is filled in then. */
struct error *index_begin(enum index_kind kind, const struct index_key *key, struct bytes *out,
			  struct index_draft *ret)
{
	size_t start = out->size;
	uint8_t *header;
	struct error *err = bytes_extend(out, HEADER_SIZE, &header);

	if (!err) {
		memset(header, 0, HEADER_SIZE);
		memcpy(header, kinds[kind].magic, MAGIC_SIZE);
		store_u32le(header + MAGIC_SIZE, kinds[kind].version);
		err = put_key(out, key);
	}
	if (!err)
		err = put_u64(out, 0);
	if (err)
		return error_context(err, "index");
	*ret = (struct index_draft){ start, out->size };
	return NULL;
}

void index_end(const struct index_draft *draft, struct bytes *out)
{
	uint8_t *header = out->data + draft->start;
	size_t size = out->size - draft->start;

	store_u64le(out->data + draft->content - sizeof(uint64_t), out->size - draft->content);
	store_u64le(header + SIZE_OFFSET, size - HEADER_SIZE);
	store_u32le(header + CHECKSUM_OFFSET,
		    checksum_of(header + SIZE_OFFSET, size - SIZE_OFFSET));
}

struct error *index_encode(enum index_kind kind, const struct index_key *key,
			   const struct bytes *content, struct bytes *out)
{
	struct index_draft draft;
	struct error *err = index_begin(kind, key, out, &draft);

	if (!err)
		err = bytes_append(out, content->data, content->size);
	if (!err)
		index_end(&draft, out);
	return err;
}

static struct error *take_blob(struct cursor *c, size_t limit, const uint8_t **ret,
			       size_t *ret_size)
{
	uint64_t size;
	struct error *err = cursor_u64le(c, &size);

	if (err)
		return err;
	if (size > limit)
		return error_new(ERROR_FORMAT, "index: %" PRIu64 " bytes in one piece", size);
	err = cursor_take(c, size, ret);
	if (!err)
		*ret_size = size;
	return err;
}

static struct error *check_header(enum index_kind kind, struct cursor *c)
{
	const uint8_t *header;
	struct error *err = cursor_take(c, HEADER_SIZE, &header);

	if (err)
		return err;
	if (memcmp(header, kinds[kind].magic, MAGIC_SIZE) != 0 ||
	    load_u32le(header + MAGIC_SIZE) != kinds[kind].version)
		return error_new(ERROR_FORMAT, "index: of another program or version");
	if (load_u64le(header + SIZE_OFFSET) != cursor_left(c) ||
	    load_u32le(header + CHECKSUM_OFFSET) !=
		checksum_of(header + SIZE_OFFSET, cursor_left(c) + HEADER_SIZE - SIZE_OFFSET))
		return error_new(ERROR_FORMAT, "index: damaged");
	return NULL;
}

/* *ret_equal turns false if the next is another key. */
static struct error *compare_file_key(struct cursor *c, const struct index_file_key *expected,
				      bool *ret_equal)
{
	uint64_t numbers[FILE_KEY_NUMBERS];
	struct error *err = NULL;

	file_key_numbers(expected, numbers);
	for (size_t i = 0; !err && i < FILE_KEY_NUMBERS; i++) {
		uint64_t number = 0;

		err = cursor_u64le(c, &number);
		*ret_equal = *ret_equal && number == numbers[i];
	}
	return err;
}

static struct error *check_key(struct cursor *c, const struct index_key *expected)
{
	bool executable_equal = true, debug_file_equal = true;
	const uint8_t *build_id;
	size_t size;
	struct error *err = compare_file_key(c, &expected->executable, &executable_equal);

	if (!err)
		err = compare_file_key(c, &expected->debug_file, &debug_file_equal);
	if (!err)
		err = take_blob(c, sizeof(expected->build_id), &build_id, &size);
	if (err)
		return err;
	if (!executable_equal || size != expected->build_id_size ||
	    memcmp(build_id, expected->build_id, size) != 0)
		return error_new(ERROR_FORMAT, "index: of another executable");
	if (!debug_file_equal)
		return error_new(ERROR_FORMAT, "index: of another debug file");
	return NULL;
}

struct error *index_decode(enum index_kind kind, const void *bytes, size_t size,
			   const struct index_key *key, const uint8_t **ret_content,
			   size_t *ret_content_size)
{
	const uint8_t *content;
	size_t content_size;
	struct cursor c;
	struct error *err;

	cursor_init(&c, "index", bytes, size);
	err = check_header(kind, &c);
	if (!err)
		err = check_key(&c, key);
	if (!err)
		err = take_blob(&c, kinds[kind].size_max, &content, &content_size);
	if (err)
		return err;
	if (cursor_left(&c))
		return error_new(ERROR_FORMAT, "index: %zu bytes too many", cursor_left(&c));
	*ret_content = content;
	*ret_content_size = content_size;
	return NULL;
}
