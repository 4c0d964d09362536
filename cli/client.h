/*
 * Asking a daemon over its Unix socket.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdbool.h>

#include "cli/options.h"
#include "daemon/text.h"

/*
 * Asks the daemon on the socket at path and puts its answer into text. Where none listens
 * *ret_no_daemon is set and nothing else happens. The daemon's refusal comes back as an error with
 * its message and ERROR_BAD_REQUEST if it was the question's fault.
 */
must_check struct error *client_ask(const char *path, const struct options *options,
				    struct text *text, bool *ret_no_daemon);

#endif
