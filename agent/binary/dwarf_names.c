#include "agent/binary/dwarf_names.h"

#include <stdlib.h>
#include <string.h>

enum {
	CAPACITY_MAX = 1 << 24,
	FIRST_CAPACITY = 1 << 12,
};

struct dwarf_name {
	const char *text;
	uint64_t die;
	enum dwarf_name_kind kind; /* DWARF_NAME_NONE: an empty place */
};

void dwarf_names_fini(struct dwarf_names *names)
{
	free(names->places);
	*names = (struct dwarf_names){ 0 };
}

static uint64_t hash_text(const char *text, enum dwarf_name_kind kind)
{
	uint64_t hash = 0xcbf29ce484222325 ^ kind; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return hash ^ hash >> 32;
}

/* The place of a name, or the empty one where it belongs. */
static struct dwarf_name *find_place(struct dwarf_name *places, uint32_t capacity, const char *text,
				     enum dwarf_name_kind kind)
{
	uint32_t i = (uint32_t)hash_text(text, kind) & (capacity - 1);

	while (places[i].kind && (places[i].kind != kind || strcmp(places[i].text, text) != 0))
		i = (i + 1) & (capacity - 1);
	return &places[i];
}

static struct error *grow(struct dwarf_names *names)
{
	uint32_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
	struct dwarf_name *places;

	if (capacity > CAPACITY_MAX)
		return error_new(ERROR_LIMIT, "more than %d names in DWARF", CAPACITY_MAX / 2);
	places = calloc(capacity, sizeof(*places));
	if (!places)
		return &error_nomem;
	for (uint32_t i = 0; i < names->capacity; i++) {
		const struct dwarf_name *name = &names->places[i];

		if (name->kind)
			*find_place(places, capacity, name->text, name->kind) = *name;
	}
	free(names->places);
	names->places = places;
	names->capacity = capacity;
	return NULL;
}

struct error *dwarf_names_add(struct dwarf_names *names, const char *text,
			      enum dwarf_name_kind kind, uint64_t die)
{
	struct dwarf_name *place;

	if (names->count >= names->capacity / 2) {
		struct error *err = grow(names);

		if (err)
			return err;
	}
	place = find_place(names->places, names->capacity, text, kind);
	if (place->kind)
		return NULL;
	*place = (struct dwarf_name){ text, die, kind };
	names->count++;
	return NULL;
}

bool dwarf_names_find(const struct dwarf_names *names, const char *text, enum dwarf_name_kind kind,
		      uint64_t *ret_die)
{
	const struct dwarf_name *place;

	if (!names->capacity)
		return false;
	place = find_place(names->places, names->capacity, text, kind);
	if (!place->kind)
		return false;
	*ret_die = place->die;
	return true;
}
