/* Type descriptors, their masks and their tiles, over a made-up runtime. */
#include "tests/support/assertions.h"

#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gc_program.h"
#include "agent/goruntime/gtype.h"
#include "agent/goruntime/gtype_tile.h"
#include "tests/support/fake_runtime.h"

enum { ON_DEMAND = 16, GC_PROGRAM = 0x40, MASK_WORDS = 64 };

static int set_up(void **state)
{
	struct fake_runtime *runtime = malloc(sizeof(*runtime));

	fake_runtime_init(runtime);
	*state = runtime;
	return 0;
}

static int tear_down(void **state)
{
	fake_runtime_fini(*state);
	free(*state);
	return 0;
}

static taddr store_bytes(struct fake_runtime *r, const void *bytes, size_t size)
{
	taddr addr = fake_runtime_room(r, size);

	memcpy(fake_memory_bytes(r->memory, addr, size), bytes, size);
	return addr;
}

#define EXPAND(r, mask, bits, ...)                                                                 \
	gc_program_expand(fake_memory_memory((r)->memory),                                         \
			  store_bytes(r, (const uint8_t[]){ __VA_ARGS__ },                         \
				      sizeof((const uint8_t[]){ __VA_ARGS__ })),                   \
			  bits, mask)

static void programs_emit_and_repeat(void **state)
{
	struct fake_runtime *r = *state;
	uint64_t mask[MASK_WORDS];

	assert_success(EXPAND(r, mask, 64, 0));
	assert_int_equal(mask[0], 0);
	/* 11 bits, whose second byte has more than belongs to them */
	assert_success(EXPAND(r, mask, 64, 11, 0x81, 0xfd, 0));
	assert_int_equal(mask[0], 0x581);
	/* 3 bits, and these 5 times */
	assert_success(EXPAND(r, mask, 64, 3, 0x5, 0x83, 5, 0));
	assert_int_equal(mask[0], 0x2db6d);
	/* the last 2 of 3 bits, 300 times, in varints */
	assert_success(EXPAND(r, mask, 640, 3, 0x2, 0x80, 2, 0xac, 2, 0));
	for (uint32_t i = 0; i < 640; i++)
		assert_int_equal(bitmap_get(mask, i), i % 2 && i < 603);
}

static void programs_that_run_away_are_stopped(void **state)
{
	struct fake_runtime *r = *state;
	uint64_t mask[MASK_WORDS];

	assert_error(EXPAND(r, mask, 10, 11, 0xff, 0xff, 0), ERROR_FORMAT);
	assert_error(EXPAND(r, mask, 64, 8, 0xff, 0x81, 57, 0), ERROR_FORMAT);
	assert_error(EXPAND(r, mask, 64, 2, 3, 0x83, 1, 0), ERROR_FORMAT); /* 3 of 2 bits */
	assert_error(EXPAND(r, mask, 64, 2, 3, 0x82, 0, 0), ERROR_FORMAT); /* nothing */
	assert_error(EXPAND(r, mask, 64, 2, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
			    0x80, 0x80, 1),
		     ERROR_FORMAT);
	assert_error(EXPAND(r, mask, 4096, 8, 0xff, 0x80, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			    0xff, 0xff, 0xff, 1, 0),
		     ERROR_FORMAT);
	assert_error(gc_program_expand(fake_memory_memory(r->memory), 0x123456789000, 64, mask),
		     ERROR_FAULT);
}

static struct gtype read_type(struct fake_runtime *r, taddr addr)
{
	struct gtype type = { 0 };

	assert_success(gtype_read(fake_memory_memory(r->memory), &r->layout, addr, &type));
	return type;
}

static struct error *read_mask(struct fake_runtime *r, taddr addr, uint64_t *mask)
{
	struct gtype type = read_type(r, addr);

	assert_in_range(type.ptr_bytes, 0, MASK_WORDS * 64 * 8);
	return gtype_mask_read(fake_memory_memory(r->memory), &r->layout, &type, mask);
}

static void flags_mean_what_the_runtimes_constants_say(void **state)
{
	struct fake_runtime *r = *state;
	taddr addr = fake_runtime_type(
	    r, &(struct fake_type){
		   .size = 24, .ptr_bytes = 16, .kind = GTYPE_KIND_STRUCT | 0x40, .tflag = 0x1f });
	struct gtype type = read_type(r, addr);

	assert_int_equal(type.size, 24);
	assert_int_equal(type.ptr_bytes, 16);
	assert_int_equal(type.kind, GTYPE_KIND_STRUCT);
	assert_int_equal(type.mask_form, GTYPE_MASK_ON_DEMAND);
	/* where that bit of tflag is of an unrolled bitmap, which needs nothing special */
	r->layout.const_tflag_mask_on_demand.known = false;
	assert_int_equal(read_type(r, addr).mask_form, GTYPE_MASK_PLAIN);
	r->layout.const_kind_gc_program = (struct layout_constant){ 0x40, true };
	assert_int_equal(read_type(r, addr).mask_form, GTYPE_MASK_PROGRAM);
}

static void what_is_no_descriptor_is_refused(void **state)
{
	struct fake_runtime *r = *state;
	struct memory *memory = fake_memory_memory(r->memory);
	static const struct fake_type types[] = {
		{ .size = 16, .ptr_bytes = 24 },
		{ .size = 16, .ptr_bytes = 12 },
		{ .size = 17, .ptr_bytes = 8 },
	};
	struct gtype type;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_error(gtype_read(memory, &r->layout, fake_runtime_type(r, &types[i]), &type),
			     ERROR_FORMAT);
	assert_error(gtype_read(memory, &r->layout, 0, &type), ERROR_FORMAT);
	assert_error(gtype_read(memory, &r->layout, r->next + 4, &type), ERROR_FORMAT);
	assert_error(gtype_read(memory, &r->layout, 0x123456789000, &type), ERROR_FAULT);
}

static void plain_masks_end_with_the_last_pointer(void **state)
{
	struct fake_runtime *r = *state;
	uint64_t mask[MASK_WORDS];
	const uint64_t bits[2] = { 0x8000000000000001, UINT64_MAX };
	taddr addr = fake_runtime_type(
	    r, &(struct fake_type){ .size = 1024,
				    .ptr_bytes = 68 * 8,
				    .gc_data = store_bytes(r, bits, sizeof(bits)) });

	assert_success(read_mask(r, addr, mask));
	assert_int_equal(mask[0], 0x8000000000000001);
	assert_int_equal(mask[1], 0xf);
}

static void programs_of_types_have_a_length_in_front(void **state)
{
	struct fake_runtime *r = *state;
	static const uint8_t program[] = { 9, 9, 9, 9, 2, 1, 0x82, 99, 0 };
	uint64_t mask[MASK_WORDS];
	taddr addr = fake_runtime_type(
	    r, &(struct fake_type){ .size = 1600,
				    .ptr_bytes = 1600,
				    .kind = GC_PROGRAM | GTYPE_KIND_ARRAY,
				    .gc_data = store_bytes(r, program, sizeof(program)) });

	r->layout.const_kind_gc_program = (struct layout_constant){ GC_PROGRAM, true };
	assert_success(read_mask(r, addr, mask));
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(bitmap_get(mask, i), i % 2 == 0);
}

/* A type whose mask has not been built yet. */
static taddr on_demand(struct fake_runtime *r, uint8_t kind, uint64_t size, uint64_t ptr_bytes)
{
	return fake_runtime_type(r, &(struct fake_type){ .size = size,
							 .ptr_bytes = ptr_bytes,
							 .kind = kind,
							 .tflag = ON_DEMAND,
							 .gc_data = fake_runtime_room(r, 8) });
}

static taddr array_of(struct fake_runtime *r, taddr elem, uint64_t length)
{
	struct gtype type = read_type(r, elem);
	taddr addr =
	    on_demand(r, GTYPE_KIND_ARRAY, length * type.size,
		      length && type.ptr_bytes ? (length - 1) * type.size + type.ptr_bytes : 0);

	fake_runtime_set(r, addr, r->layout.array_type_elem, elem);
	fake_runtime_set(r, addr, r->layout.array_type_len, length);
	return addr;
}

struct field {
	taddr type;
	uint64_t offset;
};

static taddr struct_of(struct fake_runtime *r, uint64_t size, uint64_t ptr_bytes,
		       const struct field *fields, uint32_t count)
{
	const struct layout *l = &r->layout;
	taddr addr = on_demand(r, GTYPE_KIND_STRUCT, size, ptr_bytes);
	taddr data = fake_runtime_room(r, l->struct_field.size * count);

	for (uint32_t i = 0; i < count; i++) {
		taddr field = data + i * l->struct_field.size;

		fake_runtime_set(r, field, l->struct_field_type, fields[i].type);
		fake_runtime_set(r, field, l->struct_field_offset, fields[i].offset);
	}
	fake_memory_store(r->memory, addr + l->struct_type_fields.offset, 8, data);
	fake_memory_store(r->memory, addr + l->struct_type_fields.offset + 8, 8, count);
	return addr;
}

static void masks_on_demand_are_read_where_they_were_built(void **state)
{
	struct fake_runtime *r = *state;
	taddr addr = array_of(r, fake_runtime_masked_type(r, 16, 1), 8);
	const uint64_t built = 0x2a;
	uint64_t mask[MASK_WORDS];

	fake_memory_store(r->memory, read_type(r, addr).gc_data, 8,
			  store_bytes(r, &built, sizeof(built)));
	assert_success(read_mask(r, addr, mask));
	assert_int_equal(mask[0], 0x2a); /* and not what its elements say */
}

static void masks_that_were_not_built_are_put_together(void **state)
{
	struct fake_runtime *r = *state;
	taddr pair = fake_runtime_masked_type(r, 24, 0x2);
	taddr word = fake_runtime_masked_type(r, 8, 0x1);
	taddr none = fake_runtime_type(r, &(struct fake_type){ .size = 24 });
	taddr inner = array_of(r, pair, 3); /* 1, 4, 7 of 9 words */
	struct field fields[] = {
		{ word, 0 }, { none, 8 }, { inner, 32 }, { word, 104 }, { none, 112 }
	};
	taddr body = struct_of(r, 136, 112, fields, 5); /* 0, 5, 8, 11, 13 of 17 words */
	taddr all = array_of(r, array_of(r, body, 1), 7);
	uint64_t mask[MASK_WORDS];

	assert_success(read_mask(r, all, mask));
	for (uint32_t i = 0; i < 6 * 17 + 14; i++) {
		uint32_t k = i % 17;

		assert_int_equal(bitmap_get(mask, i),
				 k == 0 || k == 5 || k == 8 || k == 11 || k == 13);
	}
	/* the same while the runtime is at it */
	fake_memory_store(r->memory, read_type(r, inner).gc_data, 8,
			  r->layout.global_mask_in_progress.addr);
	assert_success(read_mask(r, inner, mask));
	assert_int_equal(mask[0], 0x92);
}

static void types_that_contradict_themselves_are_refused(void **state)
{
	struct fake_runtime *r = *state;
	taddr word = fake_runtime_masked_type(r, 8, 0x1);
	taddr array = array_of(r, word, 4);
	struct field twice[64];
	taddr many;
	uint64_t mask[MASK_WORDS];

	fake_runtime_set(r, array, r->layout.array_type_len, 5);
	assert_error(read_mask(r, array, mask), ERROR_FORMAT);
	fake_runtime_set(r, array, r->layout.array_type_len, UINT64_MAX);
	assert_error(read_mask(r, array, mask), ERROR_FORMAT);
	assert_error(read_mask(r, on_demand(r, 22, 64, 64), mask), ERROR_FORMAT);
	assert_error(read_mask(r, struct_of(r, 16, 16, &(struct field){ word, 16 }, 1), mask),
		     ERROR_FORMAT);

	/* parts on top of each other, again and again */
	many = fake_runtime_masked_type(r, 64, 0xff);
	for (unsigned depth = 0; depth < 4; depth++) {
		for (unsigned i = 0; i < 64; i++)
			twice[i] = (struct field){ many, 0 };
		many = struct_of(r, 64, 64, twice, 64);
	}
	assert_error(read_mask(r, many, mask), ERROR_LIMIT);
}

static void a_type_that_contains_itself_ends(void **state)
{
	struct fake_runtime *r = *state;
	taddr self = struct_of(r, 64, 64, &(struct field){ 0, 0 }, 1);
	uint64_t mask[MASK_WORDS];
	uint64_t data;

	memcpy(&data, fake_memory_bytes(r->memory, self + r->layout.struct_type_fields.offset, 8),
	       8);
	fake_runtime_set(r, data, r->layout.struct_field_type, self);
	assert_error(read_mask(r, self, mask), ERROR_LIMIT);
}

static void tiles_are_laid_end_to_end_from_any_word_on(void **state)
{
	struct fake_runtime *r = *state;
	static const uint64_t sizes[] = { 1, 2, 3, 7, 63, 64, 65, 511, 512, 513, 700 };
	struct gtype_tiles *tiles = NULL;

	assert_success(gtype_tiles_new(fake_memory_memory(r->memory), &r->layout, &tiles));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t bits = sizes[i] < 50 ? sizes[i] : 50;
		taddr addr = fake_runtime_masked_type(r, 8 * sizes[i], UINT64_C(1) << (bits - 1));
		const struct gtype_tile *tile;

		assert_success(gtype_tiles_find(tiles, addr, 8 * sizes[i], &tile));
		assert_non_null(tile);
		for (uint64_t from = 0; from < 1500; from += 37) {
			uint64_t mask[MASK_WORDS] = { 0 };

			gtype_tile_paint(tile, from, 3000, mask, 5);
			for (uint64_t k = 0; k < MASK_WORDS * 64; k++)
				assert_int_equal(bitmap_get(mask, k),
						 k >= 5 && k < 3005 &&
						     (from + k - 5) % sizes[i] == bits - 1);
		}
	}
	gtype_tiles_free(tiles);
}

static void tiles_are_remembered_and_so_are_failures(void **state)
{
	struct fake_runtime *r = *state;
	struct gtype_tiles *tiles = NULL;
	const struct gtype_tile *tile, *again;
	taddr types[1000];

	assert_success(gtype_tiles_new(fake_memory_memory(r->memory), &r->layout, &tiles));
	for (unsigned i = 0; i < 1000; i++)
		types[i] = fake_runtime_masked_type(r, 128, i + 1);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t mask = 0;

			assert_success(gtype_tiles_find(tiles, types[i], 128, &tile));
			gtype_tile_paint(tile, 0, 64, &mask, 0);
			assert_int_equal(mask & 0xffff, i + 1);
		}
		fake_memory_unmap(r->memory, types[0]); /* no need to read them again */
	}
	assert_success(gtype_tiles_find(tiles, types[3], 127, &again)); /* does not fit */
	assert_null(again);
	assert_success(gtype_tiles_find(tiles, types[3], 128, &again));
	assert_non_null(again);
	assert_success(gtype_tiles_find(tiles, 0x123456789000, 64, &again));
	assert_null(again);
	assert_success(gtype_tiles_find(tiles, 0, 64, &again));
	assert_null(again);
	gtype_tiles_free(tiles);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(programs_emit_and_repeat),
		TEST(programs_that_run_away_are_stopped),
		TEST(flags_mean_what_the_runtimes_constants_say),
		TEST(what_is_no_descriptor_is_refused),
		TEST(plain_masks_end_with_the_last_pointer),
		TEST(programs_of_types_have_a_length_in_front),
		TEST(masks_on_demand_are_read_where_they_were_built),
		TEST(masks_that_were_not_built_are_put_together),
		TEST(types_that_contradict_themselves_are_refused),
		TEST(a_type_that_contains_itself_ends),
		TEST(tiles_are_laid_end_to_end_from_any_word_on),
		TEST(tiles_are_remembered_and_so_are_failures),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("gtype", tests, NULL, NULL);
}
