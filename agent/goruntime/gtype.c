#include "agent/goruntime/gtype.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum {
	DESCRIPTOR_SIZE_MAX = 256,
	FIELD_SIZE_MAX = 64,
	KIND_MASK = 31, /* internal/abi/type.go, KindMask; flags above it to go1.25 */
	WORD = 8,
};

static uint64_t raw_field(const uint8_t *raw, struct layout_field field)
{
	return load_uint_le(raw + field.offset, field.size);
}

static bool has_flag(uint64_t flags, const struct layout_constant *flag)
{
	return flag->known && flags & (uint64_t)flag->value;
}

/* Each form exists in runtimes that have its constant; the bits mean other things elsewhere. */
static enum gtype_mask_form mask_form(const struct layout *l, uint64_t kind, uint64_t tflag)
{
	if (has_flag(tflag, &l->const_tflag_mask_on_demand))
		return GTYPE_MASK_ON_DEMAND;
	if (has_flag(kind, &l->const_kind_gc_program))
		return GTYPE_MASK_PROGRAM;
	return GTYPE_MASK_PLAIN;
}

/* Reads a descriptor whose layout is that of the given struct. */
static struct error *read_raw(struct memory *memory, taddr addr, uint32_t size,
			      uint8_t raw[DESCRIPTOR_SIZE_MAX])
{
	if (!size || size > DESCRIPTOR_SIZE_MAX)
		return error_new(ERROR_UNSUPPORTED, "type descriptors of %" PRIu32 " bytes", size);
	if (!addr || addr % WORD)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": not a type descriptor", addr);
	return memory_read_bulk(memory, addr, raw, size);
}

struct error *gtype_read(struct memory *memory, const struct layout *layout, taddr addr,
			 struct gtype *ret)
{
	uint8_t raw[DESCRIPTOR_SIZE_MAX];
	struct gtype type = { .addr = addr };
	uint64_t kind, tflag;
	struct error *err = read_raw(memory, addr, layout->type.size, raw);

	if (err)
		return err;
	type.size = raw_field(raw, layout->type_size);
	type.ptr_bytes = raw_field(raw, layout->type_ptr_bytes);
	type.gc_data = raw_field(raw, layout->type_gc_data);
	kind = raw_field(raw, layout->type_kind);
	tflag = raw_field(raw, layout->type_tflag);
	type.kind = kind & KIND_MASK;
	type.mask_form = (uint8_t)mask_form(layout, kind, tflag);
	if (type.ptr_bytes > type.size || type.ptr_bytes % WORD ||
	    (type.ptr_bytes && type.size % WORD))
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": not a type descriptor", addr);
	*ret = type;
	return NULL;
}

struct error *gtype_array(struct memory *memory, const struct layout *layout,
			  const struct gtype *type, taddr *ret_elem, uint64_t *ret_len)
{
	uint8_t raw[DESCRIPTOR_SIZE_MAX];
	struct error *err = read_raw(memory, type->addr, layout->array_type.size, raw);

	if (err)
		return err;
	*ret_elem = raw_field(raw, layout->array_type_elem);
	*ret_len = raw_field(raw, layout->array_type_len);
	return NULL;
}

/* The slice {pointer, length, capacity} of a struct type's fields. */
static struct error *fields_slice(struct memory *memory, const struct layout *layout,
				  const struct gtype *type, taddr *ret_data, uint64_t *ret_count)
{
	uint8_t raw[DESCRIPTOR_SIZE_MAX];
	struct layout_field fields = layout->struct_type_fields;
	struct error *err = read_raw(memory, type->addr, layout->struct_type.size, raw);

	if (err)
		return err;
	if (fields.size < 2 * WORD || !layout->struct_field.size ||
	    layout->struct_field.size > FIELD_SIZE_MAX)
		return error_new(ERROR_UNSUPPORTED, "struct descriptors of this layout");
	*ret_data = load_u64le(raw + fields.offset);
	*ret_count = load_u64le(raw + fields.offset + WORD);
	return NULL;
}

struct error *gtype_fields(struct memory *memory, const struct layout *layout,
			   const struct gtype *type, struct gtype_field **ret, uint32_t *ret_count)
{
	struct gtype_field *fields scoped(freep) = NULL;
	uint8_t *raw scoped(freep) = NULL;
	size_t stride = layout->struct_field.size;
	uint64_t count;
	taddr data;
	struct error *err = fields_slice(memory, layout, type, &data, &count);

	if (err)
		return err;
	if (count > GTYPE_FIELDS_MAX)
		return error_new(ERROR_LIMIT, "a struct type of %" PRIu64 " fields", count);
	fields = calloc(count + 1, sizeof(*fields));
	raw = malloc(count * stride + 1);
	if (!fields || !raw)
		return &error_nomem;
	err = memory_read_bulk(memory, data, raw, count * stride);
	if (err)
		return err;
	for (uint64_t i = 0; i < count; i++) {
		fields[i].type = raw_field(raw + i * stride, layout->struct_field_type);
		fields[i].offset = raw_field(raw + i * stride, layout->struct_field_offset);
	}
	*ret = take(fields);
	*ret_count = (uint32_t)count;
	return NULL;
}
