/*
 * Tables that give each pc of a function a value: pairs of a value's change and a pc's change, as
 * runtime/symtab.go (pcvalue, step) reads them; and funcdata, which gives the function tables.
 */
#include <inttypes.h>

#include "agent/binary/pclntab.h"
#include "agent/binary/pclntab_table.h"

enum { FUNCDATA_NONE = UINT32_MAX };

/* A varint as the runtime reads it: bits beyond 32 are dropped. */
static struct error *read_varint(struct cursor *c, uint32_t *ret)
{
	uint64_t value;
	struct error *err = cursor_uvarint(c, &value);

	if (err)
		return err;
	*ret = (uint32_t)value;
	return NULL;
}

struct error *pclntab_value(const struct pclntab *table, const struct pclntab_func *func,
			    uint32_t offset, taddr pc, int32_t *ret)
{
	const uint64_t target = pc - func->entry;
	uint64_t reached = 0;
	uint32_t value = (uint32_t)-1;
	struct cursor c;
	struct error *err;

	if (!offset) {
		*ret = -1;
		return NULL;
	}
	err = pclntab_seek(&table->pctab, "pc-value table", offset, &c);
	for (bool first = true; !err; first = false) {
		uint32_t value_change, pc_change;

		err = read_varint(&c, &value_change);
		if (!err && !value_change && !first)
			return error_new(ERROR_FORMAT,
					 "pc-value table of %.64s ends before +0x%" PRIx64,
					 func->name, target);
		if (!err)
			err = read_varint(&c, &pc_change);
		if (err)
			break;
		value += -(value_change & 1) ^ value_change >> 1;
		reached += (uint64_t)pc_change * table->quantum;
		if (target < reached) {
			*ret = (int32_t)value;
			return NULL;
		}
	}
	return err;
}

/* syscall.rawVforkSyscall pops its own return address: the size is -8 there. */
struct error *pclntab_frame_size(const struct pclntab *table, const struct pclntab_func *func,
				 taddr pc, int32_t *ret)
{
	if (!func->pcsp)
		return error_new(ERROR_FORMAT, "%.64s has no frame sizes", func->name);
	return pclntab_value(table, func, func->pcsp, pc, ret);
}

struct error *pclntab_pcdata(const struct pclntab *table, const struct pclntab_func *func,
			     enum pclntab_pcdata which, taddr pc, int32_t *ret)
{
	uint32_t index = table->format->pcdata[which], offset;
	struct cursor c;
	struct error *err;

	if (index >= func->npcdata) {
		*ret = -1;
		return NULL;
	}
	err = pclntab_seek(&table->funcs, "pcdata", func->record + index * sizeof(uint32_t), &c);
	if (!err)
		err = cursor_u32le(&c, &offset);
	if (err)
		return err;
	return pclntab_value(table, func, offset, pc, ret);
}

/* Absolute pointers, aligned; nil is none. */
static struct error *absolute_funcdata(const struct pclntab *table, uint64_t array, uint32_t index,
				       taddr *ret)
{
	struct cursor c;
	uint64_t pointer;
	struct error *err =
	    pclntab_seek(&table->funcs, "funcdata", ((array + 7) & ~UINT64_C(7)) + index * 8, &c);

	if (!err)
		err = cursor_u64le(&c, &pointer);
	if (err)
		return err;
	*ret = pointer ? pointer + table->load_bias : 0;
	return NULL;
}

struct error *pclntab_funcdata(const struct pclntab *table, const struct pclntab_func *func,
			       enum pclntab_funcdata which, taddr gofunc, taddr *ret)
{
	uint32_t index = table->format->funcdata[which], offset;
	uint64_t array = func->record + (uint64_t)func->npcdata * sizeof(uint32_t);
	struct cursor c;
	struct error *err;

	if (index >= func->nfuncdata) {
		*ret = 0;
		return NULL;
	}
	if (table->format->absolute)
		return absolute_funcdata(table, array, index, ret);
	err = pclntab_seek(&table->funcs, "funcdata", array + index * sizeof(uint32_t), &c);
	if (!err)
		err = cursor_u32le(&c, &offset);
	if (err)
		return err;
	*ret = offset == FUNCDATA_NONE ? 0 : gofunc + offset;
	return NULL;
}
