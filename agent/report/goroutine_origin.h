/*
 * Where goroutines come from: the function with the go statement, the function it started, and the
 * Go module that this belongs to. Found once for each place.
 */
#ifndef AGENT_REPORT_GOROUTINE_ORIGIN_H
#define AGENT_REPORT_GOROUTINE_ORIGIN_H

#include "agent/goruntime/label.h"
#include "proto/base/error.h"

struct build_info;
struct goroutine;
struct module_table;
struct origin_table;

enum origin_kind { ORIGIN_CREATED_BY, ORIGIN_ENTRY, ORIGIN_MODULE };

/* Both are borrowed; build may be NULL: modules are not known then. The caller frees *ret. */
must_check struct error *origin_table_new(const struct module_table *modules,
					  const struct build_info *build,
					  struct origin_table **ret);
void origin_table_free(struct origin_table *table);
DEFINE_FREEP(origin_table, origin_table_free)

/*
 * As text that belongs to the table, functions as Go's tracebacks print them; with no bytes if it
 * is not known. The main goroutine was created by nobody.
 */
must_check struct error *origin_of(struct origin_table *table, const struct goroutine *g,
				   enum origin_kind kind, struct label_text *ret);

/*
 * The module of a function: the longest module path that its package begins with, "std" for the
 * standard library, NULL if it is not known. Belongs to build or is static.
 */
const char *origin_module_of(const struct build_info *build, const char *function);

#endif
