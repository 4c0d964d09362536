/*
 * A plan is put together by looking into a type as deep as it goes by value. Containers of the
 * runtime are in reference_plan_runtime.c.
 */
#include "agent/analysis/reference_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/reference_plan_private.h"
#include "agent/analysis/reference_sudog.h"
#include "agent/analysis/reference_trie.h"

enum { BUCKETS_MIN = 1024 };

static const struct plan empty_plan = { 0 };

static uint64_t hash(struct plan_key key)
{
	uint64_t h = ((uint64_t)key.shape << 32 | key.prefix) * UINT64_C(0x9e3779b97f4a7c15);

	return (h ^ h >> 31) + key.is_named;
}

static bool is_key(const struct plan_entry *entry, struct plan_key key)
{
	return entry->key.shape == key.shape && entry->key.prefix == key.prefix &&
	       entry->key.is_named == key.is_named;
}

static struct plan_entry *find_entry(const struct plan_table *table, struct plan_key key)
{
	uint32_t mask = table->capacity - 1, i = (uint32_t)hash(key) & mask;

	while (table->entries[i].plan && !is_key(&table->entries[i], key))
		i = (i + 1) & mask;
	return &table->entries[i];
}

static struct error *grow(struct plan_table *table)
{
	struct plan_entry *old = table->entries;
	uint32_t old_capacity = table->capacity;
	uint32_t capacity = old_capacity ? old_capacity * 2 : BUCKETS_MIN;
	struct plan_entry *entries = calloc(capacity, sizeof(*entries));

	if (!entries)
		return &error_nomem;
	table->entries = entries;
	table->capacity = capacity;
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i].plan)
			*find_entry(table, old[i].key) = old[i];
	free(old);
	return NULL;
}

struct error *plan_table_new(const struct layout *layout, struct go_types *types,
			     struct step_table *steps, struct plan_table **ret)
{
	struct plan_table *table scoped(plan_table_freep) = calloc(1, sizeof(*table));
	struct error *err;

	if (!table)
		return &error_nomem;
	pthread_mutex_init(&table->lock, NULL);
	table->layout = layout;
	table->types = types;
	table->steps = steps;
	err = grow(table);
	if (err)
		return err;
	*ret = take(table);
	return NULL;
}

void plan_table_free(struct plan_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->capacity; i++)
		if (table->entries[i].plan != &empty_plan)
			free((void *)(uintptr_t)table->entries[i].plan);
	free(table->entries);
	free(table->building.slots);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

/* ---- putting a plan together ---- */

struct error *plan_add_slot(struct plan_table *table, struct plan_slot slot)
{
	struct plan_building *b = &table->building;

	if (b->count == PLAN_SLOTS_MAX)
		return NULL;
	if (b->count == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 64;
		struct plan_slot *slots = realloc(b->slots, capacity * sizeof(*slots));

		if (!slots)
			return &error_nomem;
		b->slots = slots;
		b->capacity = capacity;
	}
	b->slots[b->count++] = slot;
	return NULL;
}

struct error *plan_frame(struct plan_table *table, uint32_t step, const char *name, type_id type,
			 uint32_t *ret)
{
	return step_table_add(table->steps, step, name, go_type_at(table->types, type)->name, ret);
}

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool is_timer(const struct go_type *type)
{
	return type->kind == GO_KIND_STRUCT && !strcmp(type->name, "runtime.timer");
}

static enum shape_kind shape_kind_of(const struct go_type *type)
{
	if (trie_is_node(type))
		return SHAPE_TRIE_NODE;
	return sudog_is(type) ? SHAPE_SUDOG : SHAPE_VALUE;
}

struct error *plan_add_pointer(struct plan_table *table, uint64_t offset, type_id elem,
			       uint32_t step)
{
	const struct go_type *type = go_type_at(table->types, elem);
	struct plan_slot slot = { .word = (uint32_t)(offset / 8), .step = step };
	type_id node;
	struct error *err;

	if (type->kind == GO_KIND_INVALID)
		return NULL;
	slot.kind = is_timer(type) ? SLOT_TIMER : SLOT_POINTER;
	slot.shape = shape_of(shape_kind_of(type), elem);
	err = trie_node_of_inner(table->types, elem, &node);
	if (node != TYPE_UNKNOWN)
		slot.shape = shape_of(SHAPE_TRIE_INNER, node);
	return err ? err : plan_add_slot(table, slot);
}

static struct error *add_shaped(struct plan_table *table, uint64_t offset, enum shape_kind kind,
				type_id type, uint32_t step)
{
	return plan_add_slot(table, (struct plan_slot){ .word = (uint32_t)(offset / 8),
							.kind = SLOT_POINTER,
							.step = step,
							.shape = shape_of(kind, type) });
}

static struct error *add_slice(struct plan_table *table, uint64_t offset, type_id elem,
			       uint32_t step)
{
	return plan_add_slot(
	    table, (struct plan_slot){ .word = (uint32_t)(offset / 8),
				       .kind = SLOT_SLICE,
				       .step = step,
				       .shape = shape_of(SHAPE_ARRAY, elem),
				       .elem_size = go_type_at(table->types, elem)->size });
}

static struct error *add_string(struct plan_table *table, uint64_t offset, type_id type,
				uint32_t step)
{
	return plan_add_slot(table, (struct plan_slot){ .word = (uint32_t)(offset / 8),
							.kind = SLOT_STRING,
							.step = step,
							.shape = shape_of(SHAPE_VALUE, type) });
}

struct error *plan_add_interface(struct plan_table *table, uint64_t offset, bool has_itab,
				 uint32_t step)
{
	return plan_add_slot(table, (struct plan_slot){ .word = (uint32_t)(offset / 8 + 1),
							.kind = has_itab ? SLOT_IFACE : SLOT_EFACE,
							.step = step });
}

static struct error *add_array(struct plan_table *table, uint64_t offset,
			       const struct go_type *type, uint32_t step, unsigned depth)
{
	const struct go_type *elem = go_type_at(table->types, type->elem);

	if (!elem->ptr_bytes || !type->length)
		return NULL;
	if (type->length > PLAN_ARRAY_INLINE)
		return plan_add_slot(table,
				     (struct plan_slot){ .word = (uint32_t)(offset / 8),
							 .kind = SLOT_ARRAY,
							 .step = step,
							 .shape = shape_of(SHAPE_ARRAY, type->elem),
							 .count = (uint32_t)type->length,
							 .elem_size = elem->size });
	for (uint64_t i = 0; i < type->length; i++) {
		unsigned class = element_class(i, type->length);
		uint32_t element;
		struct error *err =
		    plan_frame(table, step, plan_element_names[class], type->elem, &element);

		if (!err)
			err = plan_add_type(table, offset + i * elem->size, type->elem, element,
					    true, depth + 1);
		if (err)
			return err;
	}
	return NULL;
}

static struct error *add_field(struct plan_table *table, uint64_t offset,
			       const struct go_type *parent, const struct go_field *field,
			       uint32_t step, unsigned depth)
{
	bool is_done;
	struct error *err;

	if (!go_type_at(table->types, field->type)->ptr_bytes)
		return NULL;
	err = plan_add_known_field(table, offset + field->offset, parent, field, step, &is_done);
	if (err || is_done)
		return err;
	err = plan_frame(table, step, field->name, field->type, &step);
	return err ? err
		   : plan_add_type(table, offset + field->offset, field->type, step, true,
				   depth + 1);
}

static struct error *add_struct(struct plan_table *table, uint64_t offset, type_id id,
				uint32_t step, unsigned depth)
{
	const struct go_type *type = go_type_at(table->types, id);
	bool is_done;
	struct error *err = plan_add_known_struct(table, offset, type, step, &is_done);

	for (uint32_t i = 0; !err && !is_done && i < type->field_count; i++)
		err = add_field(table, offset, type, &type->fields[i], step, depth);
	return err;
}

const char *const plan_element_names[ELEMENT_CLASSES] = {
	"[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]", "[8]", "[9]", "[10+]", "[len+]",
};

/* What is not led to by itself. */
static struct error *add_word(struct plan_table *table, uint64_t offset, type_id id, uint32_t step)
{
	const struct go_type *type = go_type_at(table->types, id);

	switch (type->kind) {
	case GO_KIND_POINTER:
		if (begins_with(type->name, "go.shape."))
			return NULL; /* of a generic function: any pointer at all */
		return plan_add_pointer(table, offset, type->elem, step);
	case GO_KIND_SLICE:
		return add_slice(table, offset, type->elem, step);
	case GO_KIND_STRING:
		return add_string(table, offset, id, step);
	case GO_KIND_INTERFACE:
		return plan_add_interface(table, offset, type->has_methods, step);
	case GO_KIND_FUNC:
		return add_shaped(table, offset, SHAPE_FUNC, id, step);
	case GO_KIND_CHAN:
		return add_shaped(table, offset, SHAPE_CHANNEL, id, step);
	case GO_KIND_MAP:
		return add_shaped(table, offset, plan_map_kind(table), id, step);
	default:
		return NULL; /* an unsafe.Pointer says nothing */
	}
}

struct error *plan_add_type(struct plan_table *table, uint64_t offset, type_id id, uint32_t step,
			    bool is_named, unsigned depth)
{
	const struct go_type *type = go_type_at(table->types, id);
	struct error *err = NULL;

	if (!type->ptr_bytes || offset % 8 || offset / 8 > UINT32_MAX - 2 || depth > PLAN_DEPTH_MAX)
		return NULL;
	if (type->kind == GO_KIND_STRUCT)
		return add_struct(table, offset, id, step, depth);
	if (type->kind == GO_KIND_ARRAY)
		return add_array(table, offset, type, step, depth);
	if (!is_named)
		err = plan_frame(table, step, "*", id, &step);
	return err ? err : add_word(table, offset, id, step);
}

/* ---- finding it ---- */

static struct error *build(struct plan_table *table, struct plan_key key)
{
	struct plan_building *b = &table->building;

	b->count = 0;
	b->words = 0;
	if (shape_kind(key.shape) != SHAPE_VALUE)
		return plan_build_runtime(table, key);
	b->words = (go_type_at(table->types, shape_type(key.shape))->size + 7) / 8;
	return plan_add_type(table, 0, shape_type(key.shape), key.prefix, key.is_named, 0);
}

/* Words of a slot from its own on; the word before an interface's data is never outside. */
static uint64_t slot_words(const struct plan_slot *slot)
{
	switch (slot->kind) {
	case SLOT_SLICE:
		return 3;
	case SLOT_STRING:
	case SLOT_MAP:
		return 2;
	default:
		return 1;
	}
}

/* What the target says of one type may contradict what it says of another. */
static void cut_outside(struct plan_building *b)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->count; i++)
		if (b->slots[i].word + slot_words(&b->slots[i]) <= b->words)
			b->slots[kept++] = b->slots[i];
	b->count = kept;
}

/* Words of an array in the period are all its. */
static uint64_t slot_end(const struct plan_slot *slot, uint64_t words)
{
	uint64_t end = slot->word + UINT64_C(1);

	if (slot->kind == SLOT_ARRAY)
		end = slot->word + slot->count * (slot->elem_size / 8);
	return end < words ? end : words;
}

static void index_words(struct plan *plan, uint8_t *by_word)
{
	memset(by_word, 0, plan->words);
	for (uint32_t i = 0; i < plan->slot_count; i++)
		for (uint64_t word = plan->slots[i].word;
		     word < slot_end(&plan->slots[i], plan->words); word++)
			by_word[word] = (uint8_t)(i + 1);
	plan->by_word = by_word;
}

static bool any_reads(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->slot_count; i++)
		if (plan_slot_reads(&plan->slots[i]))
			return true;
	return false;
}

static struct error *keep(struct plan_table *table, struct plan_key key, const struct plan **ret)
{
	struct plan_building *b = &table->building;
	bool by_word = b->words <= PLAN_BY_WORD_MAX && b->count <= PLAN_BY_WORD_MAX;
	size_t size;
	struct plan *plan;
	struct error *err = NULL;

	if (table->count >= table->capacity / 2)
		err = grow(table);
	if (err)
		return err;
	cut_outside(b);
	size = b->count * sizeof(struct plan_slot);
	*ret = &empty_plan;
	if (b->words && table->slot_count + b->count <= PLAN_ALL_SLOTS_MAX) {
		plan = malloc(sizeof(*plan) + size + (by_word ? b->words : 0));
		if (!plan)
			return &error_nomem;
		plan->words = b->words;
		plan->by_word = NULL;
		plan->slot_count = b->count;
		if (size)
			memcpy(plan->slots, b->slots, size);
		plan->reads = any_reads(plan);
		if (by_word)
			index_words(plan, (uint8_t *)plan->slots + size);
		table->slot_count += b->count + 4;
		*ret = plan;
	}
	*find_entry(table, key) = (struct plan_entry){ key, *ret };
	table->count++;
	return NULL;
}

static struct error *find_or_build(struct plan_table *table, struct plan_key key,
				   const struct plan **ret)
{
	const struct plan *plan = find_entry(table, key)->plan;
	struct error *err;

	if (plan) {
		*ret = plan;
		return NULL;
	}
	err = build(table, key);
	return err ? err : keep(table, key, ret);
}

struct error *plan_table_find(struct plan_table *table, shape_id shape, uint32_t prefix,
			      bool is_named, const struct plan **ret)
{
	struct plan_key key = { .shape = shape, .prefix = prefix, .is_named = is_named };
	struct error *err;

	pthread_mutex_lock(&table->lock);
	err = find_or_build(table, key, ret);
	pthread_mutex_unlock(&table->lock);
	return err;
}

struct error *plan_table_element(struct plan_table *table, type_id elem, uint32_t prefix,
				 unsigned class, const struct plan **ret)
{
	uint32_t step;
	struct error *err = plan_frame(table, prefix, plan_element_names[class], elem, &step);

	return err ? err : plan_table_find(table, shape_of(SHAPE_VALUE, elem), step, true, ret);
}
