/*
 * Colour for text answers on a terminal: alarms, warnings and headings stand out. The text itself
 * is the daemon's; only whole lines and their first words are painted.
 */
#ifndef CLI_PAINT_H
#define CLI_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether to paint on that stream: a terminal that can, and a user who has not set NO_COLOR. */
bool paint_is_wanted(FILE *stream);

/* Writes a text answer with colours. False if it could not be written. */
bool paint_text(FILE *stream, const char *text, size_t size);

#endif
