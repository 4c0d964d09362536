/* What roots that belong to finalizers and cleanups lead to, and how they are called. */
#ifndef AGENT_ANALYSIS_REFERENCE_SPECIAL_H
#define AGENT_ANALYSIS_REFERENCE_SPECIAL_H

#include "agent/analysis/reference_expander.h"
#include "agent/analysis/root_set.h"

/* The type of pointers to the object of a finalizer's record; TYPE_UNKNOWN: it does not say. */
must_check struct error *finalizer_type(struct expander *expander, taddr record,
					type_id *ret_pointer);

/* "finalizer of (*main.T)"; belongs to the walk. */
must_check struct error *finalizer_name(struct reference_walk *walk, type_id pointer,
					const char **ret);

/*
 * The shape of what a root leads to that no variable types; SHAPE_UNTYPED: nobody can tell. Changes
 * the root's name where there is a better one.
 */
must_check struct error *special_root_find(struct expander *expander, const struct heap_root *root,
					   const char **name, shape_id *ret);

#endif
