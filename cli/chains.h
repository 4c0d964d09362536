/*
 * goheap top and goheap why: tables, or JSON, of a profile that a daemon or an agent has made.
 */
#ifndef CLI_CHAINS_H
#define CLI_CHAINS_H

#include "cli/options.h"
#include "daemon/text.h"

/* ERROR_FORMAT if it is no profile of goheapd's. */
must_check struct error *chains_show(const struct options *options, const struct text *profile,
				     struct text *ret);

#endif
