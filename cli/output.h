/*
 * A profile on its way to a file, a pipe, or nowhere: never to a terminal.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/options.h"
#include "daemon/text.h"

/*
 * Writes where --output says, and else into a pipe if standard output is one, or into a new file
 * that is named after the process. A file's name is told on standard error.
 */
must_check struct error *output_write(const struct options *options, const struct text *text);

#endif
