#include "daemon/auth.h"

#include <inttypes.h>

static bool all_equal(const uint32_t *ids, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++) {
		if (ids[i] != id)
			return false;
	}
	return count > 0; /* a process without ids was not read */
}

/* Why not, or NULL. The kernel compares with every id, so that set-id programs stay shut. */
static const char *refusal(const struct peer *peer, const Goheapd__Access *access)
{
	if (peer->uid == 0)
		return NULL;
	if (!all_equal(access->uids, access->n_uids, peer->uid))
		return "it runs as another user";
	if (peer->gid_known && !all_equal(access->gids, access->n_gids, peer->gid))
		return "it runs with another group";
	if (!access->same_user_namespace)
		return "it lives in another user namespace";
	if (access->cap_permitted != 0)
		return "it holds capabilities";
	if (!access->dumpable)
		return "it is not dumpable";
	return NULL;
}

bool auth_may_see(const struct peer *peer, const Goheapd__Process *process)
{
	return !refusal(peer, process->access);
}

struct error *auth_check(const struct peer *peer, const Goheapd__Process *process)
{
	const char *reason = refusal(peer, process->access);

	if (!reason)
		return NULL;
	return error_new(ERROR_FORBIDDEN,
			 "uid %u may not ask about process %" PRIu32 ": %s; ask as root",
			 (unsigned)peer->uid, process->pid, reason);
}
