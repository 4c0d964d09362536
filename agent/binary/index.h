/*
 * The index of a binary: what was learned from its DWARF, kept in a file so that the next
 * scan of the same binary opens no DWARF. A file is good for one state of one executable, and of
 * the debug file that its DWARF was in, told by its key; a damaged, foreign or stale one is refused
 * and made anew.
 *
 * The agent reads and writes the files and takes them for bytes; the decoder makes and reads their
 * content.
 */
#ifndef AGENT_BINARY_INDEX_H
#define AGENT_BINARY_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "agent/binary/elf_file.h"
#include "proto/base/error.h"

struct bytes;

enum {
	INDEX_SIZE_MAX = 1 << 20,
	INDEX_NAME_SIZE = 128,
};

/* What tells one file's content from another's, as far as the file system knows. */
struct index_file_key {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

/* The executable names the index; the rest is checked inside. */
struct index_key {
	struct index_file_key executable;
	struct index_file_key debug_file; /* zeros: the DWARF is the executable's own */
	/* Of the executable: GNU's, else Go's own. */
	uint8_t build_id[ELF_FILE_GO_BUILD_ID_MAX];
	uint32_t build_id_size;
};

/* Of an open file; ERROR_NOT_GO if it is not a regular one. */
must_check struct error *index_file_key_read(int fd, struct index_file_key *ret);
void index_key_set_build_id(struct index_key *key, const struct elf_file *file);

/* The name of the index file of an executable. */
void index_file_name(const struct index_file_key *executable, char ret[INDEX_NAME_SIZE]);

/* Appends to out. The layout is as layout_store wrote it; its addresses are link-time. */
must_check struct error *index_encode(const struct index_key *key, const struct bytes *layout,
				      struct bytes *out);

/* ERROR_FORMAT for bytes that are no index of that key. The layout stays in the bytes. */
must_check struct error *index_decode(const void *bytes, size_t size, const struct index_key *key,
				      const uint8_t **ret_layout, size_t *ret_layout_size);

/* The content of an index file; ERROR_LIMIT over INDEX_SIZE_MAX. */
must_check struct error *index_file_read(int fd, struct bytes *out);

/*
 * Writes an index file under its name in a folder: under another name first, synced, then renamed,
 * with mode 0600.
 */
must_check struct error *index_file_write(int folder_fd, const struct index_file_key *executable,
					  const void *bytes, size_t size);

#endif
