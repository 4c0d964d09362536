#include "agent/report/label_pairs.h"

#include <stdlib.h>

#include "agent/goruntime/label.h"
#include "agent/report/message.h"

static struct error *add_pair(Goheapd__LabelPair ***pairs, size_t *count, const struct label *label)
{
	struct error *err = message_reserve((void ***)pairs, *count);
	Goheapd__LabelPair *pair;

	if (err)
		return err;
	pair = malloc(sizeof(*pair));
	if (!pair)
		return &error_nomem;
	goheapd__label_pair__init(pair);
	(*pairs)[(*count)++] = pair;
	err = message_bytes(label->key.bytes, label->key.size, &pair->key);
	return err ? err : message_bytes(label->value.bytes, label->value.size, &pair->value);
}

struct error *label_pairs_fill(const struct label_set *set, Goheapd__LabelPair ***ret_pairs,
			       size_t *ret_count)
{
	struct error *err = NULL;

	for (uint32_t i = 0; i < set->count && !err; i++)
		err = add_pair(ret_pairs, ret_count, &set->labels[i]);
	return err;
}
