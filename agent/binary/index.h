/*
 * The indexes of a binary: what was learned from its DWARF, kept in files so that the next scan of
 * the same binary opens no DWARF. A file is good for one state of one executable, and of the debug
 * file that its DWARF was in, told by its key; a damaged, foreign or stale one is refused and made
 * anew.
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

/* What a file holds: the layout of the runtime, or a type index. */
enum index_kind { INDEX_LAYOUT, INDEX_TYPES };

enum {
	INDEX_SIZE_MAX = 1 << 20, /* of the layout */
	INDEX_TYPES_SIZE_MAX = 256 << 20,
	INDEX_NAME_SIZE = 128,
};

size_t index_size_max(enum index_kind kind);

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

/* The name of an index file of an executable. */
void index_file_name(enum index_kind kind, const struct index_file_key *executable,
		     char ret[INDEX_NAME_SIZE]);

/* Where in the bytes an index that is being written is. */
struct index_draft {
	size_t start, content;
};

/*
 * An index is begun at the end of out, its content appended, and ended. The content is as
 * layout_store or type_index_build wrote it; its addresses are link-time.
 */
must_check struct error *index_begin(enum index_kind kind, const struct index_key *key,
				     struct bytes *out, struct index_draft *ret);
void index_end(const struct index_draft *draft, struct bytes *out);

/* All of it at once. */
must_check struct error *index_encode(enum index_kind kind, const struct index_key *key,
				      const struct bytes *content, struct bytes *out);

/* ERROR_FORMAT for bytes that are no index of that kind and key. The content stays in the bytes. */
must_check struct error *index_decode(enum index_kind kind, const void *bytes, size_t size,
				      const struct index_key *key, const uint8_t **ret_content,
				      size_t *ret_content_size);

/* The content of an index file; ERROR_LIMIT over out's limit. */
must_check struct error *index_file_read(int fd, struct bytes *out);

/*
 * Writes an index file under its name in a folder: under another name first, then renamed, with
 * mode 0600. It is not waited until it is on the disk: one that a crash cut off is damaged, and
 * made anew.
 */
must_check struct error *index_file_write(enum index_kind kind, int folder_fd,
					  const struct index_file_key *executable,
					  const void *bytes, size_t size);

#endif
