#include "daemon/auth.h"

#include "tests/support/assertions.h"

/* A process that user 1000 may see. */
struct subject {
	Goheapd__Process process;
	Goheapd__Access access;
	uint32_t uids[3], gids[3];
};

static struct subject *make_subject(void)
{
	static struct subject subject;

	subject = (struct subject){
		.process = GOHEAPD__PROCESS__INIT,
		.access = GOHEAPD__ACCESS__INIT,
		.uids = { 1000, 1000, 1000 },
		.gids = { 100, 100, 100 },
	};
	subject.access.n_uids = 1;
	subject.access.uids = subject.uids;
	subject.access.n_gids = 1;
	subject.access.gids = subject.gids;
	subject.access.dumpable = true;
	subject.access.same_user_namespace = true;
	subject.process.access = &subject.access;
	return &subject;
}

static const struct peer root = { .uid = 0 };
static const struct peer owner_tcp = { .uid = 1000 };
static const struct peer owner = { .uid = 1000, .gid = 100, .gid_known = true, .is_unix = true };
static const struct peer stranger = { .uid = 1001, .gid = 100, .gid_known = true };

static void a_user_may_see_what_is_theirs(void **state)
{
	struct subject *subject = make_subject();

	(void)state;
	assert_true(auth_may_see(&root, &subject->process));
	assert_true(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&owner_tcp, &subject->process));
	assert_false(auth_may_see(&stranger, &subject->process));
	assert_success(auth_check(&owner, &subject->process));
	assert_error(auth_check(&stranger, &subject->process), ERROR_FORBIDDEN);
}

static void every_user_id_must_be_theirs(void **state)
{
	struct subject *subject = make_subject();

	(void)state;
	subject->access.n_uids = 2;
	subject->uids[1] = 0; /* a set-uid program */
	assert_false(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&root, &subject->process));
	subject->access.n_uids = 0;
	assert_false(auth_may_see(&owner, &subject->process));
}

static void groups_count_where_they_are_known(void **state)
{
	struct subject *subject = make_subject();

	(void)state;
	subject->access.n_gids = 2;
	subject->gids[1] = 42;
	assert_false(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&owner_tcp, &subject->process));
}

static void what_the_kernel_shuts_is_shut(void **state)
{
	struct subject *subject = make_subject();

	(void)state;
	subject->access.dumpable = false;
	assert_false(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&root, &subject->process));

	subject = make_subject();
	subject->access.cap_permitted = 1ull << 12;
	assert_false(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&root, &subject->process));

	subject = make_subject();
	subject->access.same_user_namespace = false;
	assert_false(auth_may_see(&owner, &subject->process));
	assert_true(auth_may_see(&root, &subject->process));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_may_see_what_is_theirs),
		cmocka_unit_test(every_user_id_must_be_theirs),
		cmocka_unit_test(groups_count_where_they_are_known),
		cmocka_unit_test(what_the_kernel_shuts_is_shut),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
