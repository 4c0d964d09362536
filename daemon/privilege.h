/*
 * Giving up root: goheapd serves HTTP as a user of its own.
 */
#ifndef DAEMON_PRIVILEGE_H
#define DAEMON_PRIVILEGE_H

#include "proto/base/error.h"

/*
 * Becomes, for good, the configured user (NULL: none), else the user "goheapd" if there is one,
 * else a high user id that nobody has. Nothing happens unless we are root. Call it before there
 * are threads.
 */
must_check struct error *privilege_drop(const char *user);

#endif
