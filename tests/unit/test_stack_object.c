#include "agent/goruntime/stack_object.h"

#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/stack_map.h"
#include "tests/support/assertions.h"
#include "tests/support/fake_memory.h"

enum { RECORDS = 0x10000, RODATA = 0x11000, TYPE = 0x12000, MAPS = 0x13000 };

struct fixture {
	struct fake_memory *memory;
	struct layout layout;
};

#define PLACE(offset, size) ((struct layout_field){ offset, size })

/* Records as since go1.16. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct layout *l = &f->layout;

	f->memory = fake_memory_new();
	fake_memory_map(f->memory, RECORDS, 0x4000);
	l->stack_object_record.size = 16;
	l->stack_object_record_offset = PLACE(0, 4);
	l->stack_object_record_size = PLACE(4, 4);
	l->stack_object_record_ptr_bytes = PLACE(8, 4);
	l->stack_object_record_mask_offset = PLACE(12, 4);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_memory_free(f->memory);
	free(f);
	return 0;
}

static void store(struct fixture *f, taddr addr, size_t width, uint64_t value)
{
	fake_memory_store(f->memory, addr, width, value);
}

static void put_record(struct fixture *f, unsigned index, int32_t offset, uint32_t size,
		       int32_t ptr_bytes, uint32_t mask)
{
	const taddr at = RECORDS + 8 + 16 * index;

	store(f, RECORDS, 8, index + 1);
	store(f, at, 4, (uint32_t)offset);
	store(f, at + 4, 4, size);
	store(f, at + 8, 4, (uint32_t)ptr_bytes);
	store(f, at + 12, 4, mask);
}

static struct error *try_read(struct fixture *f, struct stack_object_list *ret)
{
	fake_memory_forget(f->memory);
	return stack_object_list_read(fake_memory_memory(f->memory), &f->layout, RECORDS, RODATA,
				      ret);
}

static void records_have_offsets_sizes_and_masks(void **state)
{
	struct fixture *f = *state;
	struct stack_object_list list = { 0 };

	put_record(f, 0, -48, 40, 24, 0x10);
	put_record(f, 1, 8, 8, 0, 0x20);
	store(f, RODATA + 0x10, 1, 5);
	assert_success(try_read(f, &list));
	assert_int_equal(list.count, 2);
	assert_int_equal(list.objects[0].offset, -48);
	assert_int_equal(list.objects[0].size, 40);
	assert_int_equal(list.objects[0].word_count, 3);
	assert_int_equal(list.objects[0].mask[0], 5);
	assert_int_equal(list.objects[1].offset, 8);
	assert_int_equal(list.objects[1].word_count, 0);
	stack_object_list_fini(&list);
}

/* 70 words: a bit that is set and 69 that repeat it. */
static void a_negative_pointer_size_means_a_program(void **state)
{
	struct fixture *f = *state;
	struct stack_object_list list = { 0 };
	const uint8_t program[] = { 1, 1, 0x81, 69, 0 };

	put_record(f, 0, -640, 640, -560, 0x40);
	store(f, RODATA + 0x40, 4, sizeof(program));
	memcpy(fake_memory_bytes(f->memory, RODATA + 0x44, sizeof(program)), program,
	       sizeof(program));
	assert_success(try_read(f, &list));
	assert_int_equal(list.objects[0].word_count, 70);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(list.objects[0].mask[i], 0xff);
	assert_int_equal(list.objects[0].mask[8], 0x3f);
	stack_object_list_fini(&list);
}

/* To go1.15. */
static void records_may_name_a_type(void **state)
{
	struct fixture *f = *state;
	struct layout *l = &f->layout;
	struct stack_object_list list = { 0 };

	l->stack_object_record_offset = PLACE(0, 8);
	l->stack_object_record_type = PLACE(8, 8);
	l->type.size = 48;
	l->type_size = PLACE(0, 8);
	l->type_ptr_bytes = PLACE(8, 8);
	l->type_tflag = PLACE(20, 1);
	l->type_kind = PLACE(23, 1);
	l->type_gc_data = PLACE(32, 8);
	store(f, TYPE, 8, 32);
	store(f, TYPE + 8, 8, 16);
	store(f, TYPE + 23, 1, 25);
	store(f, TYPE + 32, 8, RODATA);
	store(f, RODATA, 1, 2);
	store(f, RECORDS, 8, 1);
	store(f, RECORDS + 8, 8, (uint64_t)-64);
	store(f, RECORDS + 16, 8, TYPE);
	assert_success(try_read(f, &list));
	assert_int_equal(list.objects[0].offset, -64);
	assert_int_equal(list.objects[0].size, 32);
	assert_int_equal(list.objects[0].word_count, 2);
	assert_int_equal(list.objects[0].mask[0] & 3, 2);
	stack_object_list_fini(&list);
}

static void absurd_records_are_refused(void **state)
{
	struct fixture *f = *state;
	struct stack_object_list list = { 0 };

	put_record(f, 0, -8, 8, 16, 0); /* more pointers than bytes */
	assert_error(try_read(f, &list), ERROR_CORRUPT_TARGET);
	put_record(f, 0, -8, UINT32_MAX, 8, 0);
	assert_error(try_read(f, &list), ERROR_CORRUPT_TARGET);
	put_record(f, 0, -8, 1 << 30, 8, 0);
	put_record(f, 1, -8, 1 << 30, 8, 0);
	assert_error(try_read(f, &list), ERROR_LIMIT);
	put_record(f, 0, -8, 1 << 20, 1 << 20, 0x4000 - 0x1000); /* the mask is not there */
	assert_error(try_read(f, &list), ERROR_FAULT);
	store(f, RECORDS, 8, UINT64_MAX);
	assert_error(try_read(f, &list), ERROR_LIMIT);
	store(f, RECORDS, 8, 4096);
	f->layout.stack_object_record_size.size = 0;
	assert_error(try_read(f, &list), ERROR_UNSUPPORTED);
	assert_int_equal(list.count, 0);
	assert_null(list.objects);
}

static void a_runtime_may_have_no_object_for_reflected_calls(void **state)
{
	struct fixture *f = *state;
	struct memory *memory = fake_memory_memory(f->memory);
	struct stack_object_list list = { 0 };

	assert_success(stack_object_list_read_reflect(memory, &f->layout, RODATA, &list));
	assert_int_equal(list.count, 0);
	f->layout.global_reflect_stub_objects = (struct layout_global){ RECORDS + 8, 16 };
	put_record(f, 0, -272, 272, 264, 0);
	fake_memory_forget(f->memory);
	assert_success(stack_object_list_read_reflect(memory, &f->layout, RODATA, &list));
	assert_int_equal(list.count, 1);
	assert_int_equal(list.objects[0].word_count, 33);
	stack_object_list_fini(&list);
}

static void a_stack_map_is_chosen_by_its_index(void **state)
{
	struct fixture *f = *state;
	struct memory *memory = fake_memory_memory(f->memory);
	struct stack_map map = { 0 };

	store(f, MAPS, 4, 3);
	store(f, MAPS + 4, 4, 9);
	store(f, MAPS + 8 + 2 * 2, 2, 0x101);
	assert_success(stack_map_read(memory, MAPS, 2, &map));
	assert_int_equal(map.bit_count, 9);
	assert_true(stack_map_has(&map, 0));
	assert_false(stack_map_has(&map, 1));
	assert_true(stack_map_has(&map, 8));
	free(map.bits);
	assert_error(stack_map_read(memory, MAPS, 3, &map), ERROR_CORRUPT_TARGET);
	store(f, MAPS + 4, 4, UINT32_MAX);
	fake_memory_forget(f->memory);
	assert_error(stack_map_read(memory, MAPS, 2, &map), ERROR_LIMIT);
	store(f, MAPS + 4, 4, 0); /* nothing in any map, whatever the index */
	fake_memory_forget(f->memory);
	assert_success(stack_map_read(memory, MAPS, 7, &map));
	assert_int_equal(map.bit_count, 0);
	free(map.bits);
	store(f, MAPS, 4, 0);
	fake_memory_forget(f->memory);
	assert_error(stack_map_read(memory, MAPS, 0, &map), ERROR_CORRUPT_TARGET);
}

/* {function, bit vector, bytes of arguments}. */
static void a_closure_maps_results_only_once_they_are_there(void **state)
{
	struct fixture *f = *state;
	struct memory *memory = fake_memory_memory(f->memory);
	struct stack_map map = { 0 };
	bool found;

	store(f, TYPE, 8, 0x401000);
	store(f, TYPE + 8, 8, TYPE + 0x40);
	store(f, TYPE + 16, 8, 12); /* the second word is a result */
	store(f, TYPE + 0x40, 4, 2);
	store(f, TYPE + 0x48, 8, MAPS);
	store(f, MAPS, 1, 3);
	assert_success(stack_map_read_reflect(memory, TYPE, 0x401000, false, &found, &map));
	assert_true(found);
	assert_int_equal(map.bit_count, 1);
	free(map.bits);
	assert_success(stack_map_read_reflect(memory, TYPE, 0x401000, true, &found, &map));
	assert_int_equal(map.bit_count, 2);
	free(map.bits);
	assert_success(stack_map_read_reflect(memory, TYPE, 0x402000, true, &found, &map));
	assert_false(found);
	assert_success(stack_map_read_reflect(memory, 0x999000, 0x401000, true, &found, &map));
	assert_false(found);
	store(f, TYPE + 8, 8, 0x999000);
	fake_memory_forget(f->memory);
	assert_error(stack_map_read_reflect(memory, TYPE, 0x401000, true, &found, &map),
		     ERROR_FAULT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_have_offsets_sizes_and_masks),
		TEST(a_negative_pointer_size_means_a_program),
		TEST(records_may_name_a_type),
		TEST(absurd_records_are_refused),
		TEST(a_runtime_may_have_no_object_for_reflected_calls),
		TEST(a_stack_map_is_chosen_by_its_index),
		TEST(a_closure_maps_results_only_once_they_are_there),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
