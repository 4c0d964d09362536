/*
 * Private to the files of pclntab: the opened table and what differs between formats.
 */
#ifndef AGENT_BINARY_PCLNTAB_TABLE_H
#define AGENT_BINARY_PCLNTAB_TABLE_H

#include "agent/binary/pclntab.h"
#include "proto/base/cursor.h"

struct pclntab_format {
	uint32_t magic;
	/* Function table and funcdata hold absolute addresses; else offsets of 32 bits. */
	bool absolute;
	bool has_cutab;      /* header of offsets; files by compile unit */
	bool has_text_start; /* in that header */
	bool has_start_line;
	uint8_t inline_record_size;
	uint8_t pcdata[3];   /* index by enum pclntab_pcdata */
	uint8_t funcdata[4]; /* index by enum pclntab_funcdata */
};

/* A part of the bytes, from its beginning to the end of all. */
struct pclntab_part {
	const uint8_t *bytes;
	size_t size;
};

struct pclntab {
	const struct pclntab_format *format;
	taddr text;
	uint64_t load_bias;
	uint32_t func_count;
	uint32_t quantum; /* instructions are multiples of it */
	struct pclntab_part names, cutab, files, pctab, funcs;
	const uint8_t *functab; /* func_count entries and the end of the last; checked */
};

/* A cursor at an offset of a part. */
must_check struct error *pclntab_seek(const struct pclntab_part *part, const char *name,
				      uint64_t offset, struct cursor *ret);

/* A string of a part, in the borrowed bytes. */
must_check struct error *pclntab_string(const struct pclntab_part *part, const char *name,
					uint64_t offset, const char **ret);

/* Value of the pc-value table at an offset of pctab for a pc; -1 where there is no table. */
must_check struct error *pclntab_value(const struct pclntab *table, const struct pclntab_func *func,
				       uint32_t offset, taddr pc, int32_t *ret);

#endif
