#include "agent/decoder_discover.h"

#include <stdio.h>

#include "agent/binary/build_info.h"
#include "agent/decoder_target.h"
#include "agent/goruntime/layout.h"

struct error *decoder_discover(const struct decoder_target *target, struct decoder_layout *ret)
{
	const struct layout_program program = {
		.file = target->file,
		.load_bias = target->load_bias,
		.memory = target->memory,
		.version = target->info->version,
	};
	struct layout_found found;
	struct error *err = layout_discover(&program, &ret->layout, &found);

	if (err)
		return err;
	layout_relocate(ret->layout, -target->load_bias);
	ret->known_by = LAYOUT_BY_TABLE;
	ret->exact = found.match == LAYOUT_MATCH_EXACT;
	snprintf(ret->table_version, sizeof(ret->table_version), "%s", found.table_version);
	return NULL;
}
