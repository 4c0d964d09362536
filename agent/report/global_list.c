#include "agent/report/global_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/dominators.h"
#include "agent/report/message.h"
#include "agent/report/retained.h"

static struct error *add_row(Goheapd__GlobalRow ***rows, size_t *count, const char *name,
			     uint64_t bytes)
{
	Goheapd__GlobalRow *row;
	struct error *err = message_reserve((void ***)rows, *count);

	if (err)
		return err;
	row = malloc(sizeof(*row));
	if (!row)
		return &error_nomem;
	goheapd__global_row__init(row);
	row->retained_bytes = bytes;
	(*rows)[(*count)++] = row;
	return message_text(name, &row->name);
}

static int by_size(const void *a, const void *b)
{
	const Goheapd__GlobalRow *one = *(Goheapd__GlobalRow *const *)a;
	const Goheapd__GlobalRow *other = *(Goheapd__GlobalRow *const *)b;
	size_t size = one->name.len < other->name.len ? one->name.len : other->name.len;
	int order;

	if (one->retained_bytes != other->retained_bytes)
		return one->retained_bytes < other->retained_bytes ? 1 : -1;
	order = size ? memcmp(one->name.data, other->name.data, size) : 0;
	return order ? order
		     : (one->name.len > other->name.len) - (one->name.len < other->name.len);
}

struct error *global_list_fill(const struct retained *retained, size_t limit,
			       Goheapd__GlobalRow ***rows, size_t *count)
{
	const struct dominators *tree = retained_dominators(retained);
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < dominators_group_count(tree); i++) {
		struct retained_group group = retained_group_at(retained, i);
		uint64_t bytes = dominators_retained(tree, dominators_group_node(tree, i));

		if (bytes && group.goroutine == ROOT_NO_GOROUTINE &&
		    (group.kind == VARIABLE_GLOBAL || group.kind == VARIABLE_NAMELESS))
			err = add_row(rows, count, group.name, bytes);
	}
	if (!err && *count)
		qsort(*rows, *count, sizeof(**rows), by_size);
	while (*count > limit)
		goheapd__global_row__free_unpacked((*rows)[--*count], NULL);
	return err;
}
