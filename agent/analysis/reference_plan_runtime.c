/*
 * Plans of what the runtime and the standard library make maps, channels, closures, pools and the
 * like of: blocks whose type says less than there is to know. runtime/map.go (to go1.23),
 * internal/runtime/maps, runtime/chan.go, sync/pool.go, sync/map.go (to go1.23), sync/atomic.
 */
#include <stdio.h>
#include <string.h>

#include "agent/analysis/reference_plan_private.h"
#include "agent/goruntime/layout.h"

static const struct go_type *type_at(const struct plan_table *table, type_id id)
{
	return go_type_at(table->types, id);
}

static struct error *add_block(struct plan_table *table, uint64_t offset, enum shape_kind kind,
			       type_id type)
{
	return plan_add_slot(table, (struct plan_slot){ .word = (uint32_t)(offset / 8),
							.kind = SLOT_POINTER,
							.step = STEP_NONE,
							.shape = shape_of(kind, type) });
}

/* A block that another one of its container leads to, if this runtime has the field. */
static struct error *add_block_at(struct plan_table *table, struct layout_field field,
				  enum shape_kind kind, type_id type)
{
	return field.size == 8 ? add_block(table, field.offset, kind, type) : NULL;
}

static void set_size(struct plan_table *table, uint64_t bytes)
{
	table->building.words = (bytes + 7) / 8;
}

/* ---- maps ---- */

enum shape_kind plan_map_kind(const struct plan_table *table)
{
	return layout_has(table->layout, swiss_map) ? SHAPE_SWISS_MAP : SHAPE_HMAP;
}

/* A key or value in its place, or a pointer to one that is too large for it. */
static struct error *add_entry_part(struct plan_table *table, uint64_t offset, const char *name,
				    type_id type, bool is_indirect)
{
	uint32_t step;
	struct error *err = plan_frame(table, STEP_NONE, name, type, &step);

	if (err)
		return err;
	return is_indirect ? plan_add_pointer(table, offset, type, step)
			   : plan_add_type(table, offset, type, step, true, 1);
}

static struct error *add_key(struct plan_table *table, uint64_t offset, const struct go_type *map)
{
	return add_entry_part(table, offset, "$mapkey", map->key, map->indirect_key);
}

static struct error *add_value(struct plan_table *table, uint64_t offset, const struct go_type *map)
{
	return add_entry_part(table, offset, "$mapval", map->elem, map->indirect_elem);
}

typedef struct error *(*add_part)(struct plan_table *table, uint64_t offset,
				  const struct go_type *map);

enum { ENTRIES_MAX = 8 }; /* of a bucket or group: internal/abi/map_*.go, the same since go1.15 */

static struct error *add_parts(struct plan_table *table, const struct go_field *field,
			       const struct go_type *map, add_part add)
{
	const struct go_type *array = type_at(table, field->type);
	uint64_t size = type_at(table, array->elem)->size;
	struct error *err = NULL;

	for (uint64_t i = 0; !err && i < array->length && i < ENTRIES_MAX; i++)
		err = add(table, field->offset + i * size, map);
	return err;
}

/* Key and value side by side: a slot of a group. */
static struct error *add_slot_parts(struct plan_table *table, uint64_t offset,
				    const struct go_type *slot, const struct go_type *map)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < slot->field_count; i++) {
		const struct go_field *field = &slot->fields[i];

		if (!strcmp(field->name, "key"))
			err = add_key(table, offset + field->offset, map);
		else if (!strcmp(field->name, "elem"))
			err = add_value(table, offset + field->offset, map);
	}
	return err;
}

static struct error *add_slots(struct plan_table *table, const struct go_field *field,
			       const struct go_type *map)
{
	const struct go_type *array = type_at(table, field->type);
	const struct go_type *slot = type_at(table, array->elem);
	struct error *err = NULL;

	for (uint64_t i = 0; !err && i < array->length && i < ENTRIES_MAX; i++)
		err = add_slot_parts(table, field->offset + i * slot->size, slot, map);
	return err;
}

static struct error *add_bucket_field(struct plan_table *table, const struct go_field *field,
				      type_id id)
{
	const struct go_type *map = type_at(table, id);

	if (!strcmp(field->name, "keys"))
		return add_parts(table, field, map, add_key);
	if (!strcmp(field->name, "elems") || !strcmp(field->name, "values"))
		return add_parts(table, field, map, add_value);
	if (!strcmp(field->name, "slots"))
		return add_slots(table, field, map);
	if (!strcmp(field->name, "overflow"))
		return add_block(table, field->offset, SHAPE_BUCKETS, id);
	return NULL;
}

/* A bucket, or a group of slots. What was deleted has been cleared. */
static struct error *build_bucket(struct plan_table *table, type_id map)
{
	const struct go_type *bucket = type_at(table, type_at(table, map)->bucket);
	struct error *err = NULL;

	set_size(table, bucket->size);
	for (uint32_t i = 0; !err && i < bucket->field_count; i++)
		err = add_bucket_field(table, &bucket->fields[i], map);
	return err;
}

static struct error *build_hmap(struct plan_table *table, type_id map)
{
	const struct layout *layout = table->layout;
	struct error *err;

	set_size(table, layout->hmap.size);
	err = add_block_at(table, layout->hmap_buckets, SHAPE_BUCKETS, map);
	if (!err)
		err = add_block_at(table, layout->hmap_old_buckets, SHAPE_BUCKETS, map);
	if (!err)
		err = add_block_at(table, layout->hmap_extra, SHAPE_MAP_EXTRA, map);
	return err;
}

static struct error *build_map_extra(struct plan_table *table, type_id map)
{
	const struct layout *layout = table->layout;
	struct error *err;

	set_size(table, layout->map_extra.size);
	err = add_block_at(table, layout->map_extra_overflow, SHAPE_OVERFLOW_LIST, map);
	if (!err)
		err = add_block_at(table, layout->map_extra_old_overflow, SHAPE_OVERFLOW_LIST, map);
	if (!err)
		err = add_block_at(table, layout->map_extra_next_overflow, SHAPE_BUCKETS, map);
	return err;
}

static struct error *build_pointers(struct plan_table *table, uint64_t words, enum shape_kind kind,
				    type_id map)
{
	set_size(table, words * 8);
	return add_block(table, 0, kind, map);
}

/* A map without a directory has a single group; which of the two it is the length says. */
static struct error *build_swiss_map(struct plan_table *table, type_id map)
{
	struct layout_field directory = table->layout->swiss_map_directory;
	struct layout_field length = table->layout->swiss_map_directory_length;

	set_size(table, table->layout->swiss_map.size);
	if (directory.size != 8 || length.offset != directory.offset + 8)
		return NULL;
	return plan_add_slot(table,
			     (struct plan_slot){ .word = directory.offset / 8,
						 .kind = SLOT_MAP,
						 .step = STEP_NONE,
						 .shape = shape_of(SHAPE_SWISS_GROUPS, map) });
}

static struct error *build_swiss_table(struct plan_table *table, type_id map)
{
	set_size(table, table->layout->swiss_table.size);
	return add_block_at(table, table->layout->swiss_table_groups, SHAPE_SWISS_GROUPS, map);
}

/* ---- channels ---- */

static struct error *add_channel_field(struct plan_table *table, const struct go_field *field,
				       type_id channel)
{
	uint32_t step;
	struct error *err;

	if (field->offset == table->layout->hchan_buffer.offset)
		return add_block(table, field->offset, SHAPE_CHANNEL_BUFFER, channel);
	if (!type_at(table, field->type)->ptr_bytes)
		return NULL;
	err = plan_frame(table, STEP_NONE, field->name, field->type, &step);
	return err ? err : plan_add_type(table, field->offset, field->type, step, true, 1);
}

static struct error *build_channel(struct plan_table *table, type_id channel)
{
	const struct go_type *hchan;
	type_id id;
	struct error *err = go_types_by_name(table->types, "runtime.hchan", &id);

	if (err)
		return err;
	set_size(table, table->layout->hchan.size);
	hchan = type_at(table, id);
	if (hchan->kind != GO_KIND_STRUCT)
		return add_block_at(table, table->layout->hchan_buffer, SHAPE_CHANNEL_BUFFER,
				    channel);
	for (uint32_t i = 0; !err && i < hchan->field_count; i++)
		err = add_channel_field(table, &hchan->fields[i], channel);
	return err;
}

static struct error *build_channel_buffer(struct plan_table *table, type_id channel)
{
	type_id elem = type_at(table, channel)->elem;
	uint32_t step;
	struct error *err = plan_frame(table, STEP_NONE, "$chan", elem, &step);

	set_size(table, type_at(table, elem)->size);
	return err ? err : plan_add_type(table, 0, elem, step, true, 1);
}

/* ---- closures ---- */

enum { CAPTURE_NAME_SIZE = 512 };

static struct error *build_closure(struct plan_table *table, type_id id)
{
	const struct go_type *type = type_at(table, id);
	struct error *err = NULL;

	set_size(table, type->size);
	for (uint32_t i = 0; !err && i < type->field_count; i++) {
		const struct go_field *field = &type->fields[i];
		char name[CAPTURE_NAME_SIZE];
		uint32_t step;

		if (!type_at(table, field->type)->ptr_bytes)
			continue;
		snprintf(name, sizeof(name), "$closure.%s", field->name);
		err = plan_frame(table, STEP_NONE, name, field->type, &step);
		if (!err)
			err = plan_add_type(table, field->offset, field->type, step, true, 1);
	}
	return err;
}

/* ---- nodes of internal/sync.HashTrieMap ---- */

/*
 * Their types are in the program, but nothing leads to them from that of the map, and DWARF may
 * have them for the shapes of keys and values alone. entry: node, overflow, key, value; indirect:
 * node, dead, mu, parent, children. internal/concurrent/hashtriemap.go (go1.23), internal/sync.
 */
enum {
	TRIE_OVERFLOW = 8,
	TRIE_KEY = 16,
	TRIE_VALUE = 32,
	TRIE_ENTRY_SIZE = 48,
	TRIE_CHILDREN = 24,
	TRIE_CHILD_COUNT = 16,
	TRIE_INNER_SIZE = TRIE_CHILDREN + TRIE_CHILD_COUNT * 8,
};

static struct error *add_interface_named(struct plan_table *table, uint64_t offset,
					 const char *name)
{
	uint32_t step;
	struct error *err = step_table_add(table->steps, STEP_NONE, name, "interface {}", &step);

	return err ? err : plan_add_interface(table, offset, false, step);
}

/* Of sync.Map: keys and values are interfaces. Of others' only the size of both is known. */
static struct error *build_trie_entry(struct plan_table *table, type_id node)
{
	const char *name = type_at(table, node)->name;
	struct error *err = add_block(table, TRIE_OVERFLOW, SHAPE_TRIE_NODE, node);

	set_size(table, TRIE_KEY);
	if (err || !strstr(name, "node[interface {},interface {}]"))
		return err;
	set_size(table, TRIE_ENTRY_SIZE);
	err = add_interface_named(table, TRIE_KEY, "key");
	return err ? err : add_interface_named(table, TRIE_VALUE, "value");
}

static struct error *build_trie_inner(struct plan_table *table, type_id node)
{
	struct error *err = NULL;

	set_size(table, TRIE_INNER_SIZE);
	for (uint64_t i = 0; i < TRIE_CHILD_COUNT && !err; i++)
		err = add_block(table, TRIE_CHILDREN + i * 8, SHAPE_TRIE_NODE, node);
	return err;
}

struct error *plan_build_runtime(struct plan_table *table, struct plan_key key)
{
	type_id type = shape_type(key.shape);

	switch (shape_kind(key.shape)) {
	case SHAPE_CLOSURE:
		return build_closure(table, type);
	case SHAPE_HMAP:
		return build_hmap(table, type);
	case SHAPE_BUCKETS:
	case SHAPE_SWISS_GROUPS:
		return build_bucket(table, type);
	case SHAPE_MAP_EXTRA:
		return build_map_extra(table, type);
	case SHAPE_OVERFLOW_LIST:
		return build_pointers(table, 3, SHAPE_OVERFLOW_ARRAY, type);
	case SHAPE_OVERFLOW_ARRAY:
		return build_pointers(table, 1, SHAPE_BUCKETS, type);
	case SHAPE_SWISS_MAP:
		return build_swiss_map(table, type);
	case SHAPE_SWISS_DIRECTORY:
		return build_pointers(table, 1, SHAPE_SWISS_TABLE, type);
	case SHAPE_SWISS_TABLE:
		return build_swiss_table(table, type);
	case SHAPE_CHANNEL:
		return build_channel(table, type);
	case SHAPE_CHANNEL_BUFFER:
		return build_channel_buffer(table, type);
	case SHAPE_TRIE_ENTRY:
		return build_trie_entry(table, type);
	case SHAPE_TRIE_INNER:
		return build_trie_inner(table, type);
	default:
		return NULL;
	}
}

/* ---- structs and fields that are more than they say ---- */

/* Interfaces as the standard library and the runtime take them apart. */
static const struct {
	const char *name;
	bool has_itab;
} interfaces[] = {
	{ "sync.eface", false },
	{ "runtime.eface", false },
	{ "runtime.iface", true },
};

struct error *plan_add_known_struct(struct plan_table *table, uint64_t offset,
				    const struct go_type *type, uint32_t step, bool *ret_is_done)
{
	*ret_is_done = false;
	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		if (strcmp(type->name, interfaces[i].name))
			continue;
		*ret_is_done = true;
		return plan_add_interface(table, offset, interfaces[i].has_itab, step);
	}
	return NULL;
}

/* Fields of type unsafe.Pointer whose type the library knows. */
static const struct known_field {
	const char *parent, *field;
	const char *type; /* of what it points to */
	bool is_array;    /* of as many as there is room for */
} known_fields[] = {
	{ "sync.Pool", "local", "sync.poolLocal", true },
	{ "sync.Pool", "victim", "sync.poolLocal", true },
	{ "sync.entry", "p", "interface {}", false },
	{ "runtime.g", "labels", "runtime/pprof.labelMap", false },
	{ "runtime.g", "labels", "internal/runtime/pprof/label.Set", false },
};

static struct error *add_known(struct plan_table *table, uint64_t offset,
			       const struct known_field *known, const struct go_field *field,
			       uint32_t step, bool *ret_is_done)
{
	type_id type;
	struct error *err = go_types_by_name(table->types, known->type, &type);

	if (err || type == TYPE_UNKNOWN)
		return err;
	*ret_is_done = true;
	err = plan_frame(table, step, field->name, field->type, &step);
	if (err)
		return err;
	return plan_add_slot(
	    table, (struct plan_slot){
		       .word = (uint32_t)(offset / 8),
		       .kind = SLOT_POINTER,
		       .step = step,
		       .shape = shape_of(known->is_array ? SHAPE_ARRAY : SHAPE_VALUE, type) });
}

/* atomic.Pointer[T] has a field of type [0]*T to say what it points to. */
static bool find_atomic(const struct plan_table *table, const struct go_type *parent, type_id *ret)
{
	static const char *const names[] = { "sync/atomic.Pointer[",
					     "internal/runtime/atomic.Pointer[" };
	bool is_atomic = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_atomic |= !strncmp(parent->name, names[i], strlen(names[i]));
	for (uint32_t i = 0; is_atomic && i < parent->field_count; i++) {
		const struct go_type *type = type_at(table, parent->fields[i].type);

		if (type->kind != GO_KIND_ARRAY || type->length ||
		    type_at(table, type->elem)->kind != GO_KIND_POINTER)
			continue;
		*ret = type->elem;
		return true;
	}
	return false;
}

static struct error *add_atomic(struct plan_table *table, uint64_t offset,
				const struct go_type *parent, const struct go_field *field,
				uint32_t step, bool *ret_is_done)
{
	type_id pointer;
	struct error *err;

	if (!find_atomic(table, parent, &pointer))
		return NULL;
	*ret_is_done = true;
	err = plan_frame(table, step, field->name, pointer, &step);
	return err ? err : plan_add_type(table, offset, pointer, step, true, 1);
}

struct error *plan_add_known_field(struct plan_table *table, uint64_t offset,
				   const struct go_type *parent, const struct go_field *field,
				   uint32_t step, bool *ret_is_done)
{
	*ret_is_done = false;
	if (type_at(table, field->type)->kind != GO_KIND_UNSAFE_POINTER)
		return NULL;
	for (size_t i = 0; i < sizeof(known_fields) / sizeof(known_fields[0]); i++) {
		const struct known_field *known = &known_fields[i];
		struct error *err;

		if (strcmp(parent->name, known->parent) || strcmp(field->name, known->field))
			continue;
		err = add_known(table, offset, known, field, step, ret_is_done);
		if (err || *ret_is_done)
			return err;
	}
	return add_atomic(table, offset, parent, field, step, ret_is_done);
}
