/*
 * A layout is one struct for its users and, here, a table of entries made from the same
 * layout.def: what to look up and where in the struct the answer goes.
 */
#include "agent/goruntime/layout.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/go_version.h"
#include "proto/base/bytes.h"
#include "proto/base/cursor.h"

enum {
	NAME_MAX_SIZE = 256,     /* of one alternative */
	MISSING_TEXT_MAX = 2048, /* of the list in an error message */
	WORD_SIZE = 8,
	/* Versions of Go, as N of go1.N: the oldest and the newest that layout.def knows. */
	OLDEST = 15,
	NEWEST = 27,
	NO_VERSION = 0,
	ANY_LATER = UINT16_MAX,
};

enum entry_kind { ENTRY_STRUCT, ENTRY_FIELD, ENTRY_CONSTANT, ENTRY_GLOBAL };

/* Who has an entry: versions first to last, less or more those built with an experiment. */
struct entry_need {
	uint16_t first, last;
	const char *unless, *with;
};

/* The needs of layout.def. */
/* clang-format off */
#define NEEDED                   { NO_VERSION, ANY_LATER, NULL, NULL }
#define FROM(n)                  { n, ANY_LATER, NULL, NULL }
#define UNTIL(n)                 { NO_VERSION, n, NULL, NULL }
#define BETWEEN(n, m)            { n, m, NULL, NULL }
#define FROM_UNLESS(n, name)     { n, ANY_LATER, name, NULL }
#define UNTIL_OR_WITH(n, name)   { NO_VERSION, n, NULL, name }
#define GREEN_TEA                { 26, ANY_LATER, "nogreenteagc", "greenteagc" }
#define OPTIONAL                 { ANY_LATER, NO_VERSION, NULL, NULL }
/* clang-format on */

struct entry {
	enum entry_kind kind;
	struct entry_need need;
	const char *id;
	const char *types;   /* of a field: its struct's names */
	const char *names;   /* alternatives, separated by '|' */
	size_t place;        /* in struct layout */
	size_t struct_place; /* of a field: its struct's */
};

/* The names of each struct, for its fields to refer to. */
#define STRUCT(id, names, need) static const char names_of_##id[] = names;
#define FIELD(type, id, paths, need)
#define CONSTANT(id, names, need)
#define GLOBAL(id, names, need)
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL

static const struct entry entries[] = {
#define STRUCT(id, names, need)                                                                    \
	{ ENTRY_STRUCT, need, #id, NULL, names, offsetof(struct layout, id), 0 },
#define FIELD(type, id, paths, need)                                                               \
	{ ENTRY_FIELD,                                                                             \
	  need,                                                                                    \
	  #type "." #id,                                                                           \
	  names_of_##type,                                                                         \
	  paths,                                                                                   \
	  offsetof(struct layout, type##_##id),                                                    \
	  offsetof(struct layout, type) },
#define CONSTANT(id, names, need)                                                                  \
	{ ENTRY_CONSTANT, need, #id, NULL, names, offsetof(struct layout, const_##id), 0 },
#define GLOBAL(id, names, need)                                                                    \
	{ ENTRY_GLOBAL, need, #id, NULL, names, offsetof(struct layout, global_##id), 0 },
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL
};

enum { ENTRY_COUNT = sizeof(entries) / sizeof(entries[0]) };

static void *place_of(struct layout *layout, size_t place)
{
	return (uint8_t *)layout + place;
}

static const void *const_place_of(const struct layout *layout, size_t place)
{
	return (const uint8_t *)layout + place;
}

/*
 * Copies the next alternative of *names to buffer and steps over it; false at the end. layout.def
 * is ours: an alternative that does not fit is a mistake of its author.
 */
static bool next_name(const char **names, char buffer[NAME_MAX_SIZE])
{
	size_t length = strcspn(*names, "|");

	if (!length || length >= NAME_MAX_SIZE)
		return false;
	memcpy(buffer, *names, length);
	buffer[length] = '\0';
	*names += length + ((*names)[length] == '|');
	return true;
}

static bool find_struct(struct layout_source *source, const struct entry *entry, const char *name,
			struct layout *layout, struct error **ret_err)
{
	struct layout_struct *place = place_of(layout, entry->place);

	return source->find_struct(source, name, &place->size, ret_err);
}

/* A field is looked up in the first alternative of its struct that exists. */
static bool find_field(struct layout_source *source, const struct entry *entry, const char *path,
		       struct layout *layout, struct error **ret_err)
{
	struct layout_field *place = place_of(layout, entry->place);
	const char *types = entry->types;
	char type[NAME_MAX_SIZE];
	uint32_t size;

	while (next_name(&types, type)) {
		if (source->find_struct(source, type, &size, ret_err))
			return source->find_field(source, type, path, &place->offset, &place->size,
						  ret_err);
		if (*ret_err)
			break;
	}
	return false;
}

static bool find_constant(struct layout_source *source, const struct entry *entry, const char *name,
			  struct layout *layout, struct error **ret_err)
{
	struct layout_constant *place = place_of(layout, entry->place);

	place->known = source->find_constant(source, name, &place->value, ret_err);
	return place->known;
}

static bool find_global(struct layout_source *source, const struct entry *entry, const char *name,
			struct layout *layout, struct error **ret_err)
{
	struct layout_global *place = place_of(layout, entry->place);

	return source->find_global(source, name, &place->addr, &place->size, ret_err);
}

/*
 * Where a later runtime wraps a number in a struct ("elem.vu|elem"), what is found by the outer
 * name must still be the number, not the struct around one that is missing.
 */
static struct error *check_alternative(const struct layout *layout, const struct entry *entry,
				       const char *name)
{
	const struct layout_field *field = const_place_of(layout, entry->place);
	const char *names = entry->names;
	char inner[NAME_MAX_SIZE];
	size_t length = strlen(name);

	if (entry->kind != ENTRY_FIELD || field->size <= WORD_SIZE)
		return NULL;
	while (next_name(&names, inner))
		if (!strncmp(inner, name, length) && inner[length] == '.')
			return error_new(ERROR_UNSUPPORTED,
					 "this Go runtime lacks %s.%s: %s has %" PRIu32 " bytes",
					 entry->types, inner, name, field->size);
	return NULL;
}

/* Looks for the alternatives of an entry, newest first. */
static bool find_entry(struct layout_source *source, const struct entry *entry,
		       struct layout *layout, struct error **ret_err)
{
	static bool (*const find[])(struct layout_source *, const struct entry *, const char *,
				    struct layout *, struct error **) = {
		[ENTRY_STRUCT] = find_struct,
		[ENTRY_FIELD] = find_field,
		[ENTRY_CONSTANT] = find_constant,
		[ENTRY_GLOBAL] = find_global,
	};
	const char *names = entry->names;
	char name[NAME_MAX_SIZE];

	while (next_name(&names, name)) {
		if (find[entry->kind](source, entry, name, layout, ret_err)) {
			*ret_err = check_alternative(layout, entry, name);
			return true;
		}
		if (*ret_err)
			break;
	}
	return false;
}

/* Whether what an entry's place says can be: fields lie inside of their struct. */
static struct error *check_entry(const struct layout *layout, const struct entry *entry)
{
	const struct layout_field *field = const_place_of(layout, entry->place);
	const struct layout_struct *owner = const_place_of(layout, entry->struct_place);

	if (entry->kind != ENTRY_FIELD || !field->size)
		return NULL;
	if (field->offset > owner->size || field->size > owner->size - field->offset)
		return error_new(ERROR_FORMAT, "field %s does not fit in its struct", entry->id);
	return NULL;
}

static bool entry_is_known(const struct layout *layout, const struct entry *entry)
{
	const void *place = const_place_of(layout, entry->place);

	switch (entry->kind) {
	case ENTRY_STRUCT:
		return ((const struct layout_struct *)place)->size != 0;
	case ENTRY_FIELD:
		return ((const struct layout_field *)place)->size != 0;
	case ENTRY_CONSTANT:
		return ((const struct layout_constant *)place)->known;
	case ENTRY_GLOBAL:
		return ((const struct layout_global *)place)->size != 0;
	}
	return false;
}

/* Whether a runtime of go1.minor has the entry; the experiments stand in its version. */
static bool is_due(const struct entry_need *need, unsigned minor, const char *version)
{
	if (need->with && go_version_has_experiment(version, need->with))
		return true;
	if (need->unless && go_version_has_experiment(version, need->unless))
		return false;
	return minor >= need->first && minor <= need->last;
}

/* The names of what go1.minor has and the layout has not; cut off with "..." where they are many.
 */
static void list_missing(const struct layout *layout, unsigned minor,
			 char missing[MISSING_TEXT_MAX])
{
	size_t length = 0;

	missing[0] = '\0';
	for (size_t i = 0; i < ENTRY_COUNT; i++) {
		const struct entry *entry = &entries[i];
		int added;

		if (!is_due(&entry->need, minor, layout->version) || entry_is_known(layout, entry))
			continue;
		added = snprintf(missing + length, MISSING_TEXT_MAX - length, "%s%s%s%s",
				 length ? ", " : "", entry->types ? entry->types : "",
				 entry->types ? "." : "", entry->names);
		if (added < 0 || (size_t)added >= MISSING_TEXT_MAX - length) {
			strcpy(missing + MISSING_TEXT_MAX - sizeof("..."), "...");
			return;
		}
		length += (size_t)added;
	}
}

/* ERROR_UNSUPPORTED naming every entry that is due and not there. */
static struct error *check_complete(const struct layout *layout)
{
	char missing[MISSING_TEXT_MAX];
	unsigned minor = go_version_minor(layout->version);

	list_missing(layout, minor ? minor : NEWEST, missing);
	/* Not known: any version that has just this will do. */
	for (unsigned other = NEWEST - 1; !minor && *missing && other >= OLDEST; other--) {
		char of_other[MISSING_TEXT_MAX];

		list_missing(layout, other, of_other);
		if (!*of_other)
			return NULL;
	}
	if (!*missing)
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "this Go runtime%s%s%s lacks %s",
			 *layout->version ? " (" : "", layout->version, *layout->version ? ")" : "",
			 missing);
}

struct error *layout_read(struct layout_source *source, const char *version, struct layout **ret)
{
	struct layout *layout scoped(layout_freep) = calloc(1, sizeof(*layout));
	struct error *err = NULL;

	if (!layout)
		return &error_nomem;
	snprintf(layout->version, sizeof(layout->version), "%s", version);
	for (size_t i = 0; i < ENTRY_COUNT && !err; i++) {
		if (find_entry(source, &entries[i], layout, &err) && !err)
			err = check_entry(layout, &entries[i]);
		if (err)
			return error_context(err, "%s", entries[i].id);
	}
	err = check_complete(layout);
	if (err)
		return err;
	*ret = take(layout);
	return NULL;
}

/* Structs, and the fields of those that are added: what is known stays as it is. */
static bool is_wanted(const struct layout *before, const struct entry *entry)
{
	const struct layout_struct *owner;

	if (entry->kind == ENTRY_STRUCT)
		return !entry_is_known(before, entry);
	owner = const_place_of(before, entry->struct_place);
	return entry->kind == ENTRY_FIELD && !owner->size;
}

struct error *layout_complete(struct layout *layout, struct layout_source *source)
{
	struct layout completed = *layout;
	struct error *err = NULL;

	for (size_t i = 0; i < ENTRY_COUNT && !err; i++) {
		if (!is_wanted(layout, &entries[i]))
			continue;
		if (find_entry(source, &entries[i], &completed, &err))
			err = check_entry(&completed, &entries[i]);
	}
	if (!err)
		*layout = completed;
	return err;
}

void layout_free(struct layout *layout)
{
	free(layout);
}

static const struct {
	const char *name;
	size_t place; /* in struct layout */
} globals[] = {
#define STRUCT(id, names, need)
#define FIELD(type, id, paths, need)
#define CONSTANT(id, names, need)
#define GLOBAL(id, names, need) { #id, offsetof(struct layout, global_##id) },
#include "agent/goruntime/layout.def"
#undef STRUCT
#undef FIELD
#undef CONSTANT
#undef GLOBAL
};

struct layout_global *layout_global(struct layout *layout, enum layout_global_id id)
{
	return place_of(layout, globals[id].place);
}

const char *layout_global_name(enum layout_global_id id)
{
	return globals[id].name;
}

struct error *layout_copy(const struct layout *layout, struct layout **ret)
{
	struct layout *copy = malloc(sizeof(*copy));

	if (!copy)
		return &error_nomem;
	*copy = *layout;
	*ret = copy;
	return NULL;
}

struct error *layout_complete_globals(struct layout *layout)
{
	for (enum layout_global_id id = 0; id < LAYOUT_GLOBAL_COUNT; id++) {
		struct layout_global *global = layout_global(layout, id);

		if (!global->addr)
			global->size = 0;
	}
	return check_complete(layout);
}

/* What an entry is stored by: all of its line in layout.def but the need. */
static void entry_name(const struct entry *entry, char buffer[2 * NAME_MAX_SIZE])
{
	static const char *const kinds[] = { "struct", "field", "constant", "global" };

	snprintf(buffer, 2 * NAME_MAX_SIZE, "%s %s %s %s", kinds[entry->kind], entry->id,
		 entry->types ? entry->types : "", entry->names);
}

/* The two numbers of an entry's place. */
static void entry_get(const struct layout *layout, const struct entry *entry, uint64_t numbers[2])
{
	const void *place = const_place_of(layout, entry->place);

	numbers[0] = numbers[1] = 0;
	switch (entry->kind) {
	case ENTRY_STRUCT:
		numbers[0] = ((const struct layout_struct *)place)->size;
		break;
	case ENTRY_FIELD:
		numbers[0] = ((const struct layout_field *)place)->offset;
		numbers[1] = ((const struct layout_field *)place)->size;
		break;
	case ENTRY_CONSTANT:
		numbers[0] = (uint64_t)((const struct layout_constant *)place)->value;
		numbers[1] = ((const struct layout_constant *)place)->known;
		break;
	case ENTRY_GLOBAL:
		numbers[0] = ((const struct layout_global *)place)->addr;
		numbers[1] = ((const struct layout_global *)place)->size;
		break;
	}
}

/* False for numbers that entry_get would not have given. */
static bool entry_set(struct layout *layout, const struct entry *entry, const uint64_t numbers[2])
{
	void *place = place_of(layout, entry->place);

	switch (entry->kind) {
	case ENTRY_STRUCT:
		*(struct layout_struct *)place = (struct layout_struct){ (uint32_t)numbers[0] };
		return numbers[0] <= UINT32_MAX && !numbers[1];
	case ENTRY_FIELD:
		*(struct layout_field *)place =
		    (struct layout_field){ (uint32_t)numbers[0], (uint32_t)numbers[1] };
		return numbers[0] <= UINT32_MAX && numbers[1] <= UINT32_MAX;
	case ENTRY_CONSTANT:
		*(struct layout_constant *)place =
		    (struct layout_constant){ (int64_t)numbers[0], numbers[1] != 0 };
		return numbers[1] <= 1;
	case ENTRY_GLOBAL:
		*(struct layout_global *)place = (struct layout_global){ numbers[0], numbers[1] };
		return true;
	}
	return false;
}

struct error *layout_store(const struct layout *layout, struct bytes *out)
{
	uint8_t *p;
	struct error *err = bytes_append(out, layout->version, strlen(layout->version) + 1);

	if (!err)
		err = bytes_extend(out, 4, &p);
	if (err)
		return err;
	store_u32le(p, ENTRY_COUNT);
	for (size_t i = 0; i < ENTRY_COUNT; i++) {
		char name[2 * NAME_MAX_SIZE];
		uint64_t numbers[2];

		entry_name(&entries[i], name);
		err = bytes_append(out, name, strlen(name) + 1);
		if (err)
			return err;
		err = bytes_extend(out, sizeof(numbers), &p);
		if (err)
			return err;
		entry_get(layout, &entries[i], numbers);
		store_u64le(p, numbers[0]);
		store_u64le(p + 8, numbers[1]);
	}
	return NULL;
}

static struct error *load_entry(struct cursor *in, const struct entry *entry, struct layout *layout)
{
	char expected[2 * NAME_MAX_SIZE];
	const char *name;
	uint64_t numbers[2];
	struct error *err = cursor_string(in, &name);

	entry_name(entry, expected);
	if (!err && strcmp(name, expected) != 0)
		err =
		    error_new(ERROR_FORMAT, "holds \"%.64s\" where \"%s\" belongs", name, expected);
	for (int i = 0; i < 2 && !err; i++)
		err = cursor_u64le(in, &numbers[i]);
	if (err)
		return err;
	if (!entry_set(layout, entry, numbers))
		return error_new(ERROR_FORMAT, "%s: numbers out of range", entry->id);
	return check_entry(layout, entry);
}

struct error *layout_load(struct cursor *in, struct layout **ret)
{
	struct layout *layout scoped(layout_freep) = calloc(1, sizeof(*layout));
	const char *version;
	uint32_t count;
	struct error *err;

	if (!layout)
		return &error_nomem;
	err = cursor_string(in, &version);
	if (!err)
		err = cursor_u32le(in, &count);
	if (err)
		return err;
	snprintf(layout->version, sizeof(layout->version), "%s", version);
	if (count != ENTRY_COUNT)
		return error_new(ERROR_FORMAT, "%" PRIu32 " layout entries instead of %d", count,
				 ENTRY_COUNT);
	for (size_t i = 0; i < ENTRY_COUNT; i++) {
		err = load_entry(in, &entries[i], layout);
		if (err)
			return error_context(err, "stored layout");
	}
	err = check_complete(layout);
	if (err)
		return error_context(error_recode(err, ERROR_FORMAT), "stored layout");
	*ret = take(layout);
	return NULL;
}

void layout_relocate(struct layout *layout, uint64_t load_bias)
{
	for (size_t i = 0; i < ENTRY_COUNT; i++) {
		struct layout_global *global;

		if (entries[i].kind != ENTRY_GLOBAL)
			continue;
		global = place_of(layout, entries[i].place);
		if (global->size)
			global->addr += load_bias;
	}
}

struct error *layout_read_field(struct memory *memory, taddr addr, struct layout_field field,
				uint64_t *ret)
{
	return memory_uint(memory, addr + field.offset, field.size, ret);
}
