#include "agent/goruntime/processor.h"

#include <stdlib.h>

#include "agent/goruntime/layout.h"

enum { PROCESSORS_MAX = 1 << 16 };

struct error *processor_list(struct memory *memory, const struct layout *layout, taddr **ret,
			     uint32_t *ret_count)
{
	taddr *list scoped(freep) = NULL;
	uint64_t data, length;
	uint32_t count = 0;
	struct error *err = memory_u64(memory, layout->global_allp.addr, &data);

	if (!err)
		err = memory_u64(memory, layout->global_allp.addr + 8, &length);
	if (!err)
		err = memory_read_words(memory, data, length, PROCESSORS_MAX, &list);
	if (err)
		return error_context(err, "allp");
	for (uint64_t i = 0; i < length; i++)
		if (list[i])
			list[count++] = list[i];
	*ret = take(list);
	*ret_count = count;
	return NULL;
}
