#include "agent/decoder_discover.h"

#include <stdio.h>

#include "agent/binary/build_info.h"
#include "agent/binary/elf_file.h"
#include "agent/decoder_target.h"
#include "agent/goruntime/layout.h"

static size_t list_segments(const struct decoder_target *target,
			    struct anchor_segment segments[ELF_FILE_SEGMENTS_MAX])
{
	uint32_t count = elf_file_segment_count(target->file);

	for (uint32_t i = 0; i < count; i++) {
		const struct elf_segment *segment = elf_file_segment(target->file, i);
		taddr start = segment->addr + target->load_bias;

		segments[i] = (struct anchor_segment){ start, start + segment->file_size,
						       segment->writable, segment->executable };
	}
	return count;
}

struct error *decoder_discover(const struct decoder_target *target, struct decoder_layout *ret)
{
	const struct elf_section *pclntab = elf_file_find_section(target->file, ".gopclntab");
	struct anchor_segment segments[ELF_FILE_SEGMENTS_MAX];
	const struct layout_program program = {
		.memory = target->memory,
		.segments = segments,
		.segment_count = list_segments(target, segments),
		.pclntab = pclntab ? pclntab->addr + target->load_bias : 0,
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
