/*
 * Who may ask about whom: the kernel's own ptrace rule, applied to whoever is at the other end of
 * the connection.
 */
#ifndef DAEMON_AUTH_H
#define DAEMON_AUTH_H

#include "daemon/peer.h"
#include "proto/goheapd.pb-c.h"

/*
 * Root may ask about every process. Others about one all of whose user ids (and, where the
 * caller's group is known, group ids) are theirs, that is dumpable, has no capability, and lives
 * in our user namespace: a number means somebody else in another.
 */
bool auth_may_see(const struct peer *peer, const Goheapd__Process *process);

/* NULL if the peer may see it, else ERROR_FORBIDDEN with the reason. */
must_check struct error *auth_check(const struct peer *peer, const Goheapd__Process *process);

#endif
