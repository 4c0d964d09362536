/*
 * Labels as a list (since go1.24): g.labels points to a struct around a slice of pairs, sorted by
 * key (runtime/pprof/label.go, labelMap, LabelSet, label; since go1.26
 * internal/runtime/pprof/label).
 */
#include <inttypes.h>

#include "agent/goruntime/label_raw.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum { SLICE_SIZE = 24, STRING_SIZE = 16, LABEL_SIZE_MAX = 64 };

bool label_list_known(const struct layout *layout)
{
	return layout->label_map_list.size == SLICE_SIZE && layout->label_key.size == STRING_SIZE &&
	       layout->label_value.size == STRING_SIZE && layout->label.size <= LABEL_SIZE_MAX;
}

struct error *label_list_read(struct memory *memory, const struct layout *layout, taddr addr,
			      struct raw_labels *ret)
{
	uint8_t slice[SLICE_SIZE], label[LABEL_SIZE_MAX];
	uint64_t count, capacity;
	taddr array;
	struct error *err;

	ret->step = LABEL_OBJECT_MISSING;
	err = memory_read(memory, addr + layout->label_map_list.offset, slice, sizeof(slice));
	if (err)
		return err;
	array = load_u64le(slice);
	count = load_u64le(slice + 8);
	capacity = load_u64le(slice + 16);
	if (count > LABELS_MAX)
		return error_new(ERROR_LIMIT, "%" PRIu64 " labels", count);
	if (count > capacity)
		return error_new(ERROR_CORRUPT_TARGET, "%" PRIu64 " labels in room for %" PRIu64,
				 count, capacity);
	ret->step = LABEL_ARRAY_MISSING;
	for (uint64_t i = 0; i < count && !err; i++) {
		err =
		    memory_read(memory, array + i * layout->label.size, label, layout->label.size);
		if (!err)
			err = raw_labels_add(ret, label + layout->label_key.offset,
					     label + layout->label_value.offset);
	}
	return err;
}
