/*
 * A descriptor is the common part, what its kind adds, and what its uncommon part adds if it has
 * one. Any word of the target may be taken for the address of one: it is believed if its kind, size
 * and pointers go together, and later if its name is text.
 */
#include "agent/goruntime/rtype.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/go_type.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/type_memory.h"
#include "proto/base/bytes.h"

enum {
	RAW_MAX = 512,
	KIND_MASK = 31, /* internal/abi/type.go, KindMask; flags above it to go1.25 */
	WORD = 8,
	VARIADIC = 1 << 15, /* of a func's outCount */
	/* Of a map with buckets, whose flags have no names. */
	BUCKET_INDIRECT_KEY = 1,
	BUCKET_INDIRECT_ELEM = 2,
};

/* A descriptor being read. */
struct raw {
	const struct rtype_source *source;
	const struct layout *layout;
	uint8_t bytes[RAW_MAX];
	uint64_t tflag;
};

static uint64_t number(const struct raw *raw, struct layout_field field)
{
	return field.size && field.offset + field.size <= RAW_MAX
		   ? load_uint_le(raw->bytes + field.offset, field.size)
		   : 0;
}

static struct error *not_a_descriptor(taddr addr)
{
	return error_new(ERROR_FORMAT, "0x%" PRIx64 ": not a type descriptor", addr);
}

static struct error *fill(struct raw *raw, taddr addr, uint32_t size)
{
	if (!size || size > RAW_MAX)
		return error_new(ERROR_UNSUPPORTED, "type descriptors of %" PRIu32 " bytes", size);
	return type_memory_read(raw->source->memory, addr, raw->bytes, size);
}

static bool has_flag(uint64_t flags, const struct layout_constant *flag)
{
	return flag->known && flags & (uint64_t)flag->value;
}

/* What all values of a kind have in common: the size, or 0 if that differs. */
static uint64_t kind_size(uint8_t kind)
{
	static const uint8_t sizes[] = {
		[GO_KIND_BOOL] = 1,        [GO_KIND_INT] = 8,     [GO_KIND_INT8] = 1,
		[GO_KIND_INT16] = 2,       [GO_KIND_INT32] = 4,   [GO_KIND_INT64] = 8,
		[GO_KIND_UINT] = 8,        [GO_KIND_UINT8] = 1,   [GO_KIND_UINT16] = 2,
		[GO_KIND_UINT32] = 4,      [GO_KIND_UINT64] = 8,  [GO_KIND_UINTPTR] = 8,
		[GO_KIND_FLOAT32] = 4,     [GO_KIND_FLOAT64] = 8, [GO_KIND_COMPLEX64] = 8,
		[GO_KIND_COMPLEX128] = 16, [GO_KIND_CHAN] = 8,    [GO_KIND_FUNC] = 8,
		[GO_KIND_INTERFACE] = 16,  [GO_KIND_MAP] = 8,     [GO_KIND_POINTER] = 8,
		[GO_KIND_SLICE] = 24,      [GO_KIND_STRING] = 16, [GO_KIND_UNSAFE_POINTER] = 8,
	};

	return kind < sizeof(sizes) ? sizes[kind] : 0;
}

static bool is_sound(const struct rtype *type)
{
	uint64_t size = kind_size(type->kind);

	if (type->kind == GO_KIND_INVALID || type->kind > GO_KIND_UNSAFE_POINTER)
		return false;
	if (size && type->size != size)
		return false;
	return type->ptr_bytes <= type->size && type->ptr_bytes % WORD == 0 &&
	       (!type->ptr_bytes || type->size % WORD == 0);
}

static uint32_t struct_size(const struct layout *l, uint8_t kind)
{
	switch (kind) {
	case GO_KIND_ARRAY:
		return l->array_type.size;
	case GO_KIND_CHAN:
		return l->chan_type.size;
	case GO_KIND_FUNC:
		return l->func_type.size;
	case GO_KIND_INTERFACE:
		return l->interface_type.size;
	case GO_KIND_MAP:
		return l->map_type.size;
	case GO_KIND_POINTER:
		return l->pointer_type.size;
	case GO_KIND_SLICE:
		return l->slice_type.size;
	case GO_KIND_STRUCT:
		return l->struct_type.size;
	default:
		return l->type.size;
	}
}

/* The slice {pointer, length, capacity} of a struct's fields or an interface's methods. */
static struct error *read_items(const struct raw *raw, struct layout_field slice, struct rtype *ret)
{
	uint64_t count;

	if (slice.size < 2 * WORD || slice.offset + slice.size > RAW_MAX)
		return error_new(ERROR_UNSUPPORTED, "type descriptors of this layout");
	ret->items = load_u64le(raw->bytes + slice.offset);
	count = load_u64le(raw->bytes + slice.offset + WORD);
	if (count > RTYPE_FIELDS_MAX)
		return error_new(ERROR_LIMIT, "0x%" PRIx64 ": a type of %" PRIu64 " parts",
				 ret->addr, count);
	ret->item_count = (uint32_t)count;
	return NULL;
}

static void read_map(const struct raw *raw, struct rtype *ret)
{
	const struct layout *l = raw->layout;
	uint64_t flags = number(raw, l->map_type_flags);
	bool has_groups = layout_has(l, map_type_group);

	ret->key = number(raw, l->map_type_key);
	ret->elem = number(raw, l->map_type_elem);
	ret->bucket = number(raw, has_groups ? l->map_type_group : l->map_type_bucket);
	ret->indirect_key =
	    has_groups ? has_flag(flags, &l->const_map_indirect_key) : flags & BUCKET_INDIRECT_KEY;
	ret->indirect_elem = has_groups ? has_flag(flags, &l->const_map_indirect_elem)
					: flags & BUCKET_INDIRECT_ELEM;
}

/* Pointers to the parameters follow the descriptor and its uncommon part. */
static void read_func(const struct raw *raw, struct rtype *ret)
{
	const struct layout *l = raw->layout;
	uint64_t out = number(raw, l->func_type_out_count);

	ret->item_count = (uint32_t)number(raw, l->func_type_in_count);
	ret->out_count = out & (VARIADIC - 1);
	ret->variadic = out & VARIADIC;
	ret->items = ret->addr + l->func_type.size;
	if (has_flag(raw->tflag, &l->const_tflag_uncommon))
		ret->items += l->uncommon_type.size;
}

static struct error *read_kind(const struct raw *raw, struct rtype *ret)
{
	const struct layout *l = raw->layout;

	switch (ret->kind) {
	case GO_KIND_ARRAY:
		ret->elem = number(raw, l->array_type_elem);
		ret->length = number(raw, l->array_type_len);
		return NULL;
	case GO_KIND_CHAN:
		ret->elem = number(raw, l->chan_type_elem);
		ret->direction = (uint8_t)number(raw, l->chan_type_direction);
		return NULL;
	case GO_KIND_FUNC:
		read_func(raw, ret);
		return NULL;
	case GO_KIND_INTERFACE:
		return read_items(raw, l->interface_type_methods, ret);
	case GO_KIND_MAP:
		read_map(raw, ret);
		return NULL;
	case GO_KIND_POINTER:
		ret->elem = number(raw, l->pointer_type_elem);
		return NULL;
	case GO_KIND_SLICE:
		ret->elem = number(raw, l->slice_type_elem);
		return NULL;
	case GO_KIND_STRUCT:
		return read_items(raw, l->struct_type_fields, ret);
	default:
		return NULL;
	}
}

static void read_common(const struct raw *raw, uint64_t kind, struct rtype *ret)
{
	const struct layout *l = raw->layout;

	ret->size = number(raw, l->type_size);
	ret->ptr_bytes = number(raw, l->type_ptr_bytes);
	ret->hash = (uint32_t)number(raw, l->type_hash);
	ret->kind = kind & KIND_MASK;
	ret->named = has_flag(raw->tflag, &l->const_tflag_named);
	ret->extra_star = has_flag(raw->tflag, &l->const_tflag_extra_star);
	/* Since go1.26 it is a flag of its own, and the constant of old is a mere leftover. */
	ret->direct_interface = l->const_tflag_direct_interface.known
				    ? has_flag(raw->tflag, &l->const_tflag_direct_interface)
				    : has_flag(kind, &l->const_kind_direct_interface);
}

static struct error *read_package(const struct raw *raw, struct rtype *ret)
{
	const struct layout *l = raw->layout;
	struct layout_field field = l->uncommon_type_package;
	uint8_t bytes[4];
	taddr uncommon = ret->addr + struct_size(l, ret->kind);
	struct error *err;

	if (!ret->named || !has_flag(raw->tflag, &l->const_tflag_uncommon) ||
	    field.size != sizeof(bytes))
		return NULL;
	err = type_memory_read(raw->source->memory, uncommon + field.offset, bytes, sizeof(bytes));
	return err ? err
		   : rtype_resolve(raw->source, ret->addr, (int32_t)load_u32le(bytes),
				   &ret->package);
}

/*
 * To go1.23 reflect describes the buckets of a map it makes by a descriptor of the common part
 * alone: what lies behind is another object (reflect/type.go, bucketOf).
 */
static struct error *is_mere_bucket(const struct rtype_source *source, const struct rtype *type,
				    bool *ret)
{
	static const char prefix[] = "bucket(";
	char *name scoped(freep) = NULL;
	struct error *err = NULL;

	*ret = false;
	if (type->kind != GO_KIND_STRUCT || !layout_has(source->layout, map_type_bucket) ||
	    module_table_find_types(source->modules, type->addr))
		return NULL;
	err = rtype_text(source, type->name, &name, NULL);
	*ret = !err && !strncmp(name, prefix, sizeof(prefix) - 1);
	return err;
}

static struct error *read_rest(struct raw *raw, struct rtype *type)
{
	bool mere;
	struct error *err = is_mere_bucket(raw->source, type, &mere);

	if (err || mere)
		return err;
	err = fill(raw, type->addr, struct_size(raw->layout, type->kind));
	if (!err)
		err = read_kind(raw, type);
	return err ? err : read_package(raw, type);
}

struct error *rtype_read(const struct rtype_source *source, taddr addr, struct rtype *ret)
{
	const struct layout *l = source->layout;
	struct raw raw = { .source = source, .layout = l };
	struct rtype type = { .addr = addr };
	uint64_t kind;
	struct error *err;

	if (!addr || addr % WORD || addr > UINT64_MAX - RAW_MAX)
		return not_a_descriptor(addr);
	err = fill(&raw, addr, l->type.size);
	if (err)
		return err;
	raw.tflag = number(&raw, l->type_tflag);
	kind = number(&raw, l->type_kind);
	read_common(&raw, kind, &type);
	if (!is_sound(&type))
		return not_a_descriptor(addr);
	err = rtype_resolve(source, addr, (int32_t)number(&raw, l->type_name), &type.name);
	if (!err)
		err = read_rest(&raw, &type);
	if (err)
		return err;
	*ret = type;
	return NULL;
}

/* The i-th of items that have a layout. */
static struct error *read_item(const struct rtype_source *source, taddr items, uint32_t size,
			       uint32_t i, struct raw *raw)
{
	raw->source = source;
	raw->layout = source->layout;
	return fill(raw, items + (uint64_t)i * size, size);
}

struct error *rtype_field(const struct rtype_source *source, const struct rtype *type, uint32_t i,
			  struct rtype_field *ret)
{
	const struct layout *l = source->layout;
	struct raw raw;
	struct error *err = read_item(source, type->items, l->struct_field.size, i, &raw);
	uint64_t both;

	if (err)
		return err;
	*ret = (struct rtype_field){
		.name = number(&raw, l->struct_field_name),
		.type = number(&raw, l->struct_field_type),
		.offset = number(&raw, l->struct_field_offset),
	};
	if (layout_has(l, struct_field_offset_and_embedded)) {
		both = number(&raw, l->struct_field_offset_and_embedded);
		ret->offset = both >> 1;
		ret->embedded = both & 1;
	}
	return NULL;
}

struct error *rtype_parameter(const struct rtype_source *source, const struct rtype *type,
			      uint32_t i, taddr *ret)
{
	return type_memory_u64(source->memory, type->items + (uint64_t)i * WORD, ret);
}

struct error *rtype_method(const struct rtype_source *source, const struct rtype *type, uint32_t i,
			   taddr *ret_name, taddr *ret_type)
{
	const struct layout *l = source->layout;
	struct raw raw;
	struct error *err = read_item(source, type->items, l->interface_method.size, i, &raw);

	if (!err)
		err = rtype_resolve(source, type->addr,
				    (int32_t)number(&raw, l->interface_method_name), ret_name);
	if (!err)
		err = rtype_resolve(source, type->addr,
				    (int32_t)number(&raw, l->interface_method_type), ret_type);
	return err;
}
