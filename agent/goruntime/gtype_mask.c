/*
 * Pointer masks of types. In the simple cases they lie in memory, plain or as a GC program. Since
 * go1.24 the mask of a large array or struct is built by the runtime when it is first needed;
 * where it has not been, it is put together here as runtime/type.go, buildGCMask, does it: an
 * element's mask repeated, the fields' masks side by side. Instead of recursion there is a stack
 * of what is still to do; an array leaves "repeat" there below its element's "build".
 */
#include "agent/goruntime/gtype.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gc_program.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"
#include "proto/base/checked.h"

enum {
	WORD = 8,
	PROGRAM_LENGTH_SIZE = 4, /* of the length in front of a type's program */
	STEPS_MAX = 1 << 22,     /* parts of one type, all in all */
	WORK_FACTOR = 64,        /* how often each bit may be written: arrays in arrays repeat */
};

struct todo {
	taddr type; /* to build at bit; 0: to repeat what is there */
	uint64_t bit;
	uint64_t period, total; /* of the repetition */
};

struct build {
	struct memory *memory;
	const struct layout *layout;
	uint64_t *mask;
	uint64_t bit_count;
	uint64_t work_left; /* bits that may still be written: parts do not overlap */
	struct todo *stack;
	size_t depth, capacity;
};

static struct error *push(struct build *b, struct todo todo)
{
	if (b->depth == b->capacity) {
		size_t capacity = b->capacity ? 2 * b->capacity : 64;
		struct todo *stack;

		if (capacity > STEPS_MAX)
			return error_new(ERROR_LIMIT, "a type of more than %d parts", STEPS_MAX);
		stack = realloc(b->stack, capacity * sizeof(*stack));
		if (!stack)
			return &error_nomem;
		b->stack = stack;
		b->capacity = capacity;
	}
	b->stack[b->depth++] = todo;
	return NULL;
}

static struct error *spend(struct build *b, uint64_t bit_count)
{
	if (bit_count > b->work_left)
		return error_new(ERROR_LIMIT, "a type whose parts overlap");
	b->work_left -= bit_count;
	return NULL;
}

/* The bits as they lie in the target. */
static struct error *read_plain(struct memory *memory, taddr addr, uint64_t bit_count,
				uint64_t *mask)
{
	uint64_t words = bitmap_words(bit_count), size = bit_count / 8 + (bit_count % 8 != 0);
	struct error *err;

	if (!words)
		return NULL;
	mask[words - 1] = 0;
	err = memory_read_bulk(memory, addr, mask, size);
	if (err)
		return err;
	for (uint64_t i = 0; i < words; i++)
		mask[i] = load_u64le(&mask[i]);
	if (bit_count % BITMAP_WORD_BITS)
		mask[words - 1] &= bitmap_low_mask(bit_count % BITMAP_WORD_BITS);
	return NULL;
}

/* Where the mask of a type lies, 0 if it has not been built. */
static struct error *built_mask(struct memory *memory, const struct layout *layout,
				const struct gtype *type, taddr *ret)
{
	uint8_t raw[WORD];
	struct error *err;

	*ret = type->gc_data;
	if (type->mask_form != GTYPE_MASK_ON_DEMAND)
		return NULL;
	err = memory_read_bulk(memory, type->gc_data, raw, sizeof(raw));
	if (err)
		return err;
	*ret = load_u64le(raw);
	if (layout_has(layout, global_mask_in_progress) &&
	    *ret == layout->global_mask_in_progress.addr)
		*ret = 0;
	return NULL;
}

static struct error *read_built(struct memory *memory, const struct gtype *type, taddr addr,
				uint64_t *mask)
{
	if (type->mask_form == GTYPE_MASK_PROGRAM)
		return gc_program_expand(memory, addr + PROGRAM_LENGTH_SIZE, type->ptr_bytes / WORD,
					 mask);
	return read_plain(memory, addr, type->ptr_bytes / WORD, mask);
}

/* Adds a mask that lies in the target. */
static struct error *add_built(struct build *b, const struct gtype *type, taddr addr, uint64_t bit)
{
	uint64_t bit_count = type->ptr_bytes / WORD;
	uint64_t *part scoped(freep) = NULL;
	struct error *err = spend(b, bit_count);

	if (err)
		return err;
	part = malloc(bitmap_words(bit_count) * sizeof(*part) + 1);
	if (!part)
		return &error_nomem;
	err = read_built(b->memory, type, addr, part);
	if (!err)
		bitmap_or_range(b->mask, bit, part, 0, bit_count);
	return err;
}

static struct error *add_array(struct build *b, const struct gtype *type, uint64_t bit)
{
	struct gtype elem;
	taddr elem_addr;
	uint64_t length, total;
	struct error *err = gtype_array(b->memory, b->layout, type, &elem_addr, &length);

	if (!err)
		err = gtype_read(b->memory, b->layout, elem_addr, &elem);
	if (err)
		return err;
	if (!length || !elem.ptr_bytes)
		return NULL;
	if (!checked_mul(length - 1, elem.size / WORD, &total) ||
	    !checked_add(total, elem.ptr_bytes / WORD, &total) || total > b->bit_count - bit)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": an array larger than itself",
				 type->addr);
	err = spend(b, total);
	if (!err)
		err = push(b,
			   (struct todo){ .bit = bit, .period = elem.size / WORD, .total = total });
	return err ? err : push(b, (struct todo){ .type = elem_addr, .bit = bit });
}

static struct error *add_struct(struct build *b, const struct gtype *type, uint64_t bit)
{
	struct gtype_field *fields scoped(freep) = NULL;
	uint32_t count;
	struct error *err = gtype_fields(b->memory, b->layout, type, &fields, &count);

	for (uint32_t i = 0; i < count && !err; i++) {
		if (fields[i].offset / WORD > b->bit_count - bit)
			continue; /* beyond the last pointer: a field without any */
		err = push(b, (struct todo){ .type = fields[i].type,
					     .bit = bit + fields[i].offset / WORD });
	}
	return err;
}

static struct error *add_type(struct build *b, taddr addr, uint64_t bit)
{
	struct gtype type;
	taddr built;
	struct error *err = gtype_read(b->memory, b->layout, addr, &type);

	if (err)
		return err;
	if (!type.ptr_bytes)
		return NULL;
	if (bit > b->bit_count || type.ptr_bytes / WORD > b->bit_count - bit)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": a part larger than the whole", addr);
	err = built_mask(b->memory, b->layout, &type, &built);
	if (err)
		return err;
	if (built)
		return add_built(b, &type, built, bit);
	if (type.kind == GTYPE_KIND_ARRAY)
		return add_array(b, &type, bit);
	if (type.kind == GTYPE_KIND_STRUCT)
		return add_struct(b, &type, bit);
	return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no mask, and neither array nor struct",
			 addr);
}

static struct error *run(struct build *b)
{
	for (unsigned steps = 0; b->depth; steps++) {
		struct todo todo = b->stack[--b->depth];
		struct error *err = NULL;

		if (steps == STEPS_MAX)
			return error_new(ERROR_LIMIT, "a type of more than %d parts", STEPS_MAX);
		if (todo.type)
			err = add_type(b, todo.type, todo.bit);
		else
			bitmap_repeat(b->mask, todo.bit, todo.period, todo.total);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *build(struct memory *memory, const struct layout *layout,
			   const struct gtype *type, uint64_t *mask)
{
	struct build b = { .memory = memory,
			   .layout = layout,
			   .mask = mask,
			   .bit_count = type->ptr_bytes / WORD };
	struct error *err;

	b.work_left =
	    b.bit_count > UINT64_MAX / WORK_FACTOR ? UINT64_MAX : b.bit_count * WORK_FACTOR;
	memset(mask, 0, bitmap_words(b.bit_count) * sizeof(*mask));
	err = push(&b, (struct todo){ .type = type->addr });
	if (!err)
		err = run(&b);
	free(b.stack);
	return err;
}

struct error *gtype_mask_read(struct memory *memory, const struct layout *layout,
			      const struct gtype *type, uint64_t *mask)
{
	taddr built;
	struct error *err = built_mask(memory, layout, type, &built);

	if (err)
		return err;
	if (!built)
		return build(memory, layout, type, mask);
	return read_built(memory, type, built, mask);
}
