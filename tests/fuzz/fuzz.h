/*
 * What every fuzz target defines. libFuzzer calls it (configure --enable-fuzzers); otherwise
 * replay_main.c calls it once for each file of the target's corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
