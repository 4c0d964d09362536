#include "agent/goruntime/stack_object.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/bitmap.h"
#include "agent/goruntime/gc_program.h"
#include "agent/goruntime/gtype.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum {
	OBJECTS_MAX = 1 << 16, /* of one function */
	RECORD_SIZE_MAX = 64,
	FRAME_BYTES_MAX = 1 << 30, /* of all objects of one function together */
	PROGRAM_LENGTH_SIZE = 4,   /* precedes a type's GC program */
};

void stack_object_list_fini(struct stack_object_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->objects[i].mask);
	free(list->objects);
	*list = (struct stack_object_list){ 0 };
}

static int64_t sign_extend(uint64_t value, uint32_t width)
{
	unsigned shift = 64 - 8 * width;

	return (int64_t)(value << shift) >> shift;
}

static uint64_t number(const uint8_t *record, struct layout_field field)
{
	return load_uint_le(record + field.offset, field.size);
}

/* Bits in 64s, as the readers of types give them, to bits in bytes, as the linker writes them. */
static struct error *set_mask(struct stack_object *object, const uint64_t *words)
{
	size_t count = bitmap_words(object->word_count);

	object->mask = malloc(count ? 8 * count : 1);
	if (!object->mask)
		return &error_nomem;
	for (size_t i = 0; i < count; i++)
		store_u64le(object->mask + 8 * i, words[i]);
	return NULL;
}

static struct error *set_sizes(struct stack_object *object, uint64_t size, uint64_t ptr_bytes)
{
	if (size > FRAME_BYTES_MAX || ptr_bytes > size)
		return error_new(ERROR_CORRUPT_TARGET,
				 "%" PRIu64 " bytes, %" PRIu64 " with pointers", size, ptr_bytes);
	object->size = size;
	object->word_count = (uint32_t)(ptr_bytes / 8);
	return NULL;
}

/* To go1.15: sizes and mask are the type's. */
static struct error *describe_by_type(struct memory *memory, const struct layout *layout,
				      taddr addr, struct stack_object *object)
{
	uint64_t *words scoped(freep) = NULL;
	struct gtype type;
	struct error *err = gtype_read(memory, layout, addr, &type);

	if (!err)
		err = set_sizes(object, type.size, type.ptr_bytes);
	if (err)
		return err;
	words = calloc(bitmap_words(object->word_count) + 1, sizeof(*words));
	if (!words)
		return &error_nomem;
	err = gtype_mask_read(memory, layout, &type, words);
	return err ? err : set_mask(object, words);
}

static struct error *expand_program(struct memory *memory, taddr program,
				    struct stack_object *object)
{
	uint64_t *words scoped(freep) =
	    calloc(bitmap_words(object->word_count) + 1, sizeof(*words));
	struct error *err;

	if (!words)
		return &error_nomem;
	err = gc_program_expand(memory, program + PROGRAM_LENGTH_SIZE, object->word_count, words);
	return err ? err : set_mask(object, words);
}

static struct error *describe_by_record(struct memory *memory, const struct layout *layout,
					const uint8_t *record, taddr rodata,
					struct stack_object *object)
{
	int64_t ptr_bytes = sign_extend(number(record, layout->stack_object_record_ptr_bytes),
					layout->stack_object_record_ptr_bytes.size);
	taddr mask = rodata + number(record, layout->stack_object_record_mask_offset);
	size_t size;
	struct error *err = set_sizes(object, number(record, layout->stack_object_record_size),
				      (uint64_t)(ptr_bytes < 0 ? -ptr_bytes : ptr_bytes));

	if (err)
		return err;
	if (ptr_bytes < 0)
		return expand_program(memory, mask, object);
	size = (object->word_count + 7) / 8;
	object->mask = malloc(size ? size : 1);
	if (!object->mask)
		return &error_nomem;
	return memory_read(memory, mask, object->mask, size);
}

static struct error *read_object(struct memory *memory, const struct layout *layout,
				 const uint8_t *record, taddr rodata, struct stack_object *object)
{
	object->offset = sign_extend(number(record, layout->stack_object_record_offset),
				     layout->stack_object_record_offset.size);
	if (!layout_has(layout, stack_object_record_type))
		return describe_by_record(memory, layout, record, rodata, object);
	return describe_by_type(memory, layout, number(record, layout->stack_object_record_type),
				object);
}

static struct error *check_layout(const struct layout *layout)
{
	bool by_type = layout_has(layout, stack_object_record_type);
	bool by_record = layout_has(layout, stack_object_record_size) &&
			 layout_has(layout, stack_object_record_ptr_bytes) &&
			 layout_has(layout, stack_object_record_mask_offset);

	if ((!by_type && !by_record) || layout->stack_object_record.size > RECORD_SIZE_MAX)
		return error_new(ERROR_UNSUPPORTED, "a form of stack objects that is not known");
	return NULL;
}

static struct error *read_records(struct memory *memory, const struct layout *layout, taddr addr,
				  uint64_t count, taddr rodata, struct stack_object_list *list)
{
	uint8_t record[RECORD_SIZE_MAX];
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct stack_object *object = &list->objects[i];
		struct error *err;

		err = memory_read(memory, addr + i * layout->stack_object_record.size, record,
				  layout->stack_object_record.size);
		if (err)
			return err;
		list->count++; /* its mask is freed with the list from here on */
		err = read_object(memory, layout, record, rodata, object);
		if (err)
			return error_context(err, "object %" PRIu64, i);
		bytes += object->size;
		if (bytes > FRAME_BYTES_MAX)
			return error_new(ERROR_LIMIT, "stack objects of %" PRIu64 " bytes", bytes);
	}
	return NULL;
}

static struct error *read_list(struct memory *memory, const struct layout *layout, taddr addr,
			       uint64_t count, taddr rodata, struct stack_object_list *ret)
{
	struct stack_object_list list = { 0 };
	struct error *err = check_layout(layout);

	if (err)
		return err;
	if (count > OBJECTS_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu64 " stack objects", count);
	list.objects = calloc(count ? count : 1, sizeof(*list.objects));
	if (!list.objects)
		return &error_nomem;
	err = read_records(memory, layout, addr, count, rodata, &list);
	if (err) {
		stack_object_list_fini(&list);
		return err;
	}
	*ret = list;
	return NULL;
}

struct error *stack_object_list_read(struct memory *memory, const struct layout *layout, taddr addr,
				     taddr rodata, struct stack_object_list *ret)
{
	uint64_t count;
	struct error *err = memory_u64(memory, addr, &count);

	return err ? err : read_list(memory, layout, addr + 8, count, rodata, ret);
}

struct error *stack_object_list_read_reflect(struct memory *memory, const struct layout *layout,
					     taddr rodata, struct stack_object_list *ret)
{
	struct layout_global objects = layout->global_reflect_stub_objects;

	if (!objects.size || !layout->stack_object_record.size) {
		*ret = (struct stack_object_list){ 0 };
		return NULL;
	}
	return read_list(memory, layout, objects.addr,
			 objects.size / layout->stack_object_record.size, rodata, ret);
}
