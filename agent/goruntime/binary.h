/*
 * The executable of a target: all that can be known of it before the target is stopped. Its
 * layout comes from the index of an earlier scan or from its DWARF, and then a new index is made.
 */
#ifndef AGENT_GORUNTIME_BINARY_H
#define AGENT_GORUNTIME_BINARY_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct binary;
struct build_info;
struct bytes;
struct elf_file;
struct layout;
struct pclntab;

/*
 * Says what the executable is: ERROR_NOT_GO, ERROR_UNSUPPORTED_ARCH. The descriptor is borrowed
 * for the life of the result, which the caller frees.
 */
must_check struct error *binary_open(int exe_fd, struct binary **ret);
void binary_free(struct binary *binary);
DEFINE_FREEP(binary, binary_free)

const struct elf_file *binary_elf(const struct binary *binary);
const struct build_info *binary_build_info(const struct binary *binary);

enum { BINARY_BUILD_ID_SIZE = 257 };

/* The GNU build id in hex, else Go's own, else "". */
void binary_build_id(const struct binary *binary, char ret[BINARY_BUILD_ID_SIZE]);

/*
 * Loads layout and pclntab, at the addresses of a process that has the executable's first segment
 * mapped at first_mapped. index is what an earlier scan left, of size 0 if there is nothing: a
 * good one is used, any other ignored. Once for a binary.
 *
 * ERROR_NO_DEBUG_INFO without DWARF; ERROR_UNSUPPORTED for a runtime whose layout lacks something.
 */
must_check struct error *binary_load(struct binary *binary, taddr first_mapped, const void *index,
				     size_t index_size);

/* After a successful binary_load. All belong to the binary. */
const struct layout *binary_layout(const struct binary *binary);
const struct pclntab *binary_pclntab(const struct binary *binary);
bool binary_index_used(const struct binary *binary);

/* The index to keep for the next scan; of size 0 if one was used or none can be made. */
const struct bytes *binary_new_index(const struct binary *binary);

#endif
