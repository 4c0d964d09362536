#include "agent/goruntime/layout.h"

#include <stdlib.h>

#include "proto/base/bytes.h"
#include "proto/base/cursor.h"
#include "tests/support/assertions.h"

#define NEWEST "go1.27.4"

enum { STRUCT_SIZE = 1 << 20, LAYOUT_SIZE_MAX = 1 << 20 };

/* A source that has everything but what it is told to lack. */
struct source {
	struct layout_source base;
	const char *lacks; /* a name, or a struct's "type.path" */
	const char *lacks_also;
	const char *wide;   /* a field of 16 bytes */
	const char *breaks; /* a name that cannot be read */
	uint32_t field_offset;
};

static bool is_missing(const struct source *source, const char *name)
{
	return (source->lacks && !strcmp(source->lacks, name)) ||
	       (source->lacks_also && !strcmp(source->lacks_also, name));
}

static bool is_broken(const struct source *source, const char *name, struct error **ret_err)
{
	if (!source->breaks || strcmp(source->breaks, name) != 0)
		return false;
	*ret_err = error_new(ERROR_FORMAT, "broken");
	return true;
}

static bool find_struct(struct layout_source *base, const char *type, uint32_t *ret_size,
			struct error **ret_err)
{
	struct source *source = (struct source *)base;

	if (is_broken(source, type, ret_err) || is_missing(source, type))
		return false;
	*ret_size = STRUCT_SIZE;
	return true;
}

static bool find_field(struct layout_source *base, const char *type, const char *path,
		       uint32_t *ret_offset, uint32_t *ret_size, struct error **ret_err)
{
	struct source *source = (struct source *)base;
	char name[256];

	(void)ret_err;
	snprintf(name, sizeof(name), "%s.%s", type, path);
	if (is_missing(source, name))
		return false;
	*ret_offset = source->field_offset + (uint32_t)strlen(name);
	*ret_size = source->wide && !strcmp(source->wide, name) ? 16 : 8;
	return true;
}

static bool find_constant(struct layout_source *base, const char *name, int64_t *ret,
			  struct error **ret_err)
{
	(void)ret_err;
	if (is_missing((struct source *)base, name))
		return false;
	*ret = -(int64_t)strlen(name);
	return true;
}

static bool find_global(struct layout_source *base, const char *name, taddr *ret_addr,
			uint64_t *ret_size, struct error **ret_err)
{
	(void)ret_err;
	if (is_missing((struct source *)base, name))
		return false;
	*ret_addr = 0x500000 + strlen(name);
	*ret_size = 16;
	return true;
}

static struct source make_source(void)
{
	return (struct source){ .base = { find_struct, find_field, find_constant, find_global } };
}

static struct layout *read_layout(void)
{
	struct source source = make_source();
	struct layout *layout = NULL;

	assert_success(layout_read(&source.base, NEWEST, &layout));
	return layout;
}

static void entries_are_looked_up_by_name(void **state)
{
	struct layout *layout = read_layout();

	(void)state;
	assert_int_equal(layout->mspan.size, STRUCT_SIZE);
	assert_int_equal(layout->mspan_start_addr.offset, strlen("runtime.mspan.startAddr"));
	assert_int_equal(layout->mspan_start_addr.size, 8);
	assert_true(layout->const_heap_arena_bytes.known);
	assert_int_equal(layout->const_heap_arena_bytes.value,
			 -(int)strlen("runtime.heapArenaBytes"));
	assert_int_equal(layout->global_mheap.addr, 0x500000 + strlen("runtime.mheap_"));
	assert_true(layout_has(layout, mspan_large_type));
	layout_free(layout);
}

static void the_first_alternative_that_exists_counts(void **state)
{
	struct source source = make_source();
	struct layout *layout = NULL;

	(void)state;
	source.lacks = "runtime.mspan.state.s.value";
	assert_success(layout_read(&source.base, NEWEST, &layout));
	assert_int_equal(layout->mspan_state.offset, strlen("runtime.mspan.state.s"));
	layout_free(layout);
	source.lacks = "internal/abi.Type";
	assert_success(layout_read(&source.base, NEWEST, &layout));
	assert_int_equal(layout->type_size.offset, strlen("runtime._type.Size_"));
	layout_free(layout);
}

/* What comes of a runtime of that version which lacks one entry. */
static void assert_refused(const char *version, const char *lacks, const char *message)
{
	struct source source = make_source();
	struct layout *layout = NULL;
	struct error *err;

	source.lacks = lacks;
	err = layout_read(&source.base, version, &layout);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_UNSUPPORTED);
	assert_string_equal(error_message(err), message);
	assert_null(layout);
	error_free(err);
}

static void assert_accepted(const char *version, const char *lacks)
{
	struct source source = make_source();
	struct layout *layout = NULL;

	source.lacks = lacks;
	assert_success(layout_read(&source.base, version, &layout));
	assert_string_equal(layout->version, version);
	layout_free(layout);
}

static void what_a_version_does_not_have_may_be_missing(void **state)
{
	static const char large[] = "runtime.mspan.largeType", labels[] = "runtime/pprof.labelMap";

	(void)state;
	assert_accepted("go1.21.13", large);
	assert_refused("go1.22.12", large,
		       "this Go runtime (go1.22.12) lacks runtime.mspan.largeType");
	assert_refused("devel go1.29-0123abc Tue Mar 3", large,
		       "this Go runtime (devel go1.29-0123abc Tue Mar 3) lacks "
		       "runtime.mspan.largeType");
	assert_refused("go1.15.15", "runtime.gcpercent",
		       "this Go runtime (go1.15.15) lacks runtime.gcpercent");
	assert_accepted("go1.19.8", "runtime.gcpercent");
	assert_refused("go1.24.4", "runtime.heapStatsDelta.inPtrScalarBits",
		       "this Go runtime (go1.24.4) lacks runtime.heapStatsDelta.inPtrScalarBits");
	assert_accepted("go1.25.12", "runtime.heapStatsDelta.inPtrScalarBits");
	/* of the program, not of its version */
	assert_accepted(NEWEST, labels);
}

static void what_a_runtime_has_depends_on_its_experiments(void **state)
{
	static const char marks[] = "runtime.spanInlineMarkBits.marks",
			  bitmap[] = "runtime.heapArena.bitmap", ring[] = "runtime.spanSPMC.ring";
	struct source source = make_source();
	struct layout *layout = NULL;

	(void)state;
	assert_refused("go1.26.11", marks,
		       "this Go runtime (go1.26.11) lacks runtime.spanInlineMarkBits.marks");
	assert_accepted("go1.26.11-X:nogreenteagc", marks);
	assert_accepted("go1.26.11-X:arenas,nogreenteagc", ring);
	assert_accepted("go1.25.12", marks);
	assert_refused("go1.25.12 X:greenteagc,arenas", marks,
		       "this Go runtime (go1.25.12 X:greenteagc,arenas) lacks "
		       "runtime.spanInlineMarkBits.marks");
	assert_refused("go1.26.11", ring,
		       "this Go runtime (go1.26.11) lacks runtime.spanSPMC.ring");
	source.lacks = bitmap;
	source.lacks_also = "runtime.heapArena.heapArenaPtrScalar.bitmap";
	assert_success(layout_read(&source.base, "go1.22.12", &layout));
	layout_free(layout);
	layout = NULL;
	assert_error(layout_read(&source.base, "go1.22.12 X:noallocheaders", &layout),
		     ERROR_UNSUPPORTED);
	assert_null(layout);
}

/* A program without build info must have all that some version has. */
static void without_a_version_any_will_do(void **state)
{
	(void)state;
	assert_accepted("", "runtime.mspan.largeType"); /* as to go1.21 */
	assert_accepted("", "runtime.gcpercent");
	assert_refused("", "runtime.mheap_", "this Go runtime lacks runtime.mheap_");
}

/* sudog.elem was a pointer and is now a pair of which the second word counts. */
static void the_struct_around_a_missing_field_is_not_taken_for_it(void **state)
{
	struct source source = make_source();
	struct layout *layout = NULL;
	struct error *err;

	(void)state;
	source.lacks = "runtime.sudog.elem.vu";
	assert_success(layout_read(&source.base, NEWEST, &layout));
	layout_free(layout);
	layout = NULL;
	source.wide = "runtime.sudog.elem";
	err = layout_read(&source.base, NEWEST, &layout);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_UNSUPPORTED);
	assert_non_null(strstr(error_message(err), "lacks runtime.sudog.elem.vu"));
	assert_null(layout);
	error_free(err);
}

static void all_needed_entries_that_are_missing_are_named(void **state)
{
	struct source source = make_source();
	struct layout *layout = NULL;
	struct error *err;

	(void)state;
	source.lacks = "runtime.mheap_";
	source.lacks_also = "runtime.g.goid";
	err = layout_read(&source.base, NEWEST, &layout);
	assert_non_null(err);
	assert_int_equal(error_code(err), ERROR_UNSUPPORTED);
	assert_non_null(strstr(error_message(err), "runtime.mheap_"));
	assert_non_null(strstr(error_message(err), "runtime.g.goid"));
	assert_null(strstr(error_message(err), "runtime.allgs"));
	assert_null(layout);
	error_free(err);
}

static void what_cannot_be_read_ends_it(void **state)
{
	struct source source = make_source();
	struct layout *layout = NULL;

	(void)state;
	source.breaks = "runtime.mspan";
	assert_error(layout_read(&source.base, NEWEST, &layout), ERROR_FORMAT);
	assert_null(layout);
}

static void fields_outside_of_their_struct_are_refused(void **state)
{
	struct source source = make_source();
	struct layout *layout = NULL;

	(void)state;
	source.field_offset = STRUCT_SIZE - 8;
	assert_error(layout_read(&source.base, NEWEST, &layout), ERROR_FORMAT);
	source.field_offset = UINT32_MAX - 64;
	assert_error(layout_read(&source.base, NEWEST, &layout), ERROR_FORMAT);
	assert_null(layout);
}

static void store(const struct layout *layout, struct bytes *out)
{
	bytes_init(out, LAYOUT_SIZE_MAX);
	assert_success(layout_store(layout, out));
}

static struct error *load(const uint8_t *bytes, size_t size, struct layout **ret)
{
	struct cursor c;

	cursor_init(&c, "layout", bytes, size);
	return layout_load(&c, ret);
}

static void what_is_stored_is_loaded(void **state)
{
	struct layout *layout = read_layout();
	struct layout *loaded = NULL;
	struct bytes out;

	(void)state;
	layout->string_map_count = (struct layout_field){ 0 };
	store(layout, &out);
	assert_success(load(out.data, out.size, &loaded));
	assert_memory_equal(loaded, layout, sizeof(*layout));
	layout_free(loaded);
	layout_free(layout);
	bytes_fini(&out);
}

static void every_truncation_is_refused(void **state)
{
	struct layout *layout = read_layout();
	struct bytes out;

	(void)state;
	store(layout, &out);
	for (size_t size = 0; size < out.size; size++) {
		struct layout *loaded = NULL;

		assert_error(load(out.data, size, &loaded), ERROR_FORMAT);
		assert_null(loaded);
	}
	layout_free(layout);
	bytes_fini(&out);
}

static void another_list_of_entries_is_refused(void **state)
{
	static const char id[] = "mspan.start_addr", path[] = "startAddr";
	struct layout *layout = read_layout();
	struct layout *loaded = NULL;
	struct bytes out;
	uint8_t *place;

	(void)state;
	store(layout, &out);
	place = out.data + sizeof(NEWEST); /* the number of entries */
	store_u32le(place, load_u32le(place) + 1);
	assert_error(load(out.data, out.size, &loaded), ERROR_FORMAT);
	store_u32le(place, load_u32le(place) - 1);
	place = memmem(out.data, out.size, id, strlen(id));
	assert_non_null(place);
	place[0] = 'n'; /* an entry by another id */
	assert_error(load(out.data, out.size, &loaded), ERROR_FORMAT);
	place[0] = 'm';
	place = memmem(out.data, out.size, path, strlen(path));
	assert_non_null(place);
	place[0] = 'S'; /* the same entry, found by another name */
	assert_error(load(out.data, out.size, &loaded), ERROR_FORMAT);
	place[0] = 's';
	assert_success(load(out.data, out.size, &loaded));
	layout_free(loaded);
	layout_free(layout);
	bytes_fini(&out);
}

static void stored_layouts_are_checked_like_read_ones(void **state)
{
	struct layout *layout = read_layout();
	struct layout *loaded = NULL;
	struct layout_field kept = layout->mspan_elem_size;
	struct bytes out;

	(void)state;
	layout->mspan_elem_size.offset = STRUCT_SIZE; /* outside of its struct */
	store(layout, &out);
	assert_error(load(out.data, out.size, &loaded), ERROR_FORMAT);
	bytes_fini(&out);
	layout->mspan_elem_size = (struct layout_field){ 0 }; /* needed */
	store(layout, &out);
	assert_error(load(out.data, out.size, &loaded), ERROR_FORMAT);
	bytes_fini(&out);
	layout->mspan_elem_size = kept;
	layout_free(layout);
	assert_null(loaded);
}

static void relocation_moves_globals_that_are_there(void **state)
{
	struct layout *layout = read_layout();

	(void)state;
	layout->global_allgs = (struct layout_global){ 0 };
	layout_relocate(layout, 0x1000);
	assert_int_equal(layout->global_mheap.addr, 0x501000 + strlen("runtime.mheap_"));
	assert_int_equal(layout->global_allgs.addr, 0);
	layout_free(layout);
}

static struct error *read_sample(struct memory *memory, taddr addr, void *buf, size_t size)
{
	static uint8_t page[4096];

	(void)memory;
	assert_int_equal(addr, 0x1000);
	assert_int_equal(size, sizeof(page));
	for (size_t i = 0; i < sizeof(page); i++)
		page[i] = (uint8_t)i;
	memcpy(buf, page, size);
	return NULL;
}

static void fields_are_read_in_their_width(void **state)
{
	static const struct memory_ops ops = { .read = read_sample };
	struct memory memory;
	uint64_t value = 0;

	(void)state;
	memory_init(&memory, &ops);
	assert_success(
	    layout_read_field(&memory, 0x1000, (struct layout_field){ 0x10, 1 }, &value));
	assert_int_equal(value, 0x10);
	assert_success(
	    layout_read_field(&memory, 0x1000, (struct layout_field){ 0x10, 4 }, &value));
	assert_int_equal(value, 0x13121110);
	assert_error(layout_read_field(&memory, 0x1000, (struct layout_field){ 0x10, 24 }, &value),
		     ERROR_FORMAT);
	memory_fini(&memory);
}

/* The labels of a program that only a plugin gives labels. */
static void what_only_another_source_has_is_added_and_the_rest_stays(void **state)
{
	struct source source = make_source(), other = make_source();
	struct layout *layout = NULL;

	(void)state;
	source.lacks = "runtime/pprof.labelMap";
	source.lacks_also = "internal/runtime/pprof/label.Set";
	other.field_offset = 1000;
	assert_success(layout_read(&source.base, NEWEST, &layout));
	assert_false(layout_has(layout, label_map));
	assert_false(layout_has(layout, label_map_list));
	layout->const_heap_arena_bytes.known = false;
	layout->global_mheap.size = 0;
	assert_success(layout_complete(layout, &other.base));
	assert_true(layout_has(layout, label_map));
	assert_int_equal(layout->label_map_list.offset,
			 1000 + strlen("runtime/pprof.labelMap.LabelSet.list"));
	/* of a struct that is known the fields are, too; variables and constants are a program's
	 * own */
	assert_int_equal(layout->mspan_start_addr.offset, strlen("runtime.mspan.startAddr"));
	assert_false(layout->const_heap_arena_bytes.known);
	assert_false(layout_has(layout, global_mheap));
	layout_free(layout);
}

static void an_error_of_the_other_source_changes_nothing(void **state)
{
	struct source source = make_source(), other = make_source();
	struct layout *layout = NULL;

	(void)state;
	source.lacks = "runtime/pprof.label";
	source.lacks_also = "internal/runtime/pprof/label.Label";
	other.breaks = "runtime/pprof.label";
	assert_success(layout_read(&source.base, NEWEST, &layout));
	assert_error(layout_complete(layout, &other.base), ERROR_FORMAT);
	assert_false(layout_has(layout, label));
	layout_free(layout);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_looked_up_by_name),
		cmocka_unit_test(the_first_alternative_that_exists_counts),
		cmocka_unit_test(what_a_version_does_not_have_may_be_missing),
		cmocka_unit_test(what_a_runtime_has_depends_on_its_experiments),
		cmocka_unit_test(without_a_version_any_will_do),
		cmocka_unit_test(the_struct_around_a_missing_field_is_not_taken_for_it),
		cmocka_unit_test(all_needed_entries_that_are_missing_are_named),
		cmocka_unit_test(what_cannot_be_read_ends_it),
		cmocka_unit_test(fields_outside_of_their_struct_are_refused),
		cmocka_unit_test(what_is_stored_is_loaded),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(another_list_of_entries_is_refused),
		cmocka_unit_test(stored_layouts_are_checked_like_read_ones),
		cmocka_unit_test(relocation_moves_globals_that_are_there),
		cmocka_unit_test(fields_are_read_in_their_width),
		cmocka_unit_test(what_only_another_source_has_is_added_and_the_rest_stays),
		cmocka_unit_test(an_error_of_the_other_source_changes_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
