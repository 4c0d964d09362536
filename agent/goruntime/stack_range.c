#include <inttypes.h>
#include <stdlib.h>

#include "agent/binary/pclntab.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/stack.h"

enum { RANGES_MAX = 256 };

struct error *stack_unwalkable_ranges(const struct pclntab *pclntab, struct pc_range **ret,
				      uint32_t *ret_count)
{
	struct pc_range *ranges scoped(freep) = calloc(RANGES_MAX, sizeof(*ranges));
	uint32_t count = 0;

	if (!ranges)
		return &error_nomem;
	for (uint32_t i = 0; i < pclntab_func_count(pclntab) && count < RANGES_MAX; i++) {
		struct pclntab_func func;
		struct error *err = pclntab_at(pclntab, i, &func);

		if (err)
			return error_context(err, "function %" PRIu32, i);
		if (function_roles(func.name) & ROLE_UNWALKABLE)
			ranges[count++] = (struct pc_range){ func.entry, func.end };
	}
	*ret = take(ranges);
	*ret_count = count;
	return NULL;
}
