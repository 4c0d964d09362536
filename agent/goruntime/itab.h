/*
 * Itabs: what the first word of an interface with methods points to, and the type it is of.
 * Compiled ones lie in their module, those made at run time in memory that the heap does not have.
 * runtime/iface.go; internal/abi/iface.go.
 */
#ifndef AGENT_GORUNTIME_ITAB_H
#define AGENT_GORUNTIME_ITAB_H

#include "agent/goruntime/go_type.h"
#include "proto/base/error.h"

/* Meets the dynamic type of an itab; TYPE_UNKNOWN for what is none. */
must_check struct error *itab_meet(struct go_types *types, taddr itab, type_id *ret);

/* Keeps all itabs that the runtime has for when memory is gone. */
must_check struct error *itab_keep(struct go_types *types);

#endif
