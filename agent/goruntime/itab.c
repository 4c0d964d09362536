/*
 * An itab names its interface and its type, and repeats the type's hash; one made at run time has 0
 * there since go1.22. Whatever passes for one must have all of that.
 */
#include "agent/goruntime/itab.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/go_type_table.h"
#include "agent/goruntime/layout.h"
#include "proto/base/bytes.h"

enum { WORD = 8, ITAB_MAX = 64, TABLE_SIZE_MAX = 1 << 22 };

static struct error *not_an_itab(taddr itab)
{
	return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no itab", itab);
}

static struct error *read_itab(struct go_types *types, taddr itab, taddr *ret_interface,
			       taddr *ret_type, uint32_t *ret_hash)
{
	const struct layout *l = types->layout;
	uint8_t raw[ITAB_MAX];
	struct error *err;

	if (itab % WORD || !l->itab.size || l->itab.size > ITAB_MAX)
		return not_an_itab(itab);
	err = type_memory_read(&types->memory, itab, raw, l->itab.size);
	if (err)
		return err;
	*ret_interface = load_uint_le(raw + l->itab_interface.offset, l->itab_interface.size);
	*ret_type = load_uint_le(raw + l->itab_type.offset, l->itab_type.size);
	*ret_hash = (uint32_t)load_uint_le(raw + l->itab_hash.offset, l->itab_hash.size);
	return NULL;
}

static struct error *check_itab(struct go_types *types, taddr itab, taddr *ret_type)
{
	struct rtype interface, type;
	taddr interface_addr, type_addr;
	uint32_t hash;
	struct error *err = read_itab(types, itab, &interface_addr, &type_addr, &hash);

	if (!err)
		err = rtype_read(&types->source, interface_addr, &interface);
	if (!err)
		err = rtype_read(&types->source, type_addr, &type);
	if (err)
		return err;
	if (interface.kind != GO_KIND_INTERFACE || !interface.item_count ||
	    type.kind == GO_KIND_INTERFACE || (hash && hash != type.hash))
		return not_an_itab(itab);
	*ret_type = type_addr;
	return NULL;
}

struct error *itab_meet(struct go_types *types, taddr itab, type_id *ret)
{
	taddr type = 0;
	struct error *err;

	*ret = TYPE_UNKNOWN;
	if (go_types_known(&types->by_itab, itab, ret))
		return NULL;
	err = check_itab(types, itab, &type);
	if (!err)
		err = go_types_meet_descriptor(types, type, ret);
	if (err && go_types_is_final(err))
		return err;
	error_free(err);
	return go_types_remember(&types->by_itab, itab, *ret);
}

/* runtime.itabTable points to {size, count, entries}, an open hash table. */
static struct error *read_table(struct go_types *types, taddr *ret_entries, uint64_t *ret_size)
{
	const struct layout *l = types->layout;
	taddr table;
	struct error *err = type_memory_u64(&types->memory, l->global_itab_table.addr, &table);

	if (!err)
		err = type_memory_u64(&types->memory, table + l->itab_table_size.offset, ret_size);
	if (!err && *ret_size > TABLE_SIZE_MAX)
		err = error_new(ERROR_LIMIT, "%" PRIu64 " itabs", *ret_size);
	if (!err)
		*ret_entries = table + l->itab_table_entries.offset;
	return err;
}

struct error *itab_keep(struct go_types *types)
{
	uint64_t size = 0;
	taddr entries = 0;
	struct error *err = NULL;

	if (layout_has(types->layout, global_itab_table))
		err = read_table(types, &entries, &size);
	for (uint64_t i = 0; i < size && !err; i++) {
		taddr itab;

		err = type_memory_u64(&types->memory, entries + i * WORD, &itab);
		if (!err && itab && itab < UINT64_MAX - ITAB_MAX)
			err = type_memory_keep(&types->memory, itab, itab + ITAB_MAX);
	}
	if (!err || go_types_is_final(err))
		return err;
	error_free(err);
	return NULL;
}
