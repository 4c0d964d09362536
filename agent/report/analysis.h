/*
 * What is found of a decoded process beyond what every scan tells: the types of its objects, the
 * names of its roots, the chains that keep objects alive, what each retains. Types and roots are
 * read while the memory is there; the rest is found when it is first asked for, from the memory
 * or, once that is gone, from a copy of the part of the heap that holds pointers.
 */
#ifndef AGENT_REPORT_ANALYSIS_H
#define AGENT_REPORT_ANALYSIS_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysis;
struct decoded;

/* What there will be to answer; walks needs names. */
struct analysis_means {
	bool names;       /* of roots: without, nothing that analysis_wants_names names */
	bool walks;       /* without, nothing that analysis_wants_walk names */
	bool copies_heap; /* walks even when the memory is gone */
};

/*
 * While the memory of the process is there, before marking; decoded is borrowed for its life. The
 * caller frees *ret.
 */
must_check struct error *analysis_read(struct decoded *decoded, const struct analysis_means *means,
				       struct analysis **ret);
void analysis_free(struct analysis *analysis);
DEFINE_FREEP(analysis, analysis_free)

/* The memory is gone from now on. */
must_check struct error *analysis_let_go(struct analysis *analysis);

/* Fills what is asked for, once what is live has been marked. */
must_check struct error *analysis_answer(struct analysis *analysis, const Goheapd__Analysis *query,
					 Goheapd__ScanResult *result);

#endif
