/*
 * Where things lie unless an option says otherwise: system folders for root, the user's own for
 * everybody else. Used by the daemon and by goheap, which looks for the daemon's socket there.
 */
#ifndef DAEMON_PATHS_H
#define DAEMON_PATHS_H

#include "proto/base/error.h"

enum path_kind { PATH_RUN, PATH_CACHE };

/* The default folder of that kind for the calling user. The caller frees *ret. */
must_check struct error *path_default(enum path_kind kind, char **ret);

/* "folder/name"; the caller frees *ret. */
must_check struct error *path_join(const char *folder, const char *name, char **ret);

/*
 * Makes a folder with its parents, unless it is there. One that is made has the mode, its parents
 * 0755. ERROR_DENIED if it belongs to a user other than the calling one or root, or others may
 * write to it.
 */
must_check struct error *path_make_folder(const char *path, unsigned mode);

/* The socket's name in the run folder, and root's run folder. */
#define PATH_SOCKET_NAME    "goheapd.sock"
#define PATH_SYSTEM_RUN_DIR "/run/goheapd"

#endif
