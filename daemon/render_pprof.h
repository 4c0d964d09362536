/*
 * What profiles of scans say of themselves.
 */
#ifndef DAEMON_RENDER_PPROF_H
#define DAEMON_RENDER_PPROF_H

#include "daemon/pprof_encode.h"
#include "daemon/render.h"

/* Lines for the profile's comments: tool, target, Go, how it was looked at, how far it holds. */
void pprof_comments(struct text *text, const Goheapd__ScanResult *result);

/* The chains as a gzipped profile; about->comments are lines that come after those of result. */
void render_pprof(struct text *text, const struct chain_tree *tree,
		  const Goheapd__ScanResult *result, const struct pprof_about *about,
		  size_t max_samples);

#endif
