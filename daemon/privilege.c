#include "daemon/privilege.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "proto/base/log.h"

/*
 * Above the ranges that distributions, directory services, containers and systemd's dynamic users
 * take ids from, and below 2^31.
 */
enum { PRIVATE_UID_FIRST = 1900070700, PRIVATE_UID_LAST = PRIVATE_UID_FIRST + 99 };

struct identity {
	uid_t uid;
	gid_t gid;
};

static bool find_user(const char *name, struct identity *ret)
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return false;
	*ret = (struct identity){ .uid = user->pw_uid, .gid = user->pw_gid };
	return true;
}

static struct error *find_private(struct identity *ret)
{
	for (uid_t id = PRIVATE_UID_FIRST; id <= PRIVATE_UID_LAST; id++) {
		if (!getpwuid(id) && !getgrgid(id)) {
			*ret = (struct identity){ .uid = id, .gid = id };
			return NULL;
		}
	}
	return error_new(ERROR_SYSTEM, "no user id is free; name one in the configuration: user");
}

static struct error *choose(const char *user, struct identity *ret)
{
	if (user) {
		if (!find_user(user, ret))
			return error_new(ERROR_SYSTEM, "there is no user \"%s\"", user);
		if (ret->uid == 0)
			return error_new(ERROR_SYSTEM,
					 "user = %s is root, which goheapd does not serve as",
					 user);
		return NULL;
	}
	return find_user("goheapd", ret) ? NULL : find_private(ret);
}

static struct error *become(const struct identity *identity)
{
	if (setgroups(0, NULL) < 0 || setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
	    setresuid(identity->uid, identity->uid, identity->uid) < 0)
		return error_system(errno, "cannot become uid %u", (unsigned)identity->uid);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_system(errno, "PR_SET_NO_NEW_PRIVS");
	if (setuid(0) == 0)
		return error_new(ERROR_SYSTEM, "root could not be given up");
	return NULL;
}

struct error *privilege_drop(const char *user)
{
	struct identity identity;
	struct error *err;

	if (geteuid() != 0)
		return NULL;
	err = choose(user, &identity);
	if (!err)
		err = become(&identity);
	if (!err)
		log_info("main", "root given up uid=%u gid=%u", (unsigned)identity.uid,
			 (unsigned)identity.gid);
	return err;
}
