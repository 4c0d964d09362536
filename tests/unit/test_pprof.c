/*
 * Reference chains as profiles: what a reader of the format finds in them. go tool pprof and a
 * parser that shares nothing with ours read them in tests/integration/profile.py.
 */
#include "daemon/chain_tree.h"
#include "daemon/gzip.h"
#include "daemon/pprof_decode.h"
#include "daemon/pprof_encode.h"
#include "daemon/pprof_keys.h"
#include "daemon/pprof_size.h"
#include "daemon/render.h"
#include "daemon/scan_check.h"
#include "proto/profile.pb-c.h"
#include "tests/support/assertions.h"
#include "tests/support/canned.h"
#include "tests/support/canned_profile.h"

enum { ALL_SAMPLES = 16000, DEEP = 1024 };

static ProtobufCBinaryData bytes_of(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

static Goheapd__ProfileQuery query_of(bool labels)
{
	Goheapd__ProfileQuery query = GOHEAPD__PROFILE_QUERY__INIT;

	query.max_depth = DEEP;
	query.max_samples = ALL_SAMPLES;
	query.has_labels = true;
	query.labels = labels;
	return query;
}

static struct chain_tree tree_of(const Goheapd__ReferenceProfile *profile)
{
	struct chain_tree tree;

	chain_tree_init(&tree);
	assert_success(chain_tree_add(&tree, profile, CHAIN_PLUS, DEEP));
	return tree;
}

static struct chain_tree canned_tree(bool labels)
{
	Goheapd__ProfileQuery query = query_of(labels);

	return tree_of(canned_profile(canned_scan()->heap, &query, 0));
}

static Pprof__Profile *encode(const struct chain_tree *tree, size_t max_samples, size_t *ret_size)
{
	const struct pprof_about about = { .exe = bytes_of("/usr/bin/\xff"),
					   .build_id = bytes_of("abcdef"),
					   .comments = bytes_of("first\nsecond\n"),
					   .time_ns = 5 };
	Pprof__Profile *profile;
	struct bytes bytes;

	bytes_init(&bytes, PPROF_MAX_BYTES);
	assert_success(pprof_encode(tree, &about, max_samples, &bytes));
	*ret_size = bytes.size;
	profile = pprof__profile__unpack(NULL, bytes.size, bytes.data);
	assert_non_null(profile);
	bytes_fini(&bytes);
	return profile;
}

static void assert_text(const Pprof__Profile *profile, int64_t place, const char *text)
{
	assert_true(place >= 0 && (size_t)place < profile->n_string_table);
	assert_int_equal(profile->string_table[place].len, strlen(text));
	if (*text)
		assert_memory_equal(profile->string_table[place].data, text, strlen(text));
}

static const Pprof__Function *function_of(const Pprof__Profile *profile, uint64_t location)
{
	return profile->function[profile->location[location - 1]->line[0]->function_id - 1];
}

static bool is_named(const Pprof__Profile *profile, uint64_t location, const char *name)
{
	ProtobufCBinaryData text = profile->string_table[function_of(profile, location)->name];

	return text.len == strlen(name) && memcmp(text.data, name, text.len) == 0;
}

/* The sample whose leaf has that name. */
static const Pprof__Sample *sample_of(const Pprof__Profile *profile, const char *leaf)
{
	for (size_t i = 0; i < profile->n_sample; i++) {
		if (is_named(profile, profile->sample[i]->location_id[0], leaf))
			return profile->sample[i];
	}
	fail_msg("no sample ends in %s", leaf);
	return NULL;
}

struct totals {
	int64_t objects, bytes;
};

static struct totals totals_of(const Pprof__Profile *profile)
{
	struct totals totals = { 0 };

	for (size_t i = 0; i < profile->n_sample; i++) {
		assert_int_equal(profile->sample[i]->n_value, 2);
		totals.objects += profile->sample[i]->value[0];
		totals.bytes += profile->sample[i]->value[1];
	}
	return totals;
}

static void the_head_is_as_the_format_wants_it(void **state)
{
	struct chain_tree tree = canned_tree(false);
	size_t size;
	Pprof__Profile *profile = encode(&tree, ALL_SAMPLES, &size);

	(void)state;
	assert_text(profile, 0, "");
	assert_int_equal(profile->n_sample_type, 2);
	assert_text(profile, profile->sample_type[0]->type, "inuse_objects");
	assert_text(profile, profile->sample_type[0]->unit, "count");
	assert_text(profile, profile->sample_type[1]->type, "inuse_space");
	assert_text(profile, profile->sample_type[1]->unit, "bytes");
	assert_text(profile, profile->default_sample_type, "inuse_space");
	assert_text(profile, profile->period_type->type, "space");
	assert_text(profile, profile->period_type->unit, "bytes");
	assert_int_equal(profile->period, 1);
	assert_int_equal(profile->time_nanos, 5);
	assert_int_equal(profile->n_mapping, 1);
	assert_int_equal(profile->mapping[0]->id, 1);
	assert_text(profile, profile->mapping[0]->filename, "/usr/bin/\xef\xbf\xbd");
	assert_text(profile, profile->mapping[0]->build_id, "abcdef");
	assert_true(profile->mapping[0]->has_functions && profile->mapping[0]->has_line_numbers);
	assert_int_equal(profile->n_comment, 2);
	assert_text(profile, profile->comment[1], "second");
	for (size_t i = 1; i < profile->n_string_table; i++)
		assert_true(profile->string_table[i].len > 0);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void chains_have_their_leaf_first(void **state)
{
	struct chain_tree tree = canned_tree(false);
	size_t size;
	Pprof__Profile *profile = encode(&tree, ALL_SAMPLES, &size);
	const Pprof__Sample *sample = sample_of(profile, "[10+]. (main.Item)");
	const Pprof__Location *root;

	(void)state;
	assert_int_equal(sample->n_location_id, 4);
	assert_int_equal(sample->value[0], 1000);
	assert_int_equal(sample->value[1], 64000);
	assert_true(is_named(profile, sample->location_id[1], "cart. ([]main.Item)"));
	assert_int_equal(function_of(profile, sample->location_id[1])->system_name, 0);
	assert_true(is_named(profile, sample->location_id[3], "main.sessions"));
	root = profile->location[sample->location_id[3] - 1];
	assert_int_equal(root->line[0]->line, 12);
	assert_text(profile, function_of(profile, root->id)->filename, "/src/main.go");
	assert_int_equal(sample->n_label, 0);
	assert_int_equal(totals_of(profile).bytes, canned_scan()->heap->live_bytes);
	assert_int_equal(totals_of(profile).objects, canned_scan()->heap->live_objects);
	(void)sample_of(profile, "main.\\x1b[31m\xef\xbf\xbd\"\\x0a");
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void what_is_used_of_a_block_is_a_label(void **state)
{
	struct chain_tree tree = canned_tree(false);
	size_t size;
	Pprof__Profile *profile = encode(&tree, ALL_SAMPLES, &size);
	const Pprof__Sample *sample = sample_of(profile, "cart. ([]main.Item)");

	(void)state;
	assert_int_equal(sample->n_label, 1);
	assert_text(profile, sample->label[0]->key, "used_bytes");
	assert_text(profile, sample->label[0]->num_unit, "bytes");
	assert_int_equal(sample->label[0]->num, 1 << 26);
	assert_int_equal(sample->label[0]->str, 0);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void labels_stand_on_every_sample_of_their_root(void **state)
{
	struct chain_tree tree = canned_tree(true);
	size_t size;
	Pprof__Profile *profile = encode(&tree, ALL_SAMPLES, &size);
	const Pprof__Sample *sample = sample_of(profile, "$sub_objects$");

	(void)state;
	assert_int_equal(sample->n_label, 2);
	assert_text(profile, sample->label[0]->key, "job_id");
	assert_text(profile, sample->label[0]->str, "42");
	assert_text(profile, sample->label[1]->key, "tenant");
	assert_text(profile, sample->label[1]->str, "acme");
	assert_int_equal(profile->n_comment, 3);
	assert_text(profile, profile->comment[2], "label job_id is job.id");
	/* the other goroutine's chain begins with the same frame */
	assert_int_equal(sample_of(profile, "main.fetch.buf")->location_id[0],
			 sample->location_id[1]);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

/* What a terminal would obey, and what is no UTF-8: in names, files and values. */
static void nothing_is_written_that_a_terminal_obeys(void **state)
{
	Goheapd__LabelPair pair = GOHEAPD__LABEL_PAIR__INIT, *pointer = &pair;
	struct chain_labels labels = { &pointer, 1 };
	const struct chain_frame frame = { .name = bytes_of("a\x1b]0;x\x07\x7f\xc2\x9b\xe2\x80\xae"
							    "b"),
					   .file = bytes_of("/src/\r\xff.go") };
	struct chain_tree tree;
	Pprof__Profile *profile;
	uint32_t label_id, node;
	size_t size;

	(void)state;
	pair.key = bytes_of("k\n");
	pair.value = bytes_of("v\x1b[31m\xc3");
	chain_tree_init(&tree);
	assert_success(chain_tree_labels(&tree, &labels, &label_id));
	assert_success(chain_tree_node(&tree, ID_NONE, &frame, label_id, &node));
	tree.nodes[node].objects = 1;
	tree.nodes[node].bytes = 8;
	profile = encode(&tree, ALL_SAMPLES, &size);
	assert_int_equal(profile->n_function, 1);
	assert_text(profile, profile->function[0]->name, "a\\x1b]0;x\\x07\\x7f\\x9b\\u202eb");
	assert_text(profile, profile->function[0]->filename, "/src/\\x0d\xef\xbf\xbd.go");
	assert_text(profile, profile->sample[0]->label[0]->key, "k_");
	assert_text(profile, profile->sample[0]->label[0]->str, "v\\x1b[31m\xef\xbf\xbd");
	for (size_t i = 0; i < profile->n_string_table; i++)
		for (size_t j = 0; j < profile->string_table[i].len; j++)
			assert_true(profile->string_table[i].data[j] >= 0x20);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void keys_become_legal_and_stay_apart(void **state)
{
	static const char *const originals[] = { "a.b", "a_b",      "a-b",    "a_b_2", "9lives",
						 "",    "\xc3\xa4", "tenant", "a b" };
	Goheapd__LabelPair pairs[9], *pointers[9];
	struct chain_labels labels = { pointers, 9 };
	struct pprof_keys keys;
	struct chain_tree tree;
	struct text comments;
	uint32_t id;

	(void)state;
	for (int i = 0; i < 9; i++) {
		goheapd__label_pair__init(&pairs[i]);
		pairs[i].key = bytes_of(originals[i]);
		pointers[i] = &pairs[i];
	}
	chain_tree_init(&tree);
	assert_success(chain_tree_labels(&tree, &labels, &id));
	assert_success(pprof_keys_init(&keys, &tree));
	assert_string_equal(pprof_key_name(&keys, bytes_of("a_b")), "a_b");
	assert_string_equal(pprof_key_name(&keys, bytes_of("a_b_2")), "a_b_2");
	assert_string_equal(pprof_key_name(&keys, bytes_of("tenant")), "tenant");
	assert_string_equal(pprof_key_name(&keys, bytes_of("9lives")), "_9lives");
	assert_string_equal(pprof_key_name(&keys, bytes_of("")), "_");
	assert_string_equal(pprof_key_name(&keys, bytes_of("\xc3\xa4")), "__");
	for (int i = 0; i < 9; i++) {
		for (int j = 0; j < i; j++)
			assert_string_not_equal(pprof_key_name(&keys, bytes_of(originals[i])),
						pprof_key_name(&keys, bytes_of(originals[j])));
	}
	text_init(&comments);
	pprof_keys_comment(&keys, &comments);
	assert_success(text_finish(&comments));
	text_append(&comments, "", 1);
	assert_non_null(strstr((char *)comments.bytes.data, "label _9lives is 9lives\n"));
	assert_non_null(strstr((char *)comments.bytes.data, "label _ is \"\"\n"));
	text_fini(&comments);
	pprof_keys_fini(&keys);
	chain_tree_fini(&tree);
}

static void deep_chains_count_for_the_last_frame_allowed(void **state)
{
	Goheapd__ProfileQuery query = query_of(false);
	struct chain_tree tree;
	Pprof__Profile *profile;
	size_t size;

	(void)state;
	chain_tree_init(&tree);
	assert_success(
	    chain_tree_add(&tree, canned_profile(canned_scan()->heap, &query, 0), CHAIN_PLUS, 2));
	profile = encode(&tree, ALL_SAMPLES, &size);
	for (size_t i = 0; i < profile->n_sample; i++)
		assert_true(profile->sample[i]->n_location_id <= 2);
	assert_int_equal(sample_of(profile, "$mapval. (*main.Session)")->value[0], 2001100);
	assert_int_equal(totals_of(profile).bytes, canned_scan()->heap->live_bytes);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

/* What a root holds is the same before and after its small chains are folded. */
static int64_t bytes_of_root(const struct chain_tree *tree, const char *root)
{
	ProtobufCBinaryData name = bytes_of(root);
	int64_t bytes = 0;

	for (size_t i = 0; i < tree->node_count; i++) {
		const struct chain_node *top = &tree->nodes[i];

		while (top->parent != ID_NONE)
			top = &tree->nodes[top->parent];
		if (tree->frames[top->frame].name.len == name.len &&
		    memcmp(tree->frames[top->frame].name.data, name.data, name.len) == 0)
			bytes += tree->nodes[i].bytes;
	}
	return bytes;
}

static void few_samples_keep_every_sum(void **state)
{
	struct chain_tree tree = canned_tree(true);

	(void)state;
	for (size_t most = 1; most <= 10; most++) {
		const struct pprof_limits limits = { most, PPROF_MAX_BYTES };
		struct chain_tree folded;
		Pprof__Profile *profile;
		size_t size;

		assert_success(pprof_fit(&tree, &limits, &folded));
		if (most >= 4)
			assert_int_equal(bytes_of_root(&folded, "main.sessions"),
					 bytes_of_root(&tree, "main.sessions"));
		profile = encode(&tree, most, &size);
		assert_true(profile->n_sample <= most && profile->n_sample > 0);
		assert_int_equal(totals_of(profile).bytes, canned_scan()->heap->live_bytes);
		assert_int_equal(totals_of(profile).objects, canned_scan()->heap->live_objects);
		if (most < 9)
			(void)sample_of(profile, "other");
		pprof__profile__free_unpacked(profile, NULL);
		chain_tree_fini(&folded);
	}
	chain_tree_fini(&tree);
}

static void a_huge_profile_stays_within_its_limits(void **state)
{
	static const struct {
		unsigned roots, depth;
		size_t samples;
	} cases[] = { { 40000, 3, ALL_SAMPLES }, { 40000, 1, 1000000 }, { 20, 1000, 1000000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		Goheapd__ReferenceProfile *huge =
		    canned_huge_profile(cases[i].roots, cases[i].depth);
		struct chain_tree tree = tree_of(huge);
		size_t size;
		Pprof__Profile *profile = encode(&tree, cases[i].samples, &size);

		assert_true(size <= PPROF_MAX_BYTES);
		assert_true(profile->n_sample <= cases[i].samples);
		assert_true(profile->n_sample > 1000 || size > PPROF_MAX_BYTES / 2);
		assert_int_equal(totals_of(profile).bytes, huge->bytes);
		assert_int_equal(totals_of(profile).objects, huge->objects);
		pprof__profile__free_unpacked(profile, NULL);
		chain_tree_fini(&tree);
		goheapd__reference_profile__free_unpacked(huge, NULL);
	}
}

/* A label of a megabyte on each chain: even texts are cut and folded. */
static void huge_labels_stay_within_the_limits(void **state)
{
	enum { SETS = 200, SIZE = 1 << 20 };
	static Goheapd__LabelPair pairs[SETS], *pointers[SETS];
	struct chain_frame frame = { .name = bytes_of("root") };
	char *value = malloc(SIZE);
	struct chain_tree tree;
	Pprof__Profile *profile;
	size_t size;

	(void)state;
	assert_non_null(value);
	memset(value, '\xe4', SIZE);
	chain_tree_init(&tree);
	for (uint32_t i = 0; i < SETS; i++) {
		struct chain_labels labels = { &pointers[i], 1 };
		uint32_t set, node;

		goheapd__label_pair__init(&pairs[i]);
		pairs[i].key = bytes_of("k");
		pairs[i].value = (ProtobufCBinaryData){ SIZE - i, (uint8_t *)value };
		pointers[i] = &pairs[i];
		assert_success(chain_tree_labels(&tree, &labels, &set));
		assert_success(chain_tree_node(&tree, ID_NONE, &frame, set, &node));
		tree.nodes[node].bytes = tree.nodes[node].objects = i + 1;
	}
	profile = encode(&tree, ALL_SAMPLES, &size);
	assert_true(size <= PPROF_MAX_BYTES);
	assert_int_equal(totals_of(profile).bytes, SETS * (SETS + 1) / 2);
	for (size_t i = 0; i < profile->n_string_table; i++)
		assert_true(profile->string_table[i].len <= PPROF_TEXT_MAX_BYTES);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
	free(value);
}

static void a_change_has_signs(void **state)
{
	Goheapd__ProfileQuery query = query_of(false);
	struct chain_tree tree = tree_of(canned_profile(canned_scan()->heap, &query, 5));
	Pprof__Profile *profile;
	size_t size;

	(void)state;
	assert_success(chain_tree_add(&tree, canned_profile(canned_scan()->heap, &query, 2),
				      CHAIN_MINUS, DEEP));
	profile = encode(&tree, ALL_SAMPLES, &size);
	assert_int_equal(profile->n_sample, 2);
	assert_int_equal(sample_of(profile, "$mapval. (*main.Session)")->value[0], 3);
	assert_int_equal(sample_of(profile, "$mapval. (*main.Session)")->value[1], 288);
	assert_int_equal(sample_of(profile, "main.table")->value[1], -288);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void nothing_is_a_profile_too(void **state)
{
	struct chain_tree tree;
	Pprof__Profile *profile;
	size_t size;

	(void)state;
	chain_tree_init(&tree);
	profile = encode(&tree, ALL_SAMPLES, &size);
	assert_int_equal(profile->n_sample, 0);
	pprof__profile__free_unpacked(profile, NULL);
	chain_tree_fini(&tree);
}

static void what_is_served_can_be_read_back(void **state)
{
	Goheapd__ProfileQuery query = query_of(true);
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	Goheapd__ScanResult *result = canned_scan();
	struct scan_view view = { .result = result, .id = "0", .analysis = &analysis };
	struct text first, second;
	struct pprof_decoded decoded;
	int64_t bytes = 0;

	(void)state;
	analysis.profile = &query;
	result->profile = canned_profile(result->heap, &query, 0);
	text_init(&first);
	text_init(&second);
	render_pprof_profile(&first, &view);
	render_pprof_profile(&second, &view);
	assert_success(text_finish(&first));
	assert_int_equal(first.bytes.size, second.bytes.size);
	assert_memory_equal(first.bytes.data, second.bytes.data, first.bytes.size);
	assert_success(pprof_decode(first.bytes.data, first.bytes.size, &decoded));
	for (size_t i = 0; i < decoded.tree.node_count; i++)
		bytes += decoded.tree.nodes[i].bytes;
	assert_int_equal(bytes, result->heap->live_bytes);
	assert_memory_equal(pprof_comment(&decoded, 0).data, "goheapd ", 8);
	assert_memory_equal(pprof_comment(&decoded, 1).data, "target checkout pid 4242 ", 25);
	pprof_decoded_fini(&decoded);
	/* any part of it is refused */
	for (size_t size = 0; size < first.bytes.size; size++) {
		struct tail_copy copy = tail_copy(first.bytes.data, size);

		assert_error(pprof_decode(copy.bytes, size, &decoded), ERROR_FORMAT);
		pprof_decoded_fini(&decoded);
		tail_copy_fini(&copy);
	}
	text_fini(&first);
	text_fini(&second);
}

static void gzip_of_too_much_is_refused(void **state)
{
	static const char zeros[100000];
	struct bytes packed, plain;

	(void)state;
	bytes_init(&packed, sizeof(zeros));
	assert_success(gzip_pack(zeros, sizeof(zeros), &packed));
	assert_true(packed.size < 1000);
	bytes_init(&plain, sizeof(zeros) / 2);
	assert_error(gzip_unpack(packed.data, packed.size, &plain), ERROR_LIMIT);
	bytes_fini(&plain);
	bytes_init(&plain, sizeof(zeros) * 2);
	assert_success(gzip_unpack(packed.data, packed.size, &plain));
	assert_int_equal(plain.size, sizeof(zeros));
	bytes_fini(&plain);
	bytes_fini(&packed);
}

/* ---- what an agent may not say ---- */

/* The same scan is what fuzzing begins with; written anew with UPDATE_EXPECTED=1. */
static void write_seed(const Goheapd__ScanResult *result)
{
	const char *folder = getenv("srcdir");
	size_t size = goheapd__scan_result__get_packed_size(result);
	uint8_t *packed = malloc(size);
	char path[512];
	FILE *file;

	assert_non_null(packed);
	goheapd__scan_result__pack(result, packed);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/render/chains", folder ? folder : ".");
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(packed, 1, size, file), size);
	fclose(file);
	free(packed);
}

static void chains_that_do_not_fit_together_are_refused(void **state)
{
	Goheapd__ProfileQuery query = query_of(true);
	Goheapd__ScanResult *result = canned_scan();
	Goheapd__ReferenceProfile *profile;
	Goheapd__ReferenceNode *node;

	(void)state;
	result->profile = profile = canned_profile(result->heap, &query, 0);
	assert_success(scan_check(result));
	result->histogram = canned_types(result->heap, 0);
	if (getenv("UPDATE_EXPECTED"))
		write_seed(result);
	node = profile->nodes[3];
	node->parent = 3;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->parent = UINT32_MAX;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->parent = 2;
	node->frame = (uint32_t)profile->n_frames;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->frame = 0;
	assert_success(scan_check(result));
	node->has_label_set = true;
	node->label_set = 2;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->has_label_set = false;
	node->has_used_bytes = true;
	node->used_bytes = node->bytes + 1;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->has_used_bytes = false;
	node->bytes++;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->bytes = UINT64_MAX - 5;
	assert_error(scan_check(result), ERROR_FORMAT);
	node->bytes = INT64_MAX;
	assert_error(scan_check(result), ERROR_FORMAT);
}

static void chains_must_hold_all_that_is_live(void **state)
{
	Goheapd__ProfileQuery query = query_of(false);
	Goheapd__Analysis analysis = GOHEAPD__ANALYSIS__INIT;
	Goheapd__ScanResult *result = canned_scan();

	(void)state;
	analysis.profile = &query;
	assert_error(scan_check_analysis(result, &analysis), ERROR_SYSTEM);
	result->profile = canned_profile(result->heap, &query, 0);
	assert_success(scan_check_analysis(result, &analysis));
	assert_success(scan_check_analysis(result, NULL));
	result->heap->live_bytes++;
	assert_error(scan_check_analysis(result, &analysis), ERROR_SYSTEM);
	query.has_retained = query.retained = true;
	assert_error(scan_check_analysis(result, &analysis), ERROR_SYSTEM);
	query.retained = false;
	result->heap->live_bytes--;
	result->heap->has_live_objects = false;
	assert_error(scan_check_analysis(result, &analysis), ERROR_SYSTEM);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_is_as_the_format_wants_it),
		cmocka_unit_test(chains_have_their_leaf_first),
		cmocka_unit_test(what_is_used_of_a_block_is_a_label),
		cmocka_unit_test(labels_stand_on_every_sample_of_their_root),
		cmocka_unit_test(nothing_is_written_that_a_terminal_obeys),
		cmocka_unit_test(keys_become_legal_and_stay_apart),
		cmocka_unit_test(deep_chains_count_for_the_last_frame_allowed),
		cmocka_unit_test(few_samples_keep_every_sum),
		cmocka_unit_test(a_huge_profile_stays_within_its_limits),
		cmocka_unit_test(huge_labels_stay_within_the_limits),
		cmocka_unit_test(a_change_has_signs),
		cmocka_unit_test(nothing_is_a_profile_too),
		cmocka_unit_test(what_is_served_can_be_read_back),
		cmocka_unit_test(gzip_of_too_much_is_refused),
		cmocka_unit_test(chains_that_do_not_fit_together_are_refused),
		cmocka_unit_test(chains_must_hold_all_that_is_live),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("pprof", tests, NULL, NULL);
}
