/*
 * Types. Go writes a typedef for each named type beside what it stands for, which has the same
 * name; typedefs with a kind are types themselves (maps, channels, interfaces), and what they stand
 * for is how the runtime represents them.
 */
#include <dwarf.h>

#include "agent/binary/type_index_builder.h"
#include "agent/binary/type_index_kind.h"

enum { WORD = 8 };

/*
 * Of what has none: unsafe.Pointer, and types that the linker makes up, such as those of maps'
 * buckets.
 */
static uint8_t kind_of_tag(Dwarf_Half tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return KIND_STRUCT;
	case DW_TAG_array_type:
		return KIND_ARRAY;
	case DW_TAG_pointer_type:
		return KIND_POINTER;
	case DW_TAG_subroutine_type:
		return KIND_FUNC;
	default:
		return 0;
	}
}

static uint8_t kind_of(const struct dwarf_facts *facts)
{
	if (facts->tag == DW_TAG_pointer_type && !facts->type)
		return KIND_UNSAFE_POINTER;
	return facts->kind && facts->kind <= KIND_UNSAFE_POINTER ? (uint8_t)facts->kind
								 : kind_of_tag(facts->tag);
}

static bool is_type(Dwarf_Half tag)
{
	return kind_of_tag(tag) || tag == DW_TAG_base_type || tag == DW_TAG_typedef;
}

/* Types without a size are words, but for interfaces. */
static uint64_t size_of(const struct dwarf_facts *facts)
{
	if (facts->has_size)
		return facts->size;
	return facts->kind == KIND_INTERFACE ? 2 * WORD : WORD;
}

static void take_references(const struct dwarf_facts *facts, struct type_record *record)
{
	record->elem = (uint32_t)facts->elem;
	record->key = (uint32_t)facts->key;
	if (facts->tag == DW_TAG_typedef)
		record->representation = (uint32_t)facts->type;
	else if (facts->tag == DW_TAG_array_type || facts->tag == DW_TAG_pointer_type)
		record->elem = (uint32_t)facts->type;
}

static struct error *add_alias(struct type_index_builder *b, const struct dwarf_facts *facts)
{
	const struct built_alias alias = { (uint32_t)facts->offset, (uint32_t)facts->type };

	return built_list_add(&b->aliases, &alias);
}

struct error *builder_add_type(struct type_index_builder *b, const struct dwarf_facts *facts)
{
	struct built_type type = { .die = (uint32_t)facts->offset };
	struct type_record *record = &type.record;
	struct error *err;

	if (!is_type(facts->tag))
		return NULL;
	if (facts->tag == DW_TAG_typedef && !facts->kind)
		return add_alias(b, facts);
	record->kind = kind_of(facts);
	record->size = size_of(facts);
	record->descriptor = facts->runtime_type;
	record->first_field = built_list_count(&b->fields);
	take_references(facts, record);
	err = builder_name(b, facts->name, &record->name);
	return err ? err : built_list_add(&b->types, &type);
}

static struct type_record *last_type(struct type_index_builder *b)
{
	struct built_type *type = built_list_at(&b->types, built_list_count(&b->types) - 1);

	return &type->record;
}

struct error *builder_add_field(struct type_index_builder *b, const struct dwarf_facts *facts)
{
	struct field_record field = { .type = (uint32_t)facts->type,
				      .offset = facts->member_offset };
	struct error *err;

	if (last_type(b)->kind != KIND_STRUCT)
		return NULL;
	err = builder_name(b, facts->name, &field.name);
	last_type(b)->field_count++;
	return err ? err : built_list_add(&b->fields, &field);
}

void builder_set_length(struct type_index_builder *b, uint64_t length)
{
	last_type(b)->length = length;
}
