#include "agent/goruntime/special_list.h"

#include "agent/goruntime/layout.h"
#include "agent/goruntime/span.h"
#include "proto/base/bytes.h"

enum {
	RECORD_SIZE_MAX = 64,
	CHAIN_MAX = 1 << 24, /* records of one span: an object may have any number of cleanups */
};

struct raw_record {
	taddr next;
	uint64_t offset;
	uint64_t kind;
};

static struct error *read_record(struct memory *memory, const struct layout *l, taddr addr,
				 struct raw_record *ret)
{
	uint8_t raw[RECORD_SIZE_MAX];
	struct error *err;

	if (l->special.size > sizeof(raw))
		return error_new(ERROR_UNSUPPORTED, "special records of %u bytes", l->special.size);
	err = memory_read(memory, addr, raw, l->special.size);
	if (err)
		return err;
	ret->next = load_uint_le(raw + l->special_next.offset, l->special_next.size);
	ret->offset = load_uint_le(raw + l->special_offset.offset, l->special_offset.size);
	ret->kind = load_uint_le(raw + l->special_kind.offset, l->special_kind.size);
	return NULL;
}

/* The numbers are constants of the runtime and have changed twice; runtime/mheap.go. */
static enum special_kind kind_of(const struct layout *l, uint64_t number)
{
	const struct {
		const struct layout_constant *number;
		enum special_kind kind;
	} kinds[] = {
		{ &l->const_special_finalizer, SPECIAL_FINALIZER },
		{ &l->const_special_weak_handle, SPECIAL_WEAK_HANDLE },
		{ &l->const_special_cleanup, SPECIAL_CLEANUP },
		{ &l->const_special_profile, SPECIAL_PROFILE },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].number->known && (uint64_t)kinds[i].number->value == number)
			return kinds[i].kind;
	return SPECIAL_OTHER;
}

struct error *special_list_walk(struct memory *memory, const struct layout *layout,
				const struct span *span, special_visit *visit, void *arg,
				bool *ret_cut)
{
	taddr addr = span->specials, anchor = 0;
	uint64_t last_offset = 0, size = span->elem_size * span->elem_count;

	*ret_cut = false;
	for (uint32_t i = 0; addr; i++) {
		struct special_record record = { .addr = addr };
		struct raw_record raw;
		struct error *err = read_record(memory, layout, addr, &raw);

		if (err && error_code(err) != ERROR_FAULT)
			return err;
		/* A cycle meets the record that is remembered at each power of two. */
		if (err || raw.offset < last_offset || raw.offset >= size || addr == anchor ||
		    i >= CHAIN_MAX) {
			error_free(err);
			*ret_cut = true;
			return NULL;
		}
		if ((i & (i - 1)) == 0)
			anchor = addr;
		record.slot = (uint32_t)(raw.offset / span->elem_size);
		record.kind = kind_of(layout, raw.kind);
		err = visit(arg, span, &record);
		if (err)
			return err;
		last_offset = raw.offset;
		addr = raw.next;
	}
	return NULL;
}
