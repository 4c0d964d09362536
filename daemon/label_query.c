#include "daemon/label_query.h"

#include <string.h>

static int compare_bytes(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_pairs(const Goheapd__LabelPair *a, const Goheapd__LabelPair *b)
{
	int order = compare_bytes(a->key, b->key);

	return order ? order : compare_bytes(a->value, b->value);
}

static struct error *check_key(ProtobufCBinaryData key)
{
	if (key.len == 0)
		return error_new(ERROR_EMPTY_LABEL_KEY, "a label's key cannot be empty");
	if (key.len > LIMIT_LABEL_KEY_BYTES)
		return error_new(ERROR_LABEL_TOO_LONG,
				 "a label's key of %zu bytes is longer than %d", key.len,
				 LIMIT_LABEL_KEY_BYTES);
	return NULL;
}

/* Puts the pair where it belongs, unless it is there. */
static struct error *insert(struct label_query *query, const Goheapd__LabelPair *pair)
{
	size_t i = query->select_count;

	while (i > 0 && compare_pairs(&query->select[i - 1], pair) > 0)
		i--;
	if (i > 0 && compare_pairs(&query->select[i - 1], pair) == 0)
		return NULL;
	if (query->select_count == LIMIT_SELECT_LABELS)
		return error_new(ERROR_TOO_MANY_LABELS, "more than %d labels to select by",
				 LIMIT_SELECT_LABELS);
	memmove(&query->select[i + 1], &query->select[i],
		(query->select_count - i) * sizeof(query->select[0]));
	query->select[i] = *pair;
	query->select_count++;
	return NULL;
}

struct error *label_query_select(struct label_query *query, ProtobufCBinaryData text)
{
	const uint8_t *equals = text.len ? memchr(text.data, '=', text.len) : NULL;
	Goheapd__LabelPair pair = GOHEAPD__LABEL_PAIR__INIT;
	struct error *err;

	pair.key = text;
	if (equals) {
		pair.key.len = (size_t)(equals - text.data);
		pair.value.data = text.data + pair.key.len + 1;
		pair.value.len = text.len - pair.key.len - 1;
	}
	err = check_key(pair.key);
	if (err)
		return err;
	if (!equals)
		return error_new(ERROR_BAD_REQUEST,
				 "a label is wanted as KEY=VALUE, and this one has no '='");
	if (pair.value.len > LIMIT_LABEL_VALUE_BYTES)
		return error_new(ERROR_LABEL_TOO_LONG,
				 "a label's value of %zu bytes is longer than %d", pair.value.len,
				 LIMIT_LABEL_VALUE_BYTES);
	return insert(query, &pair);
}

static bool is_text(ProtobufCBinaryData bytes, const char *text)
{
	return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

struct error *label_query_group(struct label_query *query, ProtobufCBinaryData key)
{
	struct error *err = check_key(key);

	if (err)
		return err;
	if (key.data[0] == '@' && !is_text(key, "@created_by") && !is_text(key, "@entry") &&
	    !is_text(key, "@module"))
		return error_new(ERROR_BAD_REQUEST, "by: besides label keys there are @created_by, "
						    "@entry and @module");
	query->has_by = true;
	query->by = key;
	return NULL;
}

bool label_query_is_empty(const struct label_query *query)
{
	return query->select_count == 0 && !query->has_by && !query->detail;
}

bool label_query_equal(const struct label_query *a, const struct label_query *b)
{
	if (a->select_count != b->select_count || a->has_by != b->has_by ||
	    a->detail != b->detail || (a->has_by && compare_bytes(a->by, b->by) != 0))
		return false;
	for (size_t i = 0; i < a->select_count; i++) {
		if (compare_pairs(&a->select[i], &b->select[i]) != 0)
			return false;
	}
	return true;
}

static size_t bytes_of(const struct label_query *query)
{
	size_t size = query->by.len;

	for (size_t i = 0; i < query->select_count; i++)
		size += query->select[i].key.len + query->select[i].value.len;
	return size;
}

/* Moves the bytes to *pos, which is stepped behind them. */
static void move_bytes(ProtobufCBinaryData *bytes, uint8_t **pos)
{
	if (bytes->len)
		memcpy(*pos, bytes->data, bytes->len);
	bytes->data = *pos;
	*pos += bytes->len;
}

struct error *label_query_copy(const struct label_query *query, struct label_query **ret,
			       size_t *ret_size)
{
	size_t size = sizeof(*query) + bytes_of(query);
	struct label_query *copy = malloc(size);
	uint8_t *pos;

	if (!copy)
		return &error_nomem;
	*copy = *query;
	pos = (uint8_t *)(copy + 1);
	move_bytes(&copy->by, &pos);
	for (size_t i = 0; i < copy->select_count; i++) {
		move_bytes(&copy->select[i].key, &pos);
		move_bytes(&copy->select[i].value, &pos);
	}
	*ret = copy;
	*ret_size = size;
	return NULL;
}
