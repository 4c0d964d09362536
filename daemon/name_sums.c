#include "daemon/name_sums.h"

#include <string.h>

#include "proto/base/checked.h"

void name_sums_init(struct name_sums *sums)
{
	*sums = (struct name_sums){ 0 };
	id_index_init(&sums->index);
}

void name_sums_fini(struct name_sums *sums)
{
	free(sums->sums);
	id_index_fini(&sums->index);
	*sums = (struct name_sums){ 0 };
}

struct wanted_name {
	const struct name_sums *sums;
	ProtobufCBinaryData name;
};

static bool is_same_name(const void *wanted, uint32_t id)
{
	const struct wanted_name *w = wanted;
	ProtobufCBinaryData have = w->sums->sums[id].name;

	return have.len == w->name.len &&
	       (have.len == 0 || memcmp(have.data, w->name.data, have.len) == 0);
}

static struct error *add_name(struct name_sums *sums, ProtobufCBinaryData name, uint64_t hash,
			      uint32_t *ret)
{
	struct error *err;

	if (sums->count == sums->capacity) {
		size_t capacity = sums->capacity ? sums->capacity * 2 : 64;
		struct name_sum *larger = realloc(sums->sums, capacity * sizeof(*larger));

		if (!larger)
			return &error_nomem;
		sums->sums = larger;
		sums->capacity = capacity;
	}
	err = id_index_add(&sums->index, hash, (uint32_t)sums->count);
	if (err)
		return err;
	*ret = (uint32_t)sums->count;
	sums->sums[sums->count++] = (struct name_sum){ .name = name };
	return NULL;
}

struct error *name_sums_add(struct name_sums *sums, ProtobufCBinaryData name, int64_t objects,
			    int64_t bytes)
{
	const struct wanted_name wanted = { sums, name };
	uint64_t hash = id_hash_bytes(sums->index.seed, name.data, name.len);
	uint32_t id = id_index_find(&sums->index, hash, is_same_name, &wanted);
	struct error *err = id == ID_NONE ? add_name(sums, name, hash, &id) : NULL;

	if (err)
		return err;
	sums->sums[id].objects = bounded_add(sums->sums[id].objects, objects);
	sums->sums[id].bytes = bounded_add(sums->sums[id].bytes, bytes);
	return NULL;
}

static int compare_names(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_sums(const void *a, const void *b)
{
	const struct name_sum *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->objects != y->objects)
		return x->objects > y->objects ? -1 : 1;
	return compare_names(x->name, y->name);
}

/* The index is of no use afterwards. */
void name_sums_sort(struct name_sums *sums)
{
	if (sums->count)
		qsort(sums->sums, sums->count, sizeof(*sums->sums), compare_sums);
	id_index_fini(&sums->index);
}

struct error *name_sums_roots(struct name_sums *sums, const struct chain_tree *tree)
{
	uint32_t *roots scoped(freep) = calloc(tree->node_count + 1, sizeof(*roots));
	struct error *err = roots ? NULL : &error_nomem;

	for (uint32_t i = 0; !err && i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];

		roots[i] = node->parent == ID_NONE ? i : roots[node->parent];
		if (chain_node_counts(node))
			err = name_sums_add(sums, tree->frames[tree->nodes[roots[i]].frame].name,
					    node->objects, node->bytes);
	}
	return err;
}

/* What has no type of its own is counted at its last typed step. */
static bool is_untyped(ProtobufCBinaryData frame)
{
	static const char name[] = "$sub_objects$";

	return frame.len == sizeof(name) - 1 && memcmp(frame.data, name, frame.len) == 0;
}

struct error *name_sums_types(struct name_sums *sums, const struct chain_tree *tree)
{
	static const char unknown[] = "(type not known)";
	struct error *err = NULL;

	for (size_t i = 0; !err && i < tree->node_count; i++) {
		const struct chain_node *node = &tree->nodes[i];
		ProtobufCBinaryData frame = tree->frames[node->frame].name;
		ProtobufCBinaryData type = frame_type(frame);

		if (is_untyped(frame) || type.len == frame.len)
			type = (ProtobufCBinaryData){ .len = sizeof(unknown) - 1,
						      .data = (uint8_t *)(uintptr_t)unknown };
		if (chain_node_counts(node))
			err = name_sums_add(sums, type, node->objects, node->bytes);
	}
	return err;
}
