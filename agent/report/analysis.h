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

/*
 * While the memory of the process is there, before marking; decoded is borrowed for its life.
 * Without walks it answers only what analysis_wants_walk does not name. With copies_heap it can
 * answer when the memory is gone. The caller frees *ret.
 */
must_check struct error *analysis_read(struct decoded *decoded, bool walks, bool copies_heap,
				       struct analysis **ret);
void analysis_free(struct analysis *analysis);
DEFINE_FREEP(analysis, analysis_free)

/* The memory is gone from now on. */
must_check struct error *analysis_let_go(struct analysis *analysis);

/* Fills what is asked for, once what is live has been marked. */
must_check struct error *analysis_answer(struct analysis *analysis, const Goheapd__Analysis *query,
					 Goheapd__ScanResult *result);

#endif
