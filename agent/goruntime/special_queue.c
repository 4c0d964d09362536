/*
 * The queues of what is about to be called, and the tiny blocks. Finalizers and (since go1.25)
 * cleanups wait in blocks outside of the heap, all of which are chained, whether in use or not, and
 * say how many of their entries are; cleanups of go1.24 wait among the finalizers. The collector
 * scans these blocks, and marks the block that each P makes tiny objects in, since it may be
 * pointed to by a register alone.
 *
 * runtime/mfinal.go, mcleanup.go, mgcmark.go (markroot, gcMarkTinyAllocs).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/processor.h"
#include "agent/goruntime/root.h"
#include "agent/goruntime/special.h"

enum {
	WORD = 8,
	BLOCKS_MAX = 1 << 24, /* of a chain */
	ENTRY_WORDS_MAX = 8,
};

/* A chain of blocks of entries, some words of which are pointers. */
struct chain {
	const char *name;
	enum root_kind kind;
	struct layout_field link, count, entries;
	uint32_t entry_size;
	uint32_t words[ENTRY_WORDS_MAX]; /* offsets in an entry */
	uint32_t word_count;
};

static struct error *add_word(struct memory *memory, enum root_kind kind, taddr slot,
			      struct root_sink *sink)
{
	struct root root = { .kind = kind, .goroutine = ROOT_NO_GOROUTINE, .slot = slot };
	struct error *err = memory_u64(memory, slot, &root.value);

	return err ? err : sink->add(sink, &root);
}

static struct error *add_block(struct memory *memory, const struct chain *chain, taddr block,
			       struct root_sink *sink)
{
	uint64_t count;
	struct error *err = layout_read_field(memory, block, chain->count, &count);

	if (err)
		return err;
	if (count > chain->entries.size / chain->entry_size)
		return error_new(ERROR_CORRUPT_TARGET, "a block of %" PRIu64 " entries", count);
	for (uint64_t i = 0; i < count; i++) {
		taddr entry = block + chain->entries.offset + i * chain->entry_size;

		for (uint32_t k = 0; k < chain->word_count; k++) {
			err = add_word(memory, chain->kind, entry + chain->words[k], sink);
			if (err)
				return err;
		}
	}
	return NULL;
}

static struct error *add_chain(struct memory *memory, const struct chain *chain, taddr head,
			       struct root_sink *sink)
{
	taddr block, anchor = 0;
	struct error *err = memory_u64(memory, head, &block);

	for (uint32_t i = 0; !err && block; i++) {
		/* A cycle meets the block that is remembered at each power of two. */
		if (i >= BLOCKS_MAX || block == anchor)
			err = error_new(ERROR_CORRUPT_TARGET, "a chain without end");
		else
			err = add_block(memory, chain, block, sink);
		if ((i & (i - 1)) == 0)
			anchor = block;
		if (!err)
			err = layout_read_field(memory, block, chain->link, &block);
	}
	return err ? error_context(err, "%s", chain->name) : NULL;
}

static struct error *add_finalizers(struct memory *memory, const struct layout *l,
				    struct root_sink *sink)
{
	struct chain chain = {
		.name = "finalizer queue",
		.kind = ROOT_FINALIZER_QUEUE,
		.link = l->fin_block_alllink,
		.count = l->fin_block_count,
		.entries = l->fin_block_entries,
		.entry_size = l->finalizer.size,
		.words = { l->finalizer_fn.offset, l->finalizer_arg.offset,
			   l->finalizer_fint.offset, l->finalizer_ot.offset },
		.word_count = 4,
	};

	return add_chain(memory, &chain, l->global_allfin.addr, sink);
}

/* Entries are functions, or since go1.26 structs (cleanupFn) all of whose words are pointers. */
static struct error *add_cleanups(struct memory *memory, const struct layout *l,
				  struct root_sink *sink)
{
	struct chain chain = {
		.name = "cleanup queue",
		.kind = ROOT_CLEANUP_QUEUE,
		.link = l->cleanup_block_alllink,
		.count = l->cleanup_block_count,
		.entries = l->cleanup_block_entries,
		.entry_size = layout_has(l, cleanup_fn) ? l->cleanup_fn.size : WORD,
	};

	if (!layout_has(l, global_gc_cleanups) || !layout_has(l, cleanup_queue_all) ||
	    !layout_has(l, cleanup_block_entries))
		return NULL;
	while (chain.word_count < ENTRY_WORDS_MAX && chain.word_count < chain.entry_size / WORD) {
		chain.words[chain.word_count] = chain.word_count * WORD;
		chain.word_count++;
	}
	return add_chain(memory, &chain, l->global_gc_cleanups.addr + l->cleanup_queue_all.offset,
			 sink);
}

static struct error *add_tiny_blocks(struct memory *memory, const struct layout *l,
				     struct root_sink *sink)
{
	taddr *processors scoped(freep) = NULL;
	uint32_t count;
	struct error *err = processor_list(memory, l, &processors, &count);

	for (uint32_t i = 0; !err && i < count; i++) {
		taddr mcache;

		err = layout_read_field(memory, processors[i], l->p_mcache, &mcache);
		if (!err && mcache)
			err =
			    add_word(memory, ROOT_TINY_BLOCK, mcache + l->mcache_tiny.offset, sink);
	}
	return err ? error_context(err, "tiny blocks") : NULL;
}

struct error *special_queue_roots(struct memory *memory, const struct layout *layout,
				  struct root_sink *sink)
{
	struct error *err = add_finalizers(memory, layout, sink);

	if (!err)
		err = add_cleanups(memory, layout, sink);
	if (!err)
		err = add_tiny_blocks(memory, layout, sink);
	return err;
}
