/*
 * As what the compiler allocated the closures of a function, from the code that makes them: a
 * struct of the code pointer and of what is captured, whose descriptor goes to the allocator right
 * before the function's address goes to the first word of what that gave. Every Go version does so,
 * and the descriptors are in stripped programs, too.
 *
 * cmd/compile/internal/walk/closure.go (gc/closure.go in go1.15). x86-64 only: the table of another
 * architecture is empty.
 */
#ifndef AGENT_GORUNTIME_CLOSURE_SITE_H
#define AGENT_GORUNTIME_CLOSURE_SITE_H

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct closure_sites;
struct module_table;

/* Reads the text of all modules once. What cannot be read of it has no sites. */
must_check struct error *closure_sites_read(struct memory *memory,
					    const struct module_table *modules,
					    struct closure_sites **ret);
void closure_sites_free(struct closure_sites *sites);
DEFINE_FREEP(closure_sites, closure_sites_free)

/*
 * The descriptor that goes with the function at this entry; 0 if none is known, or not all of its
 * sites agree. It lies in a module's types; what lies there is the caller's to check.
 */
taddr closure_sites_find(const struct closure_sites *sites, taddr code);

#endif
