/* The parts of an answer that an Analysis asks for, each made by a room of its own. */
#ifndef AGENT_REPORT_ANALYSIS_REPORT_H
#define AGENT_REPORT_ANALYSIS_REPORT_H

#include <stdbool.h>

#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"

struct analysed;

/* Are types and chains of objects needed for it? Each question but for retained sizes needs them.
 */
bool analysis_wants_walk(const Goheapd__Analysis *query);

/* And names of roots, or of none? */
bool analysis_wants_names(const Goheapd__Analysis *query);

/* And chains, or only types? */
bool analysis_wants_chains(const Goheapd__Analysis *query);

/* And which objects the chains go through? */
bool analysis_wants_objects(const Goheapd__Analysis *query);

/* Does any part of it tell retained sizes, for which dominators are needed? */
bool analysis_wants_retained(const Goheapd__Analysis *query);

/* Fills what is asked for. */
must_check struct error *analysis_report_fill(const struct analysed *analysed,
					      const Goheapd__Analysis *query,
					      Goheapd__ScanResult *result);

#endif
