#include "agent/report/type_tally.h"

#include <stdlib.h>
#include <string.h>

#include "agent/report/message.h"

enum { ROOM_FIRST = 1024 };

void type_tally_fini(struct type_tally *tally)
{
	free(tally->counts);
}

static size_t place_of(struct object_type type)
{
	return 2 * (size_t)type.type + type.is_array;
}

static struct error *make_room(struct type_tally *tally, size_t place)
{
	size_t room = tally->room ? tally->room : ROOM_FIRST;
	struct type_count *grown;

	while (room <= place)
		room *= 2;
	grown = realloc(tally->counts, room * sizeof(*grown));
	if (!grown)
		return &error_nomem;
	memset(grown + tally->room, 0, (room - tally->room) * sizeof(*grown));
	tally->counts = grown;
	tally->room = room;
	return NULL;
}

static void count(struct type_count *to, uint64_t objects, uint64_t bytes)
{
	to->objects += objects;
	to->bytes += bytes;
}

static struct error *add_at(struct type_tally *tally, size_t place, uint64_t objects,
			    uint64_t bytes)
{
	struct error *err = place < tally->room ? NULL : make_room(tally, place);

	if (!err)
		count(&tally->counts[place], objects, bytes);
	return err;
}

struct error *type_tally_add(struct type_tally *tally, struct object_type type, uint64_t objects,
			     uint64_t bytes)
{
	if (type.type == TYPE_UNKNOWN) {
		count(&tally->unknown, objects, bytes);
		return NULL;
	}
	return add_at(tally, place_of(type), objects, bytes);
}

struct error *type_tally_add_all(struct type_tally *tally, const struct type_tally *other)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < other->room; i++)
		if (other->counts[i].objects)
			err = add_at(tally, i, other->counts[i].objects, other->counts[i].bytes);
	count(&tally->unknown, other->unknown.objects, other->unknown.bytes);
	return err;
}

/* ---- rows ---- */

static struct error *row_new(const struct go_types *types, size_t place,
			     const struct type_count *counted, Goheapd__TypeRow **ret)
{
	struct object_type type = { .type = (type_id)(place / 2), .is_array = place % 2 };
	Goheapd__TypeRow *row = malloc(sizeof(*row));
	struct error *err;

	if (!row)
		return &error_nomem;
	goheapd__type_row__init(row);
	row->objects = counted->objects;
	row->bytes = counted->bytes;
	err = object_type_name(types, type, &row->type);
	if (err)
		free(row);
	else
		*ret = row;
	return err;
}

static struct error *append_rows(const struct type_tally *tally, const struct go_types *types,
				 Goheapd__TypeRow ***rows, size_t *row_count)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i < tally->room; i++) {
		if (!tally->counts[i].objects)
			continue;
		err = message_reserve((void ***)rows, *row_count);
		if (!err)
			err = row_new(types, i, &tally->counts[i], &(*rows)[*row_count]);
		*row_count += !err;
	}
	return err;
}

static int compare_names(const Goheapd__TypeRow *a, const Goheapd__TypeRow *b)
{
	size_t size = a->type.len < b->type.len ? a->type.len : b->type.len;
	int order = memcmp(a->type.data, b->type.data, size);

	return order ? order : (a->type.len > b->type.len) - (a->type.len < b->type.len);
}

static int by_name(const void *a, const void *b)
{
	return compare_names(*(Goheapd__TypeRow *const *)a, *(Goheapd__TypeRow *const *)b);
}

static int by_size(const void *a, const void *b)
{
	const Goheapd__TypeRow *one = *(Goheapd__TypeRow *const *)a;
	const Goheapd__TypeRow *other = *(Goheapd__TypeRow *const *)b;

	if (one->bytes != other->bytes)
		return one->bytes < other->bytes ? 1 : -1;
	return compare_names(one, other);
}

/* Puts neighbours of one name together, and returns how many rows are left. */
static size_t join_rows(Goheapd__TypeRow **rows, size_t row_count)
{
	size_t kept = 0;

	for (size_t i = 0; i < row_count; i++) {
		if (kept && compare_names(rows[kept - 1], rows[i]) == 0) {
			rows[kept - 1]->objects += rows[i]->objects;
			rows[kept - 1]->bytes += rows[i]->bytes;
			goheapd__type_row__free_unpacked(rows[i], NULL);
		} else {
			rows[kept++] = rows[i];
		}
	}
	return kept;
}

struct error *type_tally_rows(const struct type_tally *tally, const struct go_types *types,
			      Goheapd__TypeRow ***rows, size_t *row_count)
{
	struct error *err = append_rows(tally, types, rows, row_count);

	if (err || !*row_count)
		return err;
	qsort(*rows, *row_count, sizeof(**rows), by_name);
	*row_count = join_rows(*rows, *row_count);
	qsort(*rows, *row_count, sizeof(**rows), by_size);
	return NULL;
}

/* ---- from types to rows ---- */

/* Names with the rows they are of, in the order of the names. */
struct named_row {
	const Goheapd__TypeRow *row;
	uint32_t number;
};

static int by_row_name(const void *a, const void *b)
{
	return compare_names(((const struct named_row *)a)->row,
			     ((const struct named_row *)b)->row);
}

static struct named_row *sort_names(Goheapd__TypeRow *const *rows, size_t row_count)
{
	struct named_row *names = calloc(row_count + 1, sizeof(*names));

	if (!names)
		return NULL;
	for (size_t i = 0; i < row_count; i++)
		names[i] = (struct named_row){ .row = rows[i], .number = (uint32_t)i };
	qsort(names, row_count, sizeof(*names), by_row_name);
	return names;
}

static struct error *find_row(const struct go_types *types, size_t place,
			      const struct named_row *names, size_t row_count, uint32_t *ret)
{
	struct object_type type = { .type = (type_id)(place / 2), .is_array = place % 2 };
	Goheapd__TypeRow row = GOHEAPD__TYPE_ROW__INIT;
	const struct named_row key = { .row = &row };
	const struct named_row *found;
	struct error *err = object_type_name(types, type, &row.type);

	if (err)
		return err;
	found = bsearch(&key, names, row_count, sizeof(key), by_row_name);
	free(row.type.data);
	if (found)
		*ret = found->number;
	return NULL;
}

struct error *type_tally_find_rows(const struct type_tally *tally, const struct go_types *types,
				   Goheapd__TypeRow *const *rows, size_t row_count, uint32_t **ret)
{
	struct named_row *names scoped(freep) = sort_names(rows, row_count);
	uint32_t *found scoped(freep) = malloc((tally->room + 1) * sizeof(*found));
	struct error *err = NULL;

	if (!names || !found)
		return &error_nomem;
	for (size_t i = 0; !err && i < tally->room; i++) {
		found[i] = UINT32_MAX;
		if (tally->counts[i].objects)
			err = find_row(types, i, names, row_count, &found[i]);
	}
	if (!err)
		*ret = take(found);
	return err;
}

uint32_t type_tally_row(const struct type_tally *tally, const uint32_t *found,
			struct object_type type)
{
	size_t place = place_of(type);

	return type.type == TYPE_UNKNOWN || place >= tally->room ? UINT32_MAX : found[place];
}
