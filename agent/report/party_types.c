#include "agent/report/party_types.h"

#include <stdlib.h>

/* An empty cell has no objects. */
struct party_cell {
	uint32_t party;
	struct object_type type;
	struct type_count count;
};

enum { ROOM_FIRST = 1024 };

void party_types_fini(struct party_types *types)
{
	type_tally_fini(&types->all);
	free(types->cells);
}

static size_t hash(uint32_t party, struct object_type type)
{
	uint64_t key = (uint64_t)party << 32 ^ (uint64_t)type.type << 1 ^ type.is_array;

	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20);
}

static struct party_cell *find(struct party_cell *cells, size_t room, uint32_t party,
			       struct object_type type)
{
	size_t i = hash(party, type) & (room - 1);

	while (cells[i].count.objects &&
	       (cells[i].party != party || cells[i].type.type != type.type ||
		cells[i].type.is_array != type.is_array))
		i = (i + 1) & (room - 1);
	return &cells[i];
}

static struct error *grow(struct party_types *types)
{
	size_t room = types->room ? types->room * 2 : ROOM_FIRST;
	struct party_cell *cells = calloc(room, sizeof(*cells));

	if (!cells)
		return &error_nomem;
	for (size_t i = 0; i < types->room; i++)
		if (types->cells[i].count.objects)
			*find(cells, room, types->cells[i].party, types->cells[i].type) =
			    types->cells[i];
	free(types->cells);
	types->cells = cells;
	types->room = room;
	return NULL;
}

struct error *party_types_add(struct party_types *types, uint32_t party, struct object_type type,
			      uint64_t bytes)
{
	struct party_cell *cell;
	struct error *err = NULL;

	if (type.type == TYPE_UNKNOWN)
		return NULL;
	if (types->used * 2 >= types->room)
		err = grow(types);
	if (!err)
		err = type_tally_add(&types->all, type, 1, bytes);
	if (err)
		return err;
	cell = find(types->cells, types->room, party, type);
	types->used += !cell->count.objects;
	cell->party = party;
	cell->type = type;
	cell->count.objects++;
	cell->count.bytes += bytes;
	return NULL;
}

static int by_row(const void *a, const void *b)
{
	const struct party_type *one = a, *other = b;

	if (one->party != other->party)
		return one->party < other->party ? -1 : 1;
	return (one->row > other->row) - (one->row < other->row);
}

static int by_size(const void *a, const void *b)
{
	const struct party_type *one = a, *other = b;

	if (one->party == other->party && one->count.bytes != other->count.bytes)
		return one->count.bytes > other->count.bytes ? -1 : 1;
	return by_row(a, b);
}

/* Puts neighbours together that are of one party and row, and returns how many are left. */
static size_t join(struct party_type *list, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept && by_row(&list[kept - 1], &list[i]) == 0) {
			list[kept - 1].count.objects += list[i].count.objects;
			list[kept - 1].count.bytes += list[i].count.bytes;
		} else {
			list[kept++] = list[i];
		}
	}
	return kept;
}

static size_t collect(const struct party_types *types, const uint32_t *found,
		      struct party_type *list)
{
	size_t count = 0;

	for (size_t i = 0; i < types->room; i++) {
		const struct party_cell *cell = &types->cells[i];

		if (cell->count.objects)
			list[count++] = (struct party_type){
				.party = cell->party,
				.row = type_tally_row(&types->all, found, cell->type),
				.count = cell->count,
			};
	}
	return count;
}

struct error *party_types_list(const struct party_types *types, const struct go_types *go_types,
			       Goheapd__TypeRow *const *rows, size_t row_count,
			       struct party_type **ret, size_t *ret_count)
{
	struct party_type *list scoped(freep) = calloc(types->used + 1, sizeof(*list));
	uint32_t *found scoped(freep) = NULL;
	struct error *err =
	    list ? type_tally_find_rows(&types->all, go_types, rows, row_count, &found)
		 : &error_nomem;
	size_t count;

	if (err)
		return err;
	count = collect(types, found, list);
	qsort(list, count, sizeof(*list), by_row);
	count = join(list, count);
	qsort(list, count, sizeof(*list), by_size);
	*ret = take(list);
	*ret_count = count;
	return NULL;
}
