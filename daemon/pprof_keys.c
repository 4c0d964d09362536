#include "daemon/pprof_keys.h"

#include <stdio.h>
#include <string.h>

#include "daemon/label_text.h"

enum { COMMENTS_MAX = 256, COMMENT_COLUMNS = 1000, NAME_MAX_BYTES = 1024 };

struct pprof_key {
	ProtobufCBinaryData original;
	char *name;
	bool changed;
};

static int compare_originals(const void *a, const void *b)
{
	ProtobufCBinaryData x = ((const struct pprof_key *)a)->original;
	ProtobufCBinaryData y = ((const struct pprof_key *)b)->original;
	size_t common = x.len < y.len ? x.len : y.len;
	int order = common ? memcmp(x.data, y.data, common) : 0;

	return order ? order : (x.len > y.len) - (x.len < y.len);
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_legal(uint8_t c, bool is_first)
{
	return is_letter(c) || (!is_first && c >= '0' && c <= '9');
}

/* The key with everything that is not allowed replaced by '_', one for each byte. */
static struct error *make_name(struct pprof_key *key)
{
	ProtobufCBinaryData from = key->original;
	size_t size = from.len < NAME_MAX_BYTES ? from.len : NAME_MAX_BYTES;
	bool begins_with_digit = size && from.data[0] >= '0' && from.data[0] <= '9';
	char *name = malloc(size + 2), *to = name;

	if (!name)
		return &error_nomem;
	if (begins_with_digit || size == 0)
		*to++ = '_';
	for (size_t i = 0; i < size; i++)
		*to++ =
		    is_legal(from.data[i], i == 0 && !begins_with_digit) ? (char)from.data[i] : '_';
	*to = '\0';
	key->name = name;
	key->changed = (size_t)(to - name) != from.len || memcmp(name, from.data, from.len) != 0;
	return NULL;
}

static struct error *add_key(struct pprof_keys *keys, ProtobufCBinaryData original)
{
	if (keys->count == keys->capacity) {
		size_t capacity = keys->capacity ? keys->capacity * 2 : 64;
		struct pprof_key *larger = realloc(keys->keys, capacity * sizeof(*larger));

		if (!larger)
			return &error_nomem;
		keys->keys = larger;
		keys->capacity = capacity;
	}
	keys->keys[keys->count++] = (struct pprof_key){ .original = original };
	return NULL;
}

static struct error *gather(struct pprof_keys *keys, const struct chain_tree *tree)
{
	struct error *err = NULL;

	for (size_t i = 0; i < tree->label_count; i++) {
		for (size_t j = 0; !err && j < tree->labels[i].count; j++)
			err = add_key(keys, tree->labels[i].pairs[j]->key);
	}
	return err;
}

/* Sorted, and each once. */
static void tidy(struct pprof_keys *keys)
{
	size_t count = 0;

	if (keys->count)
		qsort(keys->keys, keys->count, sizeof(*keys->keys), compare_originals);
	for (size_t i = 0; i < keys->count; i++) {
		if (count == 0 || compare_originals(&keys->keys[count - 1], &keys->keys[i]) != 0)
			keys->keys[count++] = keys->keys[i];
	}
	keys->count = count;
}

static int compare_names(const void *a, const void *b)
{
	const struct pprof_key *x = *(struct pprof_key *const *)a,
			       *y = *(struct pprof_key *const *)b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	if (x->changed != y->changed)
		return x->changed ? 1 : -1; /* who has its own name keeps it */
	return compare_originals(x, y);
}

static struct error *number_name(struct pprof_key *key, size_t number)
{
	char *name;

	if (asprintf(&name, "%s_%zu", key->name, number) < 0)
		return &error_nomem;
	free(key->name);
	key->name = name;
	key->changed = true;
	return NULL;
}

/* One round: whoever is not the first of a name gets its number; *ret_again says if any did. */
static struct error *number_round(struct pprof_key **sorted, size_t *numbers, size_t count,
				  bool *ret_again)
{
	struct error *err = NULL;

	*ret_again = false;
	qsort(sorted, count, sizeof(*sorted), compare_names);
	for (size_t i = 0; i < count; i++) {
		bool is_same = i && strcmp(sorted[i - 1]->name, sorted[i]->name) == 0;

		numbers[i] = is_same ? numbers[i - 1] + 1 : 1;
	}
	for (size_t i = 0; !err && i < count; i++) {
		if (numbers[i] == 1)
			continue;
		*ret_again = true;
		err = number_name(sorted[i], numbers[i]);
	}
	return err;
}

/*
 * Keys that have come to the same name are numbered, until none has the name of another. A number
 * may itself make a name that is taken; each round is one "_N" longer, so that this ends.
 */
static struct error *tell_apart(struct pprof_keys *keys)
{
	struct pprof_key **sorted scoped(freep) = calloc(keys->count + 1, sizeof(*sorted));
	size_t *numbers scoped(freep) = calloc(keys->count + 1, sizeof(*numbers));
	struct error *err = sorted && numbers ? NULL : &error_nomem;
	bool again = true;

	for (size_t i = 0; !err && i < keys->count; i++)
		sorted[i] = &keys->keys[i];
	while (!err && again)
		err = number_round(sorted, numbers, keys->count, &again);
	return err;
}

struct error *pprof_keys_init(struct pprof_keys *keys, const struct chain_tree *tree)
{
	struct error *err;

	*keys = (struct pprof_keys){ 0 };
	err = gather(keys, tree);
	if (!err)
		tidy(keys);
	for (size_t i = 0; !err && i < keys->count; i++)
		err = make_name(&keys->keys[i]);
	return err ? err : tell_apart(keys);
}

void pprof_keys_fini(struct pprof_keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		free(keys->keys[i].name);
	free(keys->keys);
	*keys = (struct pprof_keys){ 0 };
}

const char *pprof_key_name(const struct pprof_keys *keys, ProtobufCBinaryData key)
{
	const struct pprof_key wanted = { .original = key };
	const struct pprof_key *found =
	    bsearch(&wanted, keys->keys, keys->count, sizeof(*keys->keys), compare_originals);

	return found ? found->name : "_";
}

void pprof_keys_comment(const struct pprof_keys *keys, struct text *text)
{
	size_t changed = 0;

	for (size_t i = 0; i < keys->count; i++) {
		if (!keys->keys[i].changed || changed++ >= COMMENTS_MAX)
			continue;
		text_printf(text, "label %s is ", keys->keys[i].name);
		text_label_part(text, keys->keys[i].original, COMMENT_COLUMNS);
		text_string(text, "\n");
	}
	if (changed > COMMENTS_MAX)
		text_printf(text, "and %zu more\n", changed - COMMENTS_MAX);
}
