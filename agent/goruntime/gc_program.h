/*
 * GC programs: the compressed pointer masks that the compiler emits for large types (to go1.23)
 * and for data segments. runtime/mbitmap.go, runGCProg; the encoding has never changed.
 */
#ifndef AGENT_GORUNTIME_GC_PROGRAM_H
#define AGENT_GORUNTIME_GC_PROGRAM_H

#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

/*
 * Runs the program at addr (past the length that precedes a type's) and fills mask, one bit a
 * word, of bitmap_words(bit_count) words. ERROR_FORMAT if it makes more bits than that.
 */
must_check struct error *gc_program_expand(struct memory *memory, taddr addr, uint64_t bit_count,
					   uint64_t *mask);

#endif
