#include "tests/support/assertions.h"

#include "agent/target/cgroup.h"
#include "agent/target/procfs.h"
#include "tests/support/tree.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { MIB = 1 << 20 };

static struct tree tree;
static struct procfs procfs;

static int set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	procfs.cgroup = tree.root;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_fini(&tree);
	return 0;
}

static struct cgroup read_cgroup(const char *membership)
{
	struct procfs_text text = { (char *)membership, strlen(membership) };
	struct cgroup cgroup;

	assert_success(cgroup_read(&procfs, &text, &cgroup));
	return cgroup;
}

static void version_2_is_read(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "system.slice/shop.service/memory.current", "104857600\n");
	tree_write(&tree, "system.slice/shop.service/memory.max", "max\n");
	tree_write(&tree, "system.slice/shop.service/memory.high", "209715200\n");
	tree_write(&tree, "system.slice/shop.service/memory.oom.group", "1\n");
	tree_write(&tree, "system.slice/shop.service/memory.stat",
		   "anon 7\nfile 8\nkernel 9\ninactive_file 1048576\n");
	tree_write(&tree, "system.slice/shop.service/memory.events", "low 0\noom 1\noom_kill 3\n");
	tree_write(&tree, "system.slice/memory.max", "524288000\n");
	tree_write(&tree, "system.slice/memory.current", "419430400\n");
	tree_write(&tree, "system.slice/memory.stat", "inactive_file 20971520\n");
	cgroup = read_cgroup("0::/system.slice/shop.service\n");
	assert_string_equal(cgroup.path, "/system.slice/shop.service");
	assert_int_equal(cgroup.version, 2);
	assert_null(cgroup.container_id);
	assert_int_equal(cgroup.current_bytes, 100 * MIB);
	assert_int_equal(cgroup.high_bytes, 200 * MIB);
	assert_int_equal(cgroup.limit_bytes, 500 * MIB);
	assert_int_equal(cgroup.headroom_bytes, 120 * MIB);
	assert_int_equal(cgroup.anon_bytes, 7);
	assert_int_equal(cgroup.file_bytes, 8);
	assert_int_equal(cgroup.kernel_bytes, 9);
	assert_int_equal(cgroup.oom_kills, 3);
	assert_true(cgroup.oom_group);
	assert_true(cgroup.pids_max == CGROUP_NONE);
	cgroup_fini(&cgroup);
}

static void version_1_is_read(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "memory/docker/" ID "/memory.usage_in_bytes", "314572800\n");
	tree_write(&tree, "memory/docker/" ID "/memory.limit_in_bytes", "419430400\n");
	tree_write(&tree, "memory/docker/" ID "/memory.stat",
		   "rss 1\ntotal_rss 2\ntotal_cache 3\ntotal_inactive_file 10485760\n");
	tree_write(&tree, "memory/memory.limit_in_bytes", "9223372036854771712\n");
	tree_write(&tree, "pids/docker/" ID "/pids.max", "100\n");
	tree_write(&tree, "pids/docker/" ID "/pids.current", "40\n");
	cgroup = read_cgroup("9:name=systemd:/x\n8:pids:/docker/" ID "\n4:cpu,memory:/docker/" ID
			     "\n0::/\n");
	assert_string_equal(cgroup.path, "/docker/" ID);
	assert_int_equal(cgroup.version, 1);
	assert_string_equal(cgroup.container_id, ID);
	assert_int_equal(cgroup.current_bytes, 300 * MIB);
	assert_int_equal(cgroup.limit_bytes, 400 * MIB);
	assert_int_equal(cgroup.headroom_bytes, 110 * MIB);
	assert_int_equal(cgroup.anon_bytes, 2);
	assert_int_equal(cgroup.file_bytes, 3);
	assert_int_equal(cgroup.pids_max, 100);
	assert_int_equal(cgroup.pids_current, 40);
	cgroup_fini(&cgroup);
}

static void the_group_nearest_to_its_pids_counts(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "a/b/pids.max", "max\n");
	tree_write(&tree, "a/b/pids.current", "5\n");
	tree_write(&tree, "a/pids.max", "50\n");
	tree_write(&tree, "a/pids.current", "45\n");
	tree_write(&tree, "pids.max", "1000\n");
	tree_write(&tree, "pids.current", "900\n");
	cgroup = read_cgroup("0::/a/b\n");
	assert_int_equal(cgroup.pids_max, 50);
	assert_int_equal(cgroup.pids_current, 45);
	cgroup_fini(&cgroup);
}

static void nothing_is_known_without_files(void **state)
{
	struct cgroup cgroup = read_cgroup("0::/gone\n");

	(void)state;
	assert_string_equal(cgroup.path, "/gone");
	assert_true(cgroup.limit_bytes == CGROUP_NONE && cgroup.headroom_bytes == CGROUP_NONE);
	assert_true(cgroup.current_bytes == CGROUP_NONE && cgroup.kernel_bytes == CGROUP_NONE);
	assert_false(cgroup.oom_group);
	cgroup_fini(&cgroup);
}

static void a_path_out_of_the_tree_is_not_followed(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "memory.current", "7\n");
	cgroup = read_cgroup("0::/a/..\n");
	assert_true(cgroup.current_bytes == CGROUP_NONE);
	cgroup_fini(&cgroup);
	cgroup = read_cgroup("0::/\n");
	assert_int_equal(cgroup.current_bytes, 7);
	assert_string_equal(cgroup.path, "/");
	cgroup_fini(&cgroup);
}

static void hostile_lists_are_survived(void **state)
{
	static char long_line[9000];
	const char *const lists[] = { "",       "\n", "::::\n", "1:memory\n",
				      "memory", "0:", "0::",    long_line };

	(void)state;
	memset(long_line, 'a', sizeof(long_line) - 2);
	memcpy(long_line, "0::/", 4);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct cgroup cgroup = read_cgroup(lists[i]);

		assert_true(cgroup.limit_bytes == CGROUP_NONE);
		cgroup_fini(&cgroup);
	}
}

static void only_64_hex_digits_name_a_container(void **state)
{
	static const struct {
		const char *list, *id;
	} cases[] = {
		{ "0::/kubepods.slice/cri-containerd-" ID ".scope\n", ID },
		{ "0::/docker/" ID "0\n", NULL },
		{ "0::/docker/0123456789abcdef\n", NULL },
		{ "0::/" ID "/x/" ID "\n", ID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup cgroup = read_cgroup(cases[i].list);

		if (cases[i].id)
			assert_string_equal(cgroup.container_id, cases[i].id);
		else
			assert_null(cgroup.container_id);
		cgroup_fini(&cgroup);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2_is_read),
		cmocka_unit_test(version_1_is_read),
		cmocka_unit_test(the_group_nearest_to_its_pids_counts),
		cmocka_unit_test(nothing_is_known_without_files),
		cmocka_unit_test(a_path_out_of_the_tree_is_not_followed),
		cmocka_unit_test(hostile_lists_are_survived),
		cmocka_unit_test(only_64_hex_digits_name_a_container),
	};
	struct CMUnitTest with_tree[sizeof(tests) / sizeof(*tests)];

	memcpy(with_tree, tests, sizeof(tests));
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		with_tree[i].setup_func = set_up;
		with_tree[i].teardown_func = tear_down;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(with_tree, NULL, NULL);
}
