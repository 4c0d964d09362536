#include "tests/support/fake_types.h"

#include <assert.h>
#include <string.h>

enum { UNCOMMON_SIZE = 16, MAP_GLOBAL = 0xa00f00, SLOT_SIZE = 16, MAP_SIZE = 48, GROUP_SIZE = 136 };

#define PLACE(offset, size) ((struct layout_field){ offset, size })
#define VALUE(number)       ((struct layout_constant){ number, true })

static void lay_out_common(struct layout *l)
{
	l->type.size = 48;
	l->type_size = PLACE(0, 8);
	l->type_ptr_bytes = PLACE(8, 8);
	l->type_hash = PLACE(16, 4);
	l->type_tflag = PLACE(20, 1);
	l->type_kind = PLACE(23, 1);
	l->type_gc_data = PLACE(32, 8);
	l->type_name = PLACE(40, 4);
	l->uncommon_type.size = UNCOMMON_SIZE;
	l->uncommon_type_package = PLACE(0, 4);
	l->const_kind_direct_interface = VALUE(32);
	l->const_tflag_direct_interface = VALUE(FAKE_TFLAG_DIRECT);
	l->const_tflag_uncommon = VALUE(FAKE_TFLAG_UNCOMMON);
	l->const_tflag_extra_star = VALUE(FAKE_TFLAG_EXTRA_STAR);
	l->const_tflag_named = VALUE(FAKE_TFLAG_NAMED);
}

static void lay_out_kinds(struct layout *l)
{
	l->array_type.size = 72;
	l->array_type_elem = PLACE(48, 8);
	l->array_type_len = PLACE(64, 8);
	l->chan_type.size = 64;
	l->chan_type_elem = PLACE(48, 8);
	l->chan_type_direction = PLACE(56, 8);
	l->func_type.size = 56;
	l->func_type_in_count = PLACE(48, 2);
	l->func_type_out_count = PLACE(50, 2);
	l->interface_type.size = 80;
	l->interface_type_methods = PLACE(56, 24);
	l->interface_method.size = 8;
	l->interface_method_name = PLACE(0, 4);
	l->interface_method_type = PLACE(4, 4);
	l->pointer_type.size = l->slice_type.size = 56;
	l->pointer_type_elem = l->slice_type_elem = PLACE(48, 8);
	l->struct_type.size = 80;
	l->struct_type_fields = PLACE(56, 24);
	l->struct_field.size = 24;
	l->struct_field_name = PLACE(0, 8);
	l->struct_field_type = PLACE(8, 8);
	l->struct_field_offset = PLACE(16, 8);
	l->itab.size = 32;
	l->itab_interface = PLACE(0, 8);
	l->itab_type = PLACE(8, 8);
	l->itab_hash = PLACE(16, 4);
}

static void lay_out_maps(struct layout *l)
{
	l->map_type.size = 112;
	l->map_type_key = PLACE(48, 8);
	l->map_type_elem = PLACE(56, 8);
	l->map_type_group = PLACE(64, 8);
	l->map_type_flags = PLACE(104, 4);
	l->const_map_indirect_key = VALUE(4);
	l->const_map_indirect_elem = VALUE(8);
	l->swiss_map.size = MAP_SIZE;
	l->swiss_map_count = PLACE(0, 8);
	l->swiss_map_directory = PLACE(16, 8);
	l->swiss_map_directory_length = PLACE(24, 8);
	l->swiss_table.size = 32;
	l->swiss_table_groups = PLACE(16, 8);
	l->swiss_table_length_mask = PLACE(24, 8);
}

static void store(struct fake_types *types, taddr addr, size_t width, uint64_t value)
{
	fake_memory_store(types->program->memory, addr, width, value);
}

/* runtime.reflectOffs: a map of one group, which fake_types_name fills. */
static void make_offsets(struct fake_types *types)
{
	taddr map = fake_program_room(types->program, MAP_SIZE);

	types->slots = fake_program_room(types->program, GROUP_SIZE);
	types->layout->global_reflect_offsets = (struct layout_global){ MAP_GLOBAL, 32 };
	store(types, MAP_GLOBAL + 16, 8, map);
	store(types, map + 16, 8, types->slots);
	for (unsigned i = 0; i < FAKE_OFFSETS_MAX; i++)
		store(types, types->slots + i, 1, 0x80);
}

void fake_types_use_buckets(struct fake_types *types)
{
	struct layout *l = types->layout;

	l->map_type.size = 88;
	l->map_type_group = (struct layout_field){ 0 };
	l->map_type_bucket = PLACE(64, 8);
	l->map_type_flags = PLACE(84, 4);
	l->swiss_map.size = 0;
	l->hmap.size = MAP_SIZE;
	l->hmap_log_buckets = PLACE(9, 1);
	l->hmap_buckets = PLACE(16, 8);
	l->hmap_old_buckets = PLACE(24, 8);
	types->has_buckets = true;
	memset(fake_memory_bytes(types->program->memory, types->slots, GROUP_SIZE), 0, GROUP_SIZE);
}

void fake_types_init(struct fake_types *types, struct fake_program *program)
{
	struct layout *l = &program->layout;

	/* The first word is no type's, so that 0 is no offset. */
	*types = (struct fake_types){
		.program = program, .layout = l, .next = FAKE_TYPES + 64, .next_made = FAKE_MADE
	};
	lay_out_common(l);
	lay_out_kinds(l);
	lay_out_maps(l);
	fake_memory_map(program->memory, FAKE_TYPES, FAKE_TYPES_SIZE);
	fake_memory_map(program->memory, FAKE_MADE, FAKE_MADE_SIZE);
	store(types, program->moduledata + l->moduledata_types.offset, 8, FAKE_TYPES);
	store(types, program->moduledata + l->moduledata_etypes.offset, 8,
	      FAKE_TYPES + FAKE_TYPES_SIZE);
	make_offsets(types);
}

taddr fake_types_room(struct fake_types *types, size_t size, bool made)
{
	taddr *next = made ? &types->next_made : &types->next;
	taddr addr = *next;

	*next += (size + 63) / 64 * 64;
	assert(types->next <= FAKE_TYPES + FAKE_TYPES_SIZE);
	assert(types->next_made <= FAKE_MADE + FAKE_MADE_SIZE);
	return addr;
}

static taddr put_text(struct fake_types *types, taddr at, const char *text)
{
	size_t size = strlen(text), left = size;

	if (types->two_byte_lengths) {
		store(types, at++, 1, size >> 8);
		store(types, at++, 1, size & 0xff);
	} else {
		for (; left >= 0x80; left >>= 7)
			store(types, at++, 1, (left & 0x7f) | 0x80);
		store(types, at++, 1, left);
	}
	if (size)
		memcpy(fake_memory_bytes(types->program->memory, at, size), text, size);
	return at + size;
}

taddr fake_types_name(struct fake_types *types, const char *text, const char *tag, uint8_t flags,
		      bool made)
{
	size_t size = strlen(text) + (tag ? strlen(tag) : 0) + 16;
	taddr name = fake_types_room(types, size, made), at = name;

	store(types, at++, 1, flags | (tag ? 2 : 0));
	at = put_text(types, at, text);
	if (tag)
		put_text(types, at, tag);
	return name;
}

/* Slots of a bucket and of a group lie at different places. */
static void put_slot(struct fake_types *types, unsigned i, uint32_t number, taddr addr)
{
	taddr key = types->slots + 8 + i * (types->has_buckets ? 4 : SLOT_SIZE);
	taddr value = types->has_buckets ? types->slots + 40 + i * 8 : key + 8;

	store(types, types->slots + i, 1, 0x11);
	store(types, key, 4, number);
	store(types, value, 8, addr);
}

/* A nameOff: of what reflect made, a number in its map. */
static uint32_t name_offset(struct fake_types *types, const char *text, bool made)
{
	taddr name = fake_types_name(types, text, NULL, 0, made);

	if (!made)
		return (uint32_t)(name - FAKE_TYPES);
	assert(types->offset_count < FAKE_OFFSETS_MAX);
	put_slot(types, types->offset_count, (uint32_t)-1 - types->offset_count, name);
	return (uint32_t)-1 - types->offset_count++;
}

void fake_types_set(struct fake_types *types, taddr addr, struct layout_field field, uint64_t value)
{
	store(types, addr + field.offset, field.size, value);
}

static void put_slice(struct fake_types *types, taddr addr, struct layout_field field, taddr items,
		      uint64_t count)
{
	store(types, addr + field.offset, 8, items);
	store(types, addr + field.offset + 8, 8, count);
	store(types, addr + field.offset + 16, 8, count);
}

static void put_fields(struct fake_types *types, taddr addr, const struct fake_descriptor *d)
{
	const struct layout *l = types->layout;
	taddr items = fake_types_room(types, d->count * 24 + 1, d->made);

	for (uint32_t i = 0; i < d->count; i++) {
		const struct fake_type_field *field = &d->fields[i];
		bool old = l->struct_field_offset_and_embedded.size != 0;
		taddr at = items + 24 * i;

		store(types, at, 8,
		      fake_types_name(types, field->name, field->tag,
				      field->embedded && !old ? 8 : 0, d->made));
		store(types, at + 8, 8, field->type);
		store(types, at + 16, 8,
		      old ? field->offset << 1 | field->embedded : field->offset);
	}
	put_slice(types, addr, l->struct_type_fields, items, d->count);
}

static void put_methods(struct fake_types *types, taddr addr, const struct fake_descriptor *d)
{
	taddr items = fake_types_room(types, d->count * 8 + 1, d->made);

	for (uint32_t i = 0; i < d->count; i++) {
		store(types, items + 8 * i, 4, name_offset(types, d->methods[i].name, false));
		store(types, items + 8 * i + 4, 4, d->methods[i].type - FAKE_TYPES);
	}
	put_slice(types, addr, types->layout->interface_type_methods, items, d->count);
}

static void put_func(struct fake_types *types, taddr addr, const struct fake_descriptor *d)
{
	uint32_t count = d->count + (d->out_count & 0x7fff);
	taddr at = addr + 56 + (d->tflag & FAKE_TFLAG_UNCOMMON ? UNCOMMON_SIZE : 0);

	store(types, addr + 48, 2, d->count);
	store(types, addr + 50, 2, d->out_count);
	for (uint32_t i = 0; i < count; i++)
		store(types, at + 8 * i, 8, d->parameters[i]);
}

static uint32_t put_kind(struct fake_types *types, taddr addr, const struct fake_descriptor *d)
{
	const struct layout *l = types->layout;

	switch (d->kind) {
	case GO_KIND_ARRAY:
		fake_types_set(types, addr, l->array_type_elem, d->elem);
		fake_types_set(types, addr, l->array_type_len, d->length);
		return 72;
	case GO_KIND_CHAN:
		fake_types_set(types, addr, l->chan_type_elem, d->elem);
		fake_types_set(types, addr, l->chan_type_direction, d->direction);
		return 64;
	case GO_KIND_FUNC:
		put_func(types, addr, d);
		return 56;
	case GO_KIND_INTERFACE:
		put_methods(types, addr, d);
		return 80;
	case GO_KIND_MAP:
		fake_types_set(types, addr, l->map_type_key, d->key);
		fake_types_set(types, addr, l->map_type_elem, d->elem);
		store(types, addr + 64, 8, d->bucket);
		fake_types_set(types, addr, l->map_type_flags, d->map_flags);
		return l->map_type.size;
	case GO_KIND_POINTER:
	case GO_KIND_SLICE:
		store(types, addr + 48, 8, d->elem);
		return 56;
	case GO_KIND_STRUCT:
		put_fields(types, addr, d);
		return 80;
	default:
		return 48;
	}
}

taddr fake_types_add(struct fake_types *types, const struct fake_descriptor *d)
{
	const struct layout *l = types->layout;
	taddr addr = fake_types_room(types, 256 + 8 * (d->count + d->out_count % 64), d->made);
	uint32_t size = put_kind(types, addr, d);

	fake_types_set(types, addr, l->type_size, d->size);
	fake_types_set(types, addr, l->type_ptr_bytes, d->ptr_bytes);
	fake_types_set(types, addr, l->type_hash, d->hash);
	fake_types_set(types, addr, l->type_tflag, d->tflag);
	fake_types_set(types, addr, l->type_kind, d->kind);
	fake_types_set(types, addr, l->type_name, name_offset(types, d->name, d->made));
	if (d->tflag & FAKE_TFLAG_UNCOMMON)
		store(types, addr + size, 4,
		      d->package ? name_offset(types, d->package, d->made) : 0);
	return addr;
}

taddr fake_types_int(struct fake_types *types)
{
	return fake_types_add(
	    types, &(struct fake_descriptor){
		       .name = "int", .size = 8, .kind = GO_KIND_INT, .tflag = FAKE_TFLAG_NAMED });
}

taddr fake_types_named(struct fake_types *types, const char *name, const char *package)
{
	return fake_types_add(
	    types, &(struct fake_descriptor){ .name = name,
					      .package = package,
					      .size = 16,
					      .kind = GO_KIND_STRUCT,
					      .tflag = FAKE_TFLAG_NAMED | FAKE_TFLAG_UNCOMMON });
}

taddr fake_types_pointer(struct fake_types *types, const char *name, taddr elem)
{
	return fake_types_add(types, &(struct fake_descriptor){ .name = name,
								.size = 8,
								.ptr_bytes = 8,
								.kind = GO_KIND_POINTER,
								.tflag = FAKE_TFLAG_DIRECT,
								.elem = elem });
}

taddr fake_types_itab(struct fake_types *types, taddr interface, taddr type, uint32_t hash)
{
	taddr itab = fake_types_room(types, 32, false);

	store(types, itab, 8, interface);
	store(types, itab + 8, 8, type);
	store(types, itab + 16, 4, hash);
	return itab;
}
