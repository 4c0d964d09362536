/*
 * Asks a type index, which may be damaged, for everything that it may have; what it answers does
 * not matter.
 */
#ifndef TESTS_SUPPORT_ASK_TYPES_H
#define TESTS_SUPPORT_ASK_TYPES_H

#include "agent/target/memory.h"

struct type_index;

void ask_types(const struct type_index *index, taddr entry);

#endif
