/*
 * Executables that unpack themselves into memory when they start: what the file on disk holds is
 * compressed, so that nothing of a Go program can be found there.
 */
#ifndef AGENT_BINARY_PACKER_H
#define AGENT_BINARY_PACKER_H

#include "proto/base/error.h"

struct elf_file;

/*
 * *ret is the packer's name, static, or NULL. Known is UPX, whose header lies right behind the
 * program headers: a checksum of four bytes, then "UPX!" (src/stub/src/include/linux.h, l_info).
 */
must_check struct error *packer_find(const struct elf_file *file, const char **ret);

#endif
