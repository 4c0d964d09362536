/*
 * Which Go a program was built with, as its build info says: "go1.26.1",
 * "go1.24.2 X:noswissmap,arenas", "go1.26.11-X:nogreenteagc", "devel go1.28-3a8b1f". It is asked
 * only whether a layout is complete and which one to begin with, never how to read anything: that
 * the layout tells.
 */
#ifndef AGENT_GORUNTIME_GO_VERSION_H
#define AGENT_GORUNTIME_GO_VERSION_H

#include <stdbool.h>

/* N of go1.N, or 0 if the text does not say. */
unsigned go_version_minor(const char *text);

/* P of go1.N.P, 0 if the text does not say. */
unsigned go_version_patch(const char *text);

/* The experiments, as in "noswissmap,arenas"; "" if there are none. Belongs to the text. */
const char *go_version_experiments(const char *text);

/* Whether the toolchain was told to make this experiment: one that is not its default. */
bool go_version_has_experiment(const char *text, const char *name);

#endif
