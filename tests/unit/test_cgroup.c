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
	procfs.proc = procfs.cgroup = tree.root;
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
	assert_int_equal(cgroup.headroom_bytes, 101 * MIB);
	assert_string_equal(cgroup.headroom_limit, "memory.high");
	assert_int_equal(cgroup.anon_bytes, 7);
	assert_int_equal(cgroup.file_bytes, 8);
	assert_int_equal(cgroup.kernel_bytes, 9);
	assert_int_equal(cgroup.oom_kills, 3);
	assert_true(cgroup.oom_group);
	assert_false(cgroup.hidden);
	assert_string_equal(cgroup.unit, "shop.service");
	assert_true(cgroup.pids_max == CGROUP_NONE);
	cgroup_fini(&cgroup);
}

static void assert_headroom(const char *membership, uint64_t bytes, const char *limit,
			    unsigned above)
{
	struct cgroup cgroup = read_cgroup(membership);

	assert_int_equal(cgroup.headroom_bytes, bytes);
	if (limit)
		assert_string_equal(cgroup.headroom_limit, limit);
	else
		assert_null(cgroup.headroom_limit);
	assert_int_equal(cgroup.headroom_above, above);
	assert_false(cgroup.hidden);
	cgroup_fini(&cgroup);
}

static void the_tightest_limit_up_to_the_root_counts(void **state)
{
	(void)state;
	tree_write(&tree, "a/b/c/memory.current", "100\n");
	tree_write(&tree, "a/b/c/memory.max", "max\n");
	tree_write(&tree, "a/b/c/memory.high", "max\n");
	tree_write(&tree, "a/b/memory.current", "700\n");
	tree_write(&tree, "a/b/memory.max", "1000\n");
	tree_write(&tree, "a/memory.current", "5000\n");
	tree_write(&tree, "a/memory.max", "9000\n");
	assert_headroom("0::/a/b/c\n", 300, "memory.max", 1);
	tree_write(&tree, "a/memory.max", "5299\n");
	assert_headroom("0::/a/b/c\n", 299, "memory.max", 2);
	/* where the kernel makes whoever allocates wait */
	tree_write(&tree, "a/b/c/memory.high", "398\n");
	assert_headroom("0::/a/b/c\n", 298, "memory.high", 0);
	tree_write(&tree, "a/b/memory.high", "600\n");
	assert_headroom("0::/a/b/c\n", 0, "memory.high", 1);
	/* the root of a container's own mount may have one, too */
	assert_headroom("0::/\n", CGROUP_NONE, NULL, 0);
	tree_write(&tree, "memory.current", "1000\n");
	tree_write(&tree, "memory.max", "1001\n");
	assert_headroom("0::/\n", 1, "memory.max", 0);
}

static void groups_without_the_controller_have_no_limit(void **state)
{
	(void)state;
	tree_write(&tree, "a/memory.current", "700\n");
	tree_write(&tree, "a/memory.max", "1000\n");
	tree_write(&tree, "a/b/c/cgroup.procs", "1\n");
	assert_headroom("0::/a/b/c\n", 300, "memory.max", 2);
	assert_headroom("0::/\n", CGROUP_NONE, NULL, 0);
	assert_headroom("9:cpu:/x\n0::/\n", CGROUP_NONE, NULL, 0);
}

static void swap_is_limited_too_in_version_1(void **state)
{
	(void)state;
	tree_write(&tree, "memory/a/memory.usage_in_bytes", "100\n");
	tree_write(&tree, "memory/a/memory.limit_in_bytes", "1000\n");
	tree_write(&tree, "memory/a/memory.memsw.usage_in_bytes", "900\n");
	tree_write(&tree, "memory/a/memory.memsw.limit_in_bytes", "1000\n");
	assert_headroom("4:memory:/a\n", 100, "memory.memsw.limit_in_bytes", 0);
	tree_write(&tree, "memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 20\n");
	assert_headroom("4:memory:/a\n", 120, "memory.memsw.limit_in_bytes", 0);
	tree_write(&tree, "memory/a/memory.memsw.limit_in_bytes", "9223372036854771712\n");
	assert_headroom("4:memory:/a\n", 920, "memory.limit_in_bytes", 0);
}

static void groups_above_bind_in_version_1_where_they_count(void **state)
{
	(void)state;
	tree_write(&tree, "memory/a/b/memory.usage_in_bytes", "100\n");
	tree_write(&tree, "memory/a/b/memory.limit_in_bytes", "1000\n");
	tree_write(&tree, "memory/a/memory.usage_in_bytes", "500\n");
	tree_write(&tree, "memory/a/memory.limit_in_bytes", "501\n");
	assert_headroom("4:memory:/a/b\n", 1, "memory.limit_in_bytes", 1);
	tree_write(&tree, "memory/a/memory.use_hierarchy", "1\n");
	assert_headroom("4:memory:/a/b\n", 1, "memory.limit_in_bytes", 1);
	tree_write(&tree, "memory/a/memory.use_hierarchy", "0\n");
	assert_headroom("4:memory:/a/b\n", 900, "memory.limit_in_bytes", 0);
}

static void both_versions_can_be_mounted(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "unified/cgroup.controllers", "memory pids\n");
	tree_write(&tree, "unified/a/memory.current", "1\n");
	tree_write(&tree, "unified/a/memory.max", "10\n");
	tree_write(&tree, "unified/a/pids.current", "3\n");
	tree_write(&tree, "unified/a/pids.max", "30\n");
	tree_write(&tree, "memory/b/memory.usage_in_bytes", "1\n");
	tree_write(&tree, "memory/b/memory.limit_in_bytes", "20\n");
	assert_headroom("1:name=systemd:/x\n0::/a\n", 9, "memory.max", 0);
	cgroup = read_cgroup("4:memory:/b\n1:name=systemd:/x\n0::/a\n");
	assert_int_equal(cgroup.version, 1);
	assert_int_equal(cgroup.headroom_bytes, 19);
	assert_int_equal(cgroup.pids_max, 30);
	assert_int_equal(cgroup.pids_current, 3);
	cgroup_fini(&cgroup);
}

static void controllers_may_share_a_folder(void **state)
{
	(void)state;
	tree_write(&tree, "cpu,memory/a/memory.usage_in_bytes", "1\n");
	tree_write(&tree, "cpu,memory/a/memory.limit_in_bytes", "20\n");
	assert_headroom("4:cpu,memory:/a\n", 19, "memory.limit_in_bytes", 0);
}

/* What it may use is not known then, which is not the same as having no limit. */
static void a_group_that_is_not_mounted_is_hidden(void **state)
{
	static const char *const lists[] = {
		"0::/gone\n",   "0::/../../kubepods.slice/pod1/c1\n",
		"0::/..\n",     "4:memory:/docker/x\n",
		"0::/a/../b\n",
	};
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "memory.current", "7\n");
	tree_write(&tree, "memory.max", "8\n");
	tree_write(&tree, "b/memory.max", "8\n");
	tree_write(&tree, "memory/memory.limit_in_bytes", "9223372036854771712\n");
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cgroup = read_cgroup(lists[i]);
		assert_true(cgroup.hidden);
		assert_true(cgroup.current_bytes == CGROUP_NONE);
		cgroup_fini(&cgroup);
	}
	/* nothing but a name */
	tree_write(&tree, "a/..b/memory.current", "7\n");
	cgroup = read_cgroup("0::/a/..b\n");
	assert_false(cgroup.hidden);
	assert_int_equal(cgroup.current_bytes, 7);
	cgroup_fini(&cgroup);
}

static void a_group_is_found_in_a_part_that_is_mounted(void **state)
{
	static const struct {
		const char *list, *root;
		bool visible;
	} cases[] = {
		{ "4:memory:/docker/x/a\n", "/docker/x", true },
		{ "4:memory:/docker/x\n", "/docker/x", true },
		{ "4:memory:/docker/xy/a\n", "/docker/x", false },
		{ "4:memory:/docker/y\n", "/docker/x", false },
		{ "4:memory:/../../a\n", "/../..", true },
		{ "4:memory:/../a\n", "/../..", false },
		{ "4:memory:/gone/a\n", "/", false },
		{ "4:memory:/docker/x/gone\n", "/docker/x", false },
	};
	char text[512];

	(void)state;
	tree_write(&tree, "memory/a/memory.usage_in_bytes", "5\n");
	tree_write(&tree, "memory/memory.usage_in_bytes", "6\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup cgroup;

		snprintf(text, sizeof(text),
			 "22 28 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
			 "short\n\n"
			 "33 32 0:28 %s %s/memory rw,nosuid - cgroup cgroup rw,memory\n",
			 cases[i].root, tree.root);
		tree_write(&tree, "self/mountinfo", text);
		cgroup = read_cgroup(cases[i].list);
		assert_int_equal(cgroup.hidden, !cases[i].visible);
		if (cases[i].visible)
			assert_int_equal(cgroup.current_bytes, strchr(cases[i].list, 'a') ? 5 : 6);
		cgroup_fini(&cgroup);
	}
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

/* 4,000 are more than 3,600, but less than a tenth. */
static void a_tenth_of_each_group_counts(void **state)
{
	struct cgroup cgroup;

	(void)state;
	tree_write(&tree, "a/b/pids.max", "50000\n");
	tree_write(&tree, "a/b/pids.current", "46000\n");
	tree_write(&tree, "a/pids.max", "4000\n");
	tree_write(&tree, "a/pids.current", "400\n");
	cgroup = read_cgroup("0::/a/b\n");
	assert_int_equal(cgroup.pids_max, 50000);
	assert_true(cgroup_tasks_slack(cgroup.pids_current, cgroup.pids_max) == -1000);
	cgroup_fini(&cgroup);
}

static void slack_is_what_is_left_beyond_16_and_a_tenth(void **state)
{
	static const struct {
		uint64_t current, max;
		int64_t slack;
	} cases[] = {
		{ 0, 16, 0 },
		{ 1, 16, -1 },
		{ 84, 100, 0 },
		{ 85, 100, -1 },
		{ 900, 1000, 0 },
		{ 901, 1000, -1 },
		{ 901, 1001, -1 },
		{ 900, 1001, 0 },
		{ 50, 40, -16 },
		{ 7, 0, -16 },
		{ 0, UINT64_MAX, INT64_MAX },
		{ UINT64_MAX, 5, -16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_true(cgroup_tasks_slack(cases[i].current, cases[i].max) == cases[i].slack);
}

static void a_freezer_is_seen(void **state)
{
	static const char list[] = "3:freezer:/f\n2:memory:/m\n0::/a/b\n";
	static const struct {
		const char *file, *text;
		unsigned frozen_by;
	} cases[] = {
		{ "freezer/f/freezer.state", "THAWED\n", 0 },
		{ "freezer/f/freezer.state", "FREEZING\n", 1 },
		{ "freezer/f/freezer.state", "FROZEN\n", 1 },
		{ "freezer/f/freezer.state", "", 0 },
		{ "a/b/cgroup.freeze", "0\n", 0 },
		{ "a/b/cgroup.freeze", "1\n", 2 },
		{ "a/b/cgroup.freeze", "0\n", 0 },
		{ "a/cgroup.freeze", "1\n", 2 },
		{ "a/cgroup.freeze", "0\n", 0 },
		{ "a/b/cgroup.events", "populated 1\nfrozen 0\n", 0 },
		{ "a/b/cgroup.events", "populated 1\nfrozen 1\n", 2 },
		{ "freezer/f/freezer.state", "FROZEN\n", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup cgroup;

		tree_write(&tree, cases[i].file, cases[i].text);
		cgroup = read_cgroup(list);
		assert_int_equal(cgroup.frozen_by, cases[i].frozen_by);
		cgroup_fini(&cgroup);
	}
}

static void the_innermost_unit_is_found(void **state)
{
	static const struct {
		const char *list, *unit;
	} cases[] = {
		{ "0::/system.slice/shop.service\n", "shop.service" },
		{ "0::/system.slice/shop.service/workers/7\n", "shop.service" },
		{ "0::/user.slice/user-1.slice/user@1.service/app.slice/a.scope\n", "a.scope" },
		{ "0::/system.slice/docker-" ID ".scope\n", "docker-" ID ".scope" },
		{ "1:name=systemd:/system.slice/x.service\n0::/y.service\n", "x.service" },
		{ "4:memory:/z.service\n0::/y.service\n", "y.service" },
		{ "0::/system.slice\n", NULL },
		{ "0::/.service\n", NULL },
		{ "0::/shop.service.d\n", NULL },
		{ "0::/\n", NULL },
		{ "0::no-slash.service\n", "no-slash.service" },
		{ "4:memory:/z.service\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cgroup cgroup = read_cgroup(cases[i].list);

		if (cases[i].unit)
			assert_string_equal(cgroup.unit, cases[i].unit);
		else
			assert_null(cgroup.unit);
		cgroup_fini(&cgroup);
	}
}

static void groups_and_units_are_matched_by_pattern(void **state)
{
	static const struct {
		const char *path, *unit;
		bool matches;
	} cases[] = {
		{ "/kubepods.slice/pod1/x.service", NULL, true },
		{ "/kubepods.slice/*", NULL, true },
		{ "/kubepods.slice/pod?/x.s*", NULL, true },
		{ "*", NULL, true },
		{ "/kubepods.slice", NULL, false },
		{ "kubepods.slice/*", NULL, false },
		{ "/pod1/*", NULL, false },
		{ "[", NULL, false },
		{ "", NULL, false },
		{ NULL, "x.service", true },
		{ NULL, "[xy].service", true },
		{ NULL, "x.scope", false },
		{ NULL, "kubepods.slice", false },
	};
	struct cgroup cgroup = read_cgroup("0::/kubepods.slice/pod1/x.service\n");

	(void)state;
	assert_false(cgroup_matches(&cgroup, NULL, 0, NULL, 0));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *path = (char *)(uintptr_t)cases[i].path;
		char *unit = (char *)(uintptr_t)cases[i].unit;

		assert_int_equal(cgroup_matches(&cgroup, &path, path != NULL, &unit, unit != NULL),
				 cases[i].matches);
	}
	cgroup_fini(&cgroup);
	cgroup = read_cgroup("");
	assert_false(cgroup_matches(&cgroup, (char *[]){ (char[]){ "*" } }, 1,
				    (char *[]){ (char[]){ "*" } }, 1));
	cgroup_fini(&cgroup);
}

static void hostile_contents_are_survived(void **state)
{
	static const char *const files[] = {
		"memory.max",   "memory.current", "memory.stat",   "memory.high",     "pids.max",
		"pids.current", "memory.events",  "cgroup.events", "memory.oom.group"
	};
	static char long_text[70000];
	const char *const texts[] = { "",       "\n", "-1\n",       "99999999999999999999999\n",
				      "x0",     " ",  "oom_kill\n", "frozen x\ninactive_file -\n",
				      long_text };

	(void)state;
	memset(long_text, '9', sizeof(long_text) - 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct cgroup cgroup;

		for (size_t j = 0; j < sizeof(files) / sizeof(*files); j++) {
			char name[64];

			snprintf(name, sizeof(name), "a/%s", files[j]);
			tree_write(&tree, name, texts[i]);
		}
		cgroup = read_cgroup("0::/a\n");
		assert_true(cgroup.headroom_bytes == CGROUP_NONE);
		assert_true(cgroup.pids_max == CGROUP_NONE);
		assert_false(cgroup.oom_group);
		assert_int_equal(cgroup.frozen_by, 0);
		cgroup_fini(&cgroup);
	}
	/* a limit whose use is not known leaves nothing */
	tree_write(&tree, "a/memory.max", "5000\n");
	assert_headroom("0::/a\n", 0, "memory.max", 0);
}

static void a_path_of_thousands_of_groups_has_an_end(void **state)
{
	static char list[4096];
	size_t size = 3;
	struct cgroup cgroup;

	(void)state;
	strcpy(list, "0::");
	for (; size + 3 < sizeof(list); size += 2)
		memcpy(list + size, "/a", 2);
	cgroup = read_cgroup(list);
	assert_true(cgroup.hidden);
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
		cmocka_unit_test(the_tightest_limit_up_to_the_root_counts),
		cmocka_unit_test(groups_without_the_controller_have_no_limit),
		cmocka_unit_test(swap_is_limited_too_in_version_1),
		cmocka_unit_test(groups_above_bind_in_version_1_where_they_count),
		cmocka_unit_test(both_versions_can_be_mounted),
		cmocka_unit_test(controllers_may_share_a_folder),
		cmocka_unit_test(a_group_that_is_not_mounted_is_hidden),
		cmocka_unit_test(a_group_is_found_in_a_part_that_is_mounted),
		cmocka_unit_test(a_tenth_of_each_group_counts),
		cmocka_unit_test(slack_is_what_is_left_beyond_16_and_a_tenth),
		cmocka_unit_test(a_freezer_is_seen),
		cmocka_unit_test(the_innermost_unit_is_found),
		cmocka_unit_test(groups_and_units_are_matched_by_pattern),
		cmocka_unit_test(hostile_contents_are_survived),
		cmocka_unit_test(a_path_of_thousands_of_groups_has_an_end),
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
