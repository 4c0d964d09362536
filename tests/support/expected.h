/*
 * Answers against files that were read by a person before they were checked in
 * (tests/unit/expected). Run with UPDATE_EXPECTED=1 to write them anew; then read them again.
 */
#ifndef TESTS_SUPPORT_EXPECTED_H
#define TESTS_SUPPORT_EXPECTED_H

#include "daemon/text.h"

/* Compares and gives text back. */
void check_text(struct text *text, const char *name);

/* The same for JSON: the files hold it with indentation, for readers; what is served is one line.
 */
void check_json(struct text *text, const char *name);

/* Writes a file of the folder. */
void write_expected(const char *name, const struct text *text);

#endif
