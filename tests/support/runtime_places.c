/*
 * For tests: where the structures of a stopped Go process lie that a scan reads, one a line:
 *
 *   KIND ADDRESS SIZE
 *
 * A place may be unmapped in part (reserved address space); whoever writes there finds out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/goruntime/arena.h"
#include "agent/goruntime/goroutine.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/processor.h"
#include "agent/goruntime/span.h"
#include "tests/support/live_target.h"

struct places {
	struct live_target target;
	struct span_table *spans;
	struct module_table *modules;
	struct goroutine_table *goroutines;
};

static void print_place(const char *kind, taddr addr, uint64_t size)
{
	if (addr && size)
		printf("%s %" PRIu64 " %" PRIu64 "\n", kind, addr, size);
}

/* The first two words of a slice. */
static struct error *read_slice(struct memory *memory, taddr at, taddr *ret, uint64_t *ret_length)
{
	struct error *err = memory_u64(memory, at, ret);

	return err ? err : memory_u64(memory, at + 8, ret_length);
}

static void print_globals(const struct layout *l)
{
	print_place("mheap", l->global_mheap.addr, l->mheap.size);
	print_place("gc_controller", l->global_gc_controller.addr, l->global_gc_controller.size);
	print_place("memstats", l->global_memstats.addr, l->global_memstats.size);
	print_place("work", l->global_work.addr, l->global_work.size);
	print_place("gcphase", l->global_gcphase.addr, l->global_gcphase.size);
	print_place("allp", l->global_allp.addr, l->global_allp.size);
	print_place("allm", l->global_allm.addr, l->global_allm.size);
	print_place("allgs", l->global_allgs.addr, l->global_allgs.size);
	print_place("allgs", l->global_allglen.addr, l->global_allglen.size);
	print_place("allgs", l->global_allgptr.addr, l->global_allgptr.size);
	print_place("queues", l->global_allfin.addr, l->global_allfin.size);
	print_place("queues", l->global_gc_cleanups.addr, l->global_gc_cleanups.size);
	print_place("tables", l->global_gc_bits_arenas.addr, l->global_gc_bits_arenas.size);
	print_place("tables", l->global_persistent_chunks.addr, l->global_persistent_chunks.size);
	print_place("tables", l->global_bucket_hash.addr, l->global_bucket_hash.size);
	print_place("tables", l->global_vgetrandom_alloc.addr, l->global_vgetrandom_alloc.size);
	print_place("wait_reasons", l->global_wait_reason_strings.addr,
		    l->global_wait_reason_strings.size);
}

static struct error *print_mspan(const struct places *p, taddr mspan)
{
	const struct layout *l = p->target.layout;
	struct memory *memory = p->target.memory;
	uint64_t alloc_bits = 0, mark_bits = 0, special = 0, slots = 0;
	struct error *err = layout_read_field(memory, mspan, l->mspan_alloc_bits, &alloc_bits);

	if (!err)
		err = layout_read_field(memory, mspan, l->mspan_mark_bits, &mark_bits);
	if (!err)
		err = layout_read_field(memory, mspan, l->mspan_specials, &special);
	if (!err)
		err = layout_read_field(memory, mspan, l->mspan_elem_count, &slots);
	print_place("mspan", mspan, l->mspan.size);
	print_place("alloc_bits", alloc_bits, (slots + 63) / 64 * 8);
	print_place("mark_bits", mark_bits, (slots + 63) / 64 * 8);
	for (int i = 0; !err && special && i < 100; i++) {
		print_place("special", special, l->special_finalizer.size);
		err = layout_read_field(memory, special, l->special_next, &special);
	}
	return err;
}

static struct error *print_mspans(const struct places *p)
{
	const struct layout *l = p->target.layout;
	uint64_t length;
	taddr data;
	struct error *err = read_slice(
	    p->target.memory, l->global_mheap.addr + l->mheap_allspans.offset, &data, &length);

	if (!err)
		print_place("allspans", data, length * 8);
	for (uint64_t i = 0; !err && i < length; i++) {
		taddr mspan;

		err = memory_u64(p->target.memory, data + 8 * i, &mspan);
		if (!err)
			err = print_mspan(p, mspan);
	}
	return err;
}

/* The arenas' own tables, and their lists. */
static struct error *print_arenas(const struct places *p)
{
	const struct layout *l = p->target.layout;
	const struct arena_table *arenas = span_table_arenas(p->spans);
	uint64_t length;
	taddr data;
	struct error *err = read_slice(
	    p->target.memory, l->global_mheap.addr + l->mheap_arena_list.offset, &data, &length);

	if (err)
		return err;
	print_place("arena_list", data, length * 8);
	for (uint32_t i = 0; i < arena_table_count(arenas); i++) {
		taddr arena = arena_table_at(arenas, i)->metadata;

		print_place("arena_spans", arena + l->heap_arena_spans.offset,
			    l->heap_arena_spans.size);
		print_place("arena_bitmap", arena + l->heap_arena_bitmap.offset,
			    l->heap_arena_bitmap.size);
		print_place("arena", arena, l->heap_arena.size);
	}
	return NULL;
}

/* The first of the page allocator's tables of chunks, of which one stands for 4 MiB. */
static struct error *print_chunks(const struct places *p)
{
	const struct layout *l = p->target.layout;
	taddr rows = l->global_mheap.addr + l->mheap_page_chunks.offset;
	uint64_t length;
	taddr ranges;
	struct error *err = read_slice(
	    p->target.memory, l->global_mheap.addr + l->mheap_page_ranges.offset, &ranges, &length);

	if (!err)
		print_place("page_ranges", ranges, length * 16);
	for (uint64_t i = 0; !err && i < l->mheap_page_chunks.size / 8; i++) {
		taddr row, first;

		err = memory_u64(p->target.memory, rows + 8 * i, &row);
		if (err || !row)
			continue;
		first = span_table_at(p->spans, 0)->base - (taddr)l->const_arena_base.value;
		print_place("page_chunks",
			    row + (first >> 22) %
				      (UINT64_C(1) << l->const_palloc_chunks_l2_bits.value) *
				      l->palloc_data.size,
			    16 * l->palloc_data.size);
	}
	return err;
}

static struct error *print_processors(const struct places *p)
{
	const struct layout *l = p->target.layout;
	taddr *processors scoped(freep) = NULL;
	uint32_t count;
	struct error *err = processor_list(p->target.memory, l, &processors, &count);

	for (uint32_t i = 0; !err && i < count; i++) {
		uint64_t mcache = 0;

		print_place("p", processors[i], l->p.size);
		err = layout_read_field(p->target.memory, processors[i], l->p_mcache, &mcache);
		print_place("mcache", mcache, l->mcache.size);
	}
	return err;
}

static struct error *print_goroutines(const struct places *p)
{
	const struct layout *l = p->target.layout;
	const struct machine_table *machines = goroutine_table_machines(p->goroutines);
	uint64_t length;
	taddr data;
	struct error *err = read_slice(p->target.memory, l->global_allgs.addr, &data, &length);

	if (err)
		return err;
	print_place("allgs", data, length * 8);
	for (uint32_t i = 0; i < goroutine_table_count(p->goroutines); i++) {
		const struct goroutine *g = goroutine_table_at(p->goroutines, i);

		print_place("g", g->g, l->g.size);
		print_place("labels", g->labels, 64);
		print_place("defers", g->defers, l->defer.size);
		if (g->sp >= g->stack_lo && g->sp < g->stack_hi)
			print_place("stack", g->sp, g->stack_hi - g->sp);
	}
	for (uint32_t i = 0; i < machines->count; i++) {
		const struct machine *m = &machines->machines[i];

		print_place("m", m->m, l->m.size);
		print_place("signal_stack", m->signal_stack.lo,
			    m->signal_stack.hi - m->signal_stack.lo);
	}
	return NULL;
}

static struct error *print_modules(const struct places *p)
{
	const struct layout *l = p->target.layout;

	for (uint32_t i = 0; i < module_table_count(p->modules); i++) {
		const struct module *module = module_table_at(p->modules, i);
		uint64_t data_mask = 0, bss_mask = 0, length;
		taddr pcln;
		struct error *err = layout_read_field(p->target.memory, module->moduledata,
						      l->moduledata_data_mask, &data_mask);

		if (!err)
			err = layout_read_field(p->target.memory, module->moduledata,
						l->moduledata_bss_mask, &bss_mask);
		if (!err)
			err = read_slice(p->target.memory,
					 module->moduledata + l->moduledata_pcln_slice.offset,
					 &pcln, &length);
		if (err)
			return err;
		print_place("moduledata", module->moduledata, l->moduledata.size);
		print_place("pclntab", pcln, length);
		print_place("masks", data_mask, (module->edata - module->data) / 64);
		print_place("masks", bss_mask, (module->ebss - module->bss) / 64);
		print_place("types", module->types, module->etypes - module->types);
		print_place("rodata", module->gofunc, module->gofunc ? 1 << 16 : 0);
		print_place("data", module->data, module->edata - module->data);
		print_place("bss", module->bss, module->ebss - module->bss);
	}
	return NULL;
}

static void print_objects(const struct places *p)
{
	for (uint32_t i = 0; i < span_table_count(p->spans); i++) {
		const struct span *span = span_table_at(p->spans, i);

		if (span->state == SPAN_IN_USE && !span->noscan)
			print_place("objects", span->base, span->page_count * GO_PAGE_SIZE);
	}
}

static struct error *read_tables(struct places *p)
{
	struct error *err = span_table_read(p->target.memory, p->target.layout, &p->spans);

	if (!err)
		err = module_table_read(p->target.memory, p->target.layout, &p->modules);
	if (!err)
		err = goroutine_table_read(p->target.memory, p->target.layout, p->modules, NULL, 0,
					   &p->goroutines);
	return err;
}

static struct error *run(pid_t pid, struct places *p)
{
	struct error *err = live_target_init(pid, &p->target);

	if (!err)
		err = read_tables(p);
	if (err)
		return err;
	print_globals(p->target.layout);
	print_objects(p);
	err = print_mspans(p);
	if (!err)
		err = print_arenas(p);
	if (!err)
		err = print_chunks(p);
	if (!err)
		err = print_processors(p);
	if (!err)
		err = print_goroutines(p);
	return err ? err : print_modules(p);
}

int main(int argc, char **argv)
{
	struct places places = { .target.exe_fd = -1 };
	struct error *err = run(argc > 1 ? atoi(argv[1]) : 0, &places);

	goroutine_table_free(places.goroutines);
	module_table_free(places.modules);
	span_table_free(places.spans);
	live_target_fini(&places.target);
	if (!err)
		return 0;
	fprintf(stderr, "runtime_places: %s\n", error_message(err));
	error_free(err);
	return 1;
}
