/*
 * Which party holds each object alone: what attribution counts and forgets (label_color.h), kept
 * for whoever wants to know what these objects are.
 */
#ifndef AGENT_ANALYSIS_LABEL_HOLDER_H
#define AGENT_ANALYSIS_LABEL_HOLDER_H

#include <stdint.h>

#include "proto/base/error.h"

struct label_attribution;
struct label_holders;

enum { LABEL_NO_HOLDER = UINT32_MAX };

/* What the input points to is borrowed for the life of *ret, which the caller frees. */
must_check struct error *label_holders_find(const struct label_attribution *input,
					    struct label_holders **ret);
void label_holders_free(struct label_holders *holders);
DEFINE_FREEP(label_holders, label_holders_free)

/* The only party that reaches a live object; LABEL_NO_HOLDER: there are several. */
uint32_t label_holder(const struct label_holders *holders, uint32_t object);

#endif
