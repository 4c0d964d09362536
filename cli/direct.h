/*
 * Answering without a daemon: an agent is started for one question.
 */
#ifndef CLI_DIRECT_H
#define CLI_DIRECT_H

#include "cli/options.h"
#include "daemon/text.h"

/* Puts into text what a daemon would have answered. */
must_check struct error *direct_ask(const struct options *options, struct text *text);

#endif
