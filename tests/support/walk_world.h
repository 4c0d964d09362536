/*
 * A small program for tests of the reference walk: types that hold one another, objects of each
 * kind of span, and one global, main.g.
 */
#ifndef TESTS_SUPPORT_WALK_WORLD_H
#define TESTS_SUPPORT_WALK_WORLD_H

#include "tests/support/assertions.h"
#include "tests/support/walked_heap.h"

/*
 * Objects of all tests: first those that hold pointers, from A on and of 64 bytes, then some
 * without, then larger ones, which have a header, then a large one, which has none.
 */
enum {
	COUNT = 128,
	A = 1, /* and its neighbours */
	B,
	C,
	D,
	E,
	F,
	G,
	SMALL_SIZE = 64,
	PLAIN = COUNT + 1,
	PLAIN_2,
	WIDE = 2 * COUNT + 1, /* 512 bytes, just too small for a header */
	WIDE_2,
	BIG = 2 * COUNT + 16 + 1, /* 1024 bytes with the header */
	BIG_SIZE = 1024,
	LARGE = BIG + 8,
	LARGE_SIZE = 40 << 10,
	/* of descriptors, itabs and code */
	NODE_POINTER = 0x601000,
	PAIR = 0x601100,
	NODE = 0x601200,
	SHAPE_ITAB = 0x602000,
	CODE = 0x401000,
};

struct world {
	struct walked_heap w;
	type_id integer, bytes, string, any, shape; /* shape: an interface with methods */
	type_id node, node_pointer, nodes;          /* node: left, right, text, items, any */
	type_id pair, pair_pointer;                 /* 16 bytes: first *Node, number int */
	struct go_field node_fields[5], pair_fields[2];
};

static inline void make_types(struct world *world)
{
	struct go_types *types = world->w.types;

	world->integer = fake_type_plain(types, "int", GO_KIND_INT, 8);
	world->bytes =
	    fake_type_slice(types, "[]uint8", fake_type_plain(types, "uint8", GO_KIND_UINT8, 1));
	world->string = fake_type_string(types);
	world->any = fake_type_interface(types, "interface {}", false);
	world->shape = fake_type_interface(types, "main.Shape", true);
	world->node_pointer = fake_type_pointer(types, "*main.Node", TYPE_UNKNOWN);
	world->nodes = fake_type_slice(types, "[]*main.Node", world->node_pointer);
	world->node_fields[0] = (struct go_field){ "left", 0, world->node_pointer };
	world->node_fields[1] = (struct go_field){ "right", 8, world->node_pointer };
	world->node_fields[2] = (struct go_field){ "text", 16, world->string };
	world->node_fields[3] = (struct go_field){ "items", 32, world->nodes };
	world->node_fields[4] = (struct go_field){ "count", 56, world->integer };
	world->node = fake_type_struct(types, "main.Node", SMALL_SIZE, world->node_fields, 5);
	fake_types_at(types, world->node_pointer)->elem = world->node;
	fake_types_at(types, world->node_pointer)->descriptor = NODE_POINTER;
	fake_types_at(types, world->node)->descriptor = NODE;
	world->pair_fields[0] = (struct go_field){ "first", 0, world->node_pointer };
	world->pair_fields[1] = (struct go_field){ "number", 8, world->integer };
	world->pair = fake_type_struct(types, "main.Pair", 16, world->pair_fields, 2);
	fake_types_at(types, world->pair)->descriptor = PAIR;
	world->pair_pointer = fake_type_pointer(types, "*main.Pair", world->pair);
	fake_types_add_itab(types, SHAPE_ITAB, world->pair);
}

static inline struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));
	struct fake_heap *heap;

	assert_non_null(world);
	walked_heap_init(&world->w);
	make_types(world);
	heap = world->w.heap;
	fake_heap_add(heap, SMALL_SIZE, COUNT, false);
	fake_heap_add(heap, SMALL_SIZE, COUNT, true);
	fake_heap_add(heap, 512, 16, false);
	fake_heap_add(heap, BIG_SIZE, 8, false);
	fake_heap_span(heap, fake_heap_add(heap, LARGE_SIZE, 1, false))->large_type = NODE;
	walked_heap_finish(&world->w);
	return world;
}

static inline void world_free(struct world *world)
{
	walked_heap_fini(&world->w);
	free(world);
}

static inline void global(struct world *world, type_id type, uint32_t object)
{
	walked_heap_global(&world->w, "main.g", type, object);
}

/* A global of several words. */
static inline void words(struct world *world, type_id type, uint64_t first, uint64_t second,
			 uint64_t third)
{
	walked_heap_words(&world->w, "main.g", type, first, second, third);
}

static inline taddr address(const struct world *world, uint32_t object)
{
	return walked_heap_address(&world->w, object);
}

static inline void point(struct world *world, uint32_t from, uint64_t word, uint32_t to)
{
	walked_heap_point(&world->w, from, word, to);
}

static inline void store(struct world *world, uint32_t object, uint64_t word, uint64_t value)
{
	walked_heap_store(&world->w, object, word, value);
}

/* Into an object. */
static inline void point_inside(struct world *world, uint32_t from, uint64_t word, uint32_t to,
				uint64_t offset)
{
	fake_heap_point(world->w.heap, from, word, address(world, to) + offset);
}

static inline void run(struct world *world)
{
	walked_heap_run_both(&world->w);
}

#define chain(object, text) assert_chain(&world->w, object, text)
#define type(object, text)  assert_type(&world->w, object, text)
#define used(object, bytes) assert_used(&world->w, object, bytes)

static inline type_id unsafe_pointer(struct world *world)
{
	return fake_types_add(world->w.types, &(struct go_type){ .name = "unsafe.Pointer",
								 .kind = GO_KIND_UNSAFE_POINTER,
								 .size = 8,
								 .ptr_bytes = 8 });
}

#endif
