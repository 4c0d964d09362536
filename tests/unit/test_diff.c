#include "daemon/diff.h"

#include "tests/support/assertions.h"

enum { ROWS_MAX = 8, SECOND = 1000000000 };

static ProtobufCBinaryData bytes_of(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

/* A result that is put together row by row; all of it lies here. */
struct made {
	Goheapd__ScanResult result;
	Goheapd__Identity identity;
	Goheapd__ScanInfo scan;
	Goheapd__HeapTotals heap;
	Goheapd__StackTotals stacks;
	Goheapd__GcState gc;
	Goheapd__Cgroup cgroup;
	Goheapd__Histogram histogram;
	Goheapd__TypeRow types[ROWS_MAX], *type_pointers[ROWS_MAX];
	Goheapd__ReferenceProfile profile;
	Goheapd__ReferenceFrame frames[ROWS_MAX], *frame_pointers[ROWS_MAX];
	Goheapd__ReferenceNode nodes[ROWS_MAX], *node_pointers[ROWS_MAX];
	Goheapd__LabelReport labels;
	Goheapd__LabelUsage unlabelled, usages[ROWS_MAX];
	Goheapd__LabelSet sets[ROWS_MAX], *set_pointers[ROWS_MAX];
	Goheapd__LabelPair pairs[ROWS_MAX], *pair_pointers[ROWS_MAX];
};

static void make(struct made *m, uint32_t pid, uint64_t seconds)
{
	*m = (struct made){ 0 };
	goheapd__scan_result__init(&m->result);
	goheapd__identity__init(&m->identity);
	goheapd__scan_info__init(&m->scan);
	goheapd__heap_totals__init(&m->heap);
	goheapd__stack_totals__init(&m->stacks);
	goheapd__gc_state__init(&m->gc);
	goheapd__cgroup__init(&m->cgroup);
	goheapd__histogram__init(&m->histogram);
	goheapd__reference_profile__init(&m->profile);
	goheapd__label_report__init(&m->labels);
	goheapd__label_usage__init(&m->unlabelled);
	m->identity.pid = pid;
	m->scan.started_at_ns = seconds * SECOND;
	m->heap.has_live_bytes = m->heap.has_live_objects = true;
	m->histogram.types = m->type_pointers;
	m->profile.frames = m->frame_pointers;
	m->profile.nodes = m->node_pointers;
	m->labels.sets = m->set_pointers;
	m->labels.unlabelled = &m->unlabelled;
	m->result.identity = &m->identity;
	m->result.scan = &m->scan;
	m->result.heap = &m->heap;
	m->result.stacks = &m->stacks;
	m->result.gc = &m->gc;
	m->result.histogram = &m->histogram;
	m->result.profile = &m->profile;
	m->result.labels = &m->labels;
}

static void add_type(struct made *m, const char *name, uint64_t objects, uint64_t bytes)
{
	size_t i = m->histogram.n_types++;

	goheapd__type_row__init(&m->types[i]);
	m->types[i].type = bytes_of(name);
	m->types[i].objects = objects;
	m->types[i].bytes = bytes;
	m->type_pointers[i] = &m->types[i];
}

/* A chain that hangs on the one before, or begins a new one. */
static void add_node(struct made *m, bool begins, const char *frame, uint64_t objects,
		     uint64_t bytes)
{
	size_t i = m->profile.n_nodes++;

	goheapd__reference_frame__init(&m->frames[i]);
	goheapd__reference_node__init(&m->nodes[i]);
	m->frames[i].name = bytes_of(frame);
	m->frame_pointers[i] = &m->frames[i];
	m->node_pointers[i] = &m->nodes[i];
	m->nodes[i].frame = (uint32_t)i;
	m->nodes[i].has_parent = !begins;
	m->nodes[i].parent = begins ? 0 : (uint32_t)i - 1;
	m->nodes[i].objects = objects;
	m->nodes[i].bytes = bytes;
	m->profile.n_frames = m->profile.n_nodes;
}

static void add_set(struct made *m, const char *tenant, uint64_t goroutines, uint64_t exclusive)
{
	size_t i = m->labels.n_sets++;

	goheapd__label_set__init(&m->sets[i]);
	goheapd__label_usage__init(&m->usages[i]);
	goheapd__label_pair__init(&m->pairs[i]);
	m->pairs[i].key = bytes_of("tenant");
	m->pairs[i].value = bytes_of(tenant);
	m->pair_pointers[i] = &m->pairs[i];
	m->sets[i].n_labels = 1;
	m->sets[i].labels = &m->pair_pointers[i];
	m->sets[i].usage = &m->usages[i];
	m->set_pointers[i] = &m->sets[i];
	m->usages[i].goroutines = goroutines;
	m->usages[i].has_exclusive_bytes = m->usages[i].has_reachable_bytes = true;
	m->usages[i].exclusive_bytes = exclusive;
	m->usages[i].reachable_bytes = exclusive * 2;
}

static struct diff compare(const struct made *from, const struct made *to)
{
	const struct diff_side a = { &from->result, &from->result };
	const struct diff_side b = { &to->result, &to->result };
	struct diff diff;

	assert_success(diff_init(&diff, &a, &b, 256));
	return diff;
}

static void assert_sum(const struct name_sum *sum, const char *name, int64_t objects, int64_t bytes)
{
	assert_int_equal(sum->name.len, strlen(name));
	assert_memory_equal(sum->name.data, name, strlen(name));
	assert_int_equal(sum->objects, objects);
	assert_int_equal(sum->bytes, bytes);
}

static void types_that_came_went_and_grew(void **state)
{
	struct made from, to;
	struct diff diff;

	(void)state;
	make(&from, 7, 10);
	make(&to, 7, 20);
	add_type(&from, "main.Gone", 3, 300);
	add_type(&from, "main.Order", 10, 1000);
	add_type(&to, "main.Order", 12, 1200);
	add_type(&to, "main.New", 1, 5000);
	from.histogram.unknown_objects = 9;
	from.histogram.unknown_bytes = 90;
	to.histogram.unknown_bytes = 100;
	diff = compare(&from, &to);
	assert_int_equal(diff.types.count, 3);
	assert_sum(&diff.types.sums[0], "main.New", 1, 5000);
	assert_sum(&diff.types.sums[1], "main.Order", 2, 200);
	assert_sum(&diff.types.sums[2], "main.Gone", -3, -300);
	assert_int_equal(diff.unknown_objects, -9);
	assert_int_equal(diff.unknown_bytes, 10);
	diff_fini(&diff);
}

/* The other build numbers its frames in another order, and has one more. */
static void chains_are_known_by_their_names(void **state)
{
	struct made from, to;
	struct diff diff;
	uint32_t *leaves;
	size_t count;

	(void)state;
	make(&from, 7, 10);
	make(&to, 8, 20);
	add_node(&from, true, "main.cache", 1, 8);
	add_node(&from, false, "$mapval. (*main.Order)", 100, 9600);
	add_node(&to, true, "main.other", 5, 50);
	add_node(&to, true, "main.cache", 1, 8);
	add_node(&to, false, "$mapval. (*main.Order)", 220, 21120);
	diff = compare(&from, &to);
	assert_success(chain_tree_leaves(&diff.chains, &leaves, &count));
	assert_int_equal(count, 2);
	assert_int_equal(diff.chains.nodes[leaves[0]].bytes, 11520);
	assert_int_equal(diff.chains.nodes[leaves[0]].objects, 120);
	assert_int_equal(diff.chains.nodes[leaves[1]].bytes, 50);
	assert_false(diff.has_slope); /* two processes */
	assert_false(diff.has_seconds_to_limit);
	free(leaves);
	diff_fini(&diff);
}

static void label_sets_are_compared_one_by_one(void **state)
{
	struct made from, to;
	struct diff diff;

	(void)state;
	make(&from, 7, 10);
	make(&to, 7, 20);
	add_set(&from, "acme", 5, 500);
	add_set(&from, "gone", 1, 70);
	add_set(&from, "same", 4, 40);
	add_set(&to, "same", 4, 40);
	add_set(&to, "zeta", 2, 10);
	add_set(&to, "acme", 6, 900);
	to.unlabelled.goroutines = 3;
	diff = compare(&from, &to);
	assert_true(diff.has_labels);
	assert_int_equal(diff.label_count, 4);
	assert_memory_equal(diff.labels[0].labels.pairs[0]->value.data, "acme", 4);
	assert_int_equal(diff.labels[0].goroutines, 1);
	assert_int_equal(diff.labels[0].exclusive_bytes, 400);
	assert_int_equal(diff.labels[0].reachable_bytes, 800);
	assert_memory_equal(diff.labels[1].labels.pairs[0]->value.data, "zeta", 4);
	assert_int_equal(diff.labels[2].labels.count, 0);
	assert_int_equal(diff.labels[2].goroutines, 3);
	assert_false(diff.labels[2].has_bytes);
	assert_memory_equal(diff.labels[3].labels.pairs[0]->value.data, "gone", 4);
	assert_int_equal(diff.labels[3].exclusive_bytes, -70);
	diff_fini(&diff);
	from.result.labels = NULL;
	diff = compare(&from, &to);
	assert_false(diff.has_labels);
	assert_int_equal(diff.label_count, 0);
	diff_fini(&diff);
}

static void growth_says_how_long_it_can_go_on(void **state)
{
	struct made from, to;
	struct diff diff;

	(void)state;
	make(&from, 7, 100);
	make(&to, 7, 110);
	from.heap.live_bytes = 1000;
	to.heap.live_bytes = 3000;
	to.heap.live_objects = 4;
	diff = compare(&from, &to);
	assert_true(diff.seconds == 10);
	assert_int_equal(diff.live_bytes, 2000);
	assert_int_equal(diff.live_objects, 4);
	assert_true(diff.has_slope && diff.slope == 200);
	assert_false(diff.has_seconds_to_limit); /* there is none */
	diff_fini(&diff);

	to.gc.has_memory_limit_bytes = true;
	to.gc.memory_limit_bytes = 13500;
	to.stacks.bytes = 500;
	diff = compare(&from, &to);
	assert_true(diff.has_seconds_to_limit && diff.seconds_to_limit == 50);
	diff_fini(&diff);

	to.result.cgroup = &to.cgroup;
	to.cgroup.has_limit_bytes = to.cgroup.has_current_bytes = true;
	to.cgroup.limit_bytes = 6000;
	to.cgroup.current_bytes = 5000;
	diff = compare(&from, &to);
	assert_true(diff.seconds_to_limit == 5); /* the nearer one */
	diff_fini(&diff);

	to.cgroup.current_bytes = 7000;
	diff = compare(&from, &to);
	assert_true(diff.has_seconds_to_limit && diff.seconds_to_limit == 0);
	diff_fini(&diff);
}

static void what_shrinks_meets_no_limit(void **state)
{
	struct made from, to;
	struct diff diff;

	(void)state;
	make(&from, 7, 100);
	make(&to, 7, 110);
	from.heap.live_bytes = 3000;
	to.heap.live_bytes = 1000;
	to.gc.has_memory_limit_bytes = true;
	to.gc.memory_limit_bytes = 13500;
	diff = compare(&from, &to);
	assert_true(diff.has_slope && diff.slope == -200);
	assert_false(diff.has_seconds_to_limit);
	diff_fini(&diff);
	diff = compare(&to, &from); /* backwards in time */
	assert_true(diff.seconds == -10);
	assert_false(diff.has_slope);
	diff_fini(&diff);
	to.identity.start_ticks = 5; /* another process under the same pid */
	diff = compare(&from, &to);
	assert_false(diff.has_slope);
	diff_fini(&diff);
}

static void figures_beyond_all_bounds_do_not_overflow(void **state)
{
	struct made from, to;
	struct diff diff;

	(void)state;
	make(&from, 7, 1);
	make(&to, 7, 2);
	to.scan.started_at_ns = UINT64_MAX;
	from.heap.live_bytes = UINT64_MAX;
	add_type(&from, "a", UINT64_MAX, UINT64_MAX);
	add_type(&from, "a", UINT64_MAX, UINT64_MAX);
	add_set(&from, "a", UINT64_MAX, UINT64_MAX);
	add_set(&from, "a", UINT64_MAX, UINT64_MAX);
	to.unlabelled.goroutines = UINT64_MAX;
	diff = compare(&from, &to);
	assert_int_equal(diff.live_bytes, -INT64_MAX);
	assert_int_equal(diff.types.sums[0].bytes, INT64_MIN);
	assert_int_equal(diff.labels[1].exclusive_bytes, INT64_MIN);
	diff_fini(&diff);
}

static void types_are_read_off_frames(void **state)
{
	static const struct {
		const char *frame, *type;
	} cases[] = {
		{ "items. ([]main.Item)", "[]main.Item" },
		{ "(*lru.Cache)", "*lru.Cache" },
		{ "f. (func(int) (string, error))", "func(int) (string, error)" },
		{ "finalizer of (*os.File)", "*os.File" },
		{ "main.cache", "main.cache" },
		{ "main.run.(temporary)", "main.run.(temporary)" },
		{ "odd)", "odd)" },
		{ "()", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ProtobufCBinaryData type = frame_type(bytes_of(cases[i].frame));

		assert_int_equal(type.len, strlen(cases[i].type));
		assert_memory_equal(type.data, cases[i].type, type.len);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_that_came_went_and_grew),
		cmocka_unit_test(chains_are_known_by_their_names),
		cmocka_unit_test(label_sets_are_compared_one_by_one),
		cmocka_unit_test(growth_says_how_long_it_can_go_on),
		cmocka_unit_test(what_shrinks_meets_no_limit),
		cmocka_unit_test(figures_beyond_all_bounds_do_not_overflow),
		cmocka_unit_test(types_are_read_off_frames),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
