#include "agent/goruntime/processor.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum { PROCESSORS_MAX = 1 << 20 };

struct error *processor_list(struct memory *memory, const struct layout *layout, taddr **ret,
			     uint32_t *ret_count)
{
	taddr *list scoped(freep) = NULL;
	uint64_t data, length;
	uint32_t count = 0;
	struct error *err = memory_u64(memory, layout->global_allp.addr, &data);

	if (!err)
		err = memory_u64(memory, layout->global_allp.addr + 8, &length);
	if (!err && length > PROCESSORS_MAX)
		err = error_new(ERROR_LIMIT, "%" PRIu64 " Ps", length);
	if (err)
		return error_context(err, "allp");
	list = malloc(length * sizeof(*list) + 1);
	if (!list)
		return &error_nomem;
	for (uint64_t i = 0; i < length; i++) {
		taddr p;

		err = memory_u64(memory, data + 8 * i, &p);
		if (err)
			return error_context(err, "allp[%" PRIu64 "]", i);
		if (p)
			list[count++] = p;
	}
	*ret = take(list);
	*ret_count = count;
	return NULL;
}
