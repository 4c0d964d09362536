/*
 * The part of closure_site.h that depends on the architecture: what code that makes closures looks
 * like.
 */
#ifndef AGENT_GORUNTIME_CLOSURE_SITE_CODE_H
#define AGENT_GORUNTIME_CLOSURE_SITE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/target/memory.h"
#include "proto/base/error.h"

struct module;

enum { CLOSURE_SITE_SIZE_MAX = 128 }; /* bytes of code */

struct closure_site {
	taddr code; /* the entry of the closure's function */
	taddr type;
};

typedef struct error *closure_site_sink(void *arg, const struct closure_site *site);

/* Finds all sites in size bytes of a module's code, which lie at pc, wherever they begin. */
must_check struct error *closure_site_scan(const uint8_t *code, size_t size, taddr pc,
					   const struct module *module, closure_site_sink *sink,
					   void *arg);

#endif
