/*
 * runtime.allgs lists every g that was ever made; dead ones stay and are used again
 * (runtime/proc.go, allgadd). A g belongs to the M whose curg it is while it runs.
 */
#include "agent/goruntime/goroutine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/addr_map.h"
#include "agent/goruntime/function_role.h"
#include "agent/goruntime/goroutine_start.h"
#include "agent/goruntime/layout.h"
#include "agent/goruntime/machine.h"
#include "agent/goruntime/pc_facts.h"
#include "proto/base/bytes.h"

enum {
	GOROUTINES_MAX = 1 << 24,
	G_SIZE_MAX = 16 << 10, /* it has about 450 bytes */
	STATUS_SCAN_BIT = 0x1000,
	WAIT_REASONS_MAX = 256,
	WAIT_REASON_SIZE_MAX = 128,
	FING_RUNNING_FINALIZER = 1 << 1, /* runtime/mfinal.go, since go1.20 */
	COMPLAINT_SIZE = 256,
};

struct goroutine_table {
	struct goroutine *goroutines;
	uint32_t count;
	struct machine_table machines;
	uint64_t unreadable;
	char *wait_reasons[WAIT_REASONS_MAX];
	char complaint[COMPLAINT_SIZE];
};

/* What reading the table needs besides the table. */
struct reader {
	struct memory *memory;
	const struct layout *layout;
	struct pc_cache *cache;
	struct addr_map seen; /* goroutines by g */
	bool finalizer_runs;  /* the finalizer goroutine is in code of the user */
	bool stacks_move;
	uint64_t *addresses; /* of the gs */
	uint64_t address_count;
	uint64_t nil_count, repeated_count, unreadable_count;
};

void goroutine_table_free(struct goroutine_table *table)
{
	if (!table)
		return;
	for (unsigned i = 0; i < WAIT_REASONS_MAX; i++)
		free(table->wait_reasons[i]);
	machine_table_fini(&table->machines);
	free(table->goroutines);
	free(table);
}

static void complain(struct goroutine_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first complaint stays. */
static void complain(struct goroutine_table *table, const char *format, ...)
{
	va_list args;

	if (table->complaint[0])
		return;
	va_start(args, format);
	vsnprintf(table->complaint, sizeof(table->complaint), format, args);
	va_end(args);
}

/*
 * How many gs there are by both counts. allgs is appended to before allglen is set, under a lock
 * (runtime/proc.go, allgadd), so that the latter may be one behind; up to it every g is there.
 */
static uint64_t count_of(struct goroutine_table *table, uint64_t slice_count, uint64_t allglen)
{
	if (allglen > slice_count || slice_count - allglen > 1)
		complain(table, "allglen is %" PRIu64 ", but allgs has %" PRIu64 " elements",
			 allglen, slice_count);
	return allglen < slice_count ? allglen : slice_count;
}

/* Where the array of gs lies: by allgptr, if there is one, which is meant to be read unlocked. */
static struct error *find_array(struct reader *reader, struct goroutine_table *table, taddr *ret,
				uint64_t *ret_count)
{
	const struct layout *layout = reader->layout;
	uint64_t slice_count, allglen;
	struct error *err = memory_u64(reader->memory, layout->global_allgs.addr, ret);

	if (!err)
		err = memory_u64(reader->memory, layout->global_allgs.addr + 8, &slice_count);
	if (!err)
		err = memory_u64(reader->memory, layout->global_allglen.addr, &allglen);
	if (!err && layout_has(layout, global_allgptr))
		err = memory_u64(reader->memory, layout->global_allgptr.addr, ret);
	if (err)
		return err;
	*ret_count = count_of(table, slice_count, allglen);
	return NULL;
}

static struct error *read_addresses(struct reader *reader, struct goroutine_table *table)
{
	taddr array;
	struct error *err = find_array(reader, table, &array, &reader->address_count);

	if (!err)
		err = memory_read_words(reader->memory, array, reader->address_count,
					GOROUTINES_MAX, &reader->addresses);
	return err ? error_context(err, "allgs") : NULL;
}

static uint64_t number(const uint8_t *g, struct layout_field field)
{
	return field.size ? load_uint_le(g + field.offset, field.size) : 0;
}

static void decode_g(const struct layout *layout, const uint8_t *bytes, struct goroutine *g)
{
	uint64_t status = number(bytes, layout->g_status);
	bool async = number(bytes, layout->g_async_safe_point) != 0;

	g->id = number(bytes, layout->g_id);
	g->parent_id = number(bytes, layout->g_parent_id);
	g->status = (uint32_t)(status & ~(uint64_t)STATUS_SCAN_BIT);
	g->scan_bit = status & STATUS_SCAN_BIT;
	g->wait_reason = (uint8_t)number(bytes, layout->g_wait_reason);
	g->wait_since = (int64_t)number(bytes, layout->g_wait_since);
	g->stack_lo = number(bytes, layout->g_stack_lo);
	g->stack_hi = number(bytes, layout->g_stack_hi);
	g->start_pc = number(bytes, layout->g_start_pc);
	g->created_pc = number(bytes, layout->g_created_pc);
	g->m = number(bytes, layout->g_m);
	g->locked_m = number(bytes, layout->g_locked_m);
	g->stack_top = number(bytes, layout->g_stack_top);
	g->context = number(bytes, layout->g_sched_ctxt);
	g->defers = number(bytes, layout->g_defer);
	g->panic = number(bytes, layout->g_panic);
	g->vector_state = async ? number(bytes, layout->g_vector_state) : 0;
	g->labels = number(bytes, layout->g_labels);
}

/*
 * runtime/traceback.go, isSystemGoroutine: by the name of the function that it began with. That of
 * the finalizer goroutine was renamed in go1.25, which added the cleanup goroutines.
 */
static bool is_system(const struct reader *reader, const char *start, bool running_cleanups)
{
	if (!strcmp(start, "runtime.main") || !strcmp(start, "runtime.handleAsyncEvent") ||
	    !strcmp(start, "runtime.corostart"))
		return false;
	if (!strcmp(start, "runtime.runfinq") || !strcmp(start, "runtime.runFinalizers"))
		return !reader->finalizer_runs;
	if (!strcmp(start, "runtime.runCleanups"))
		return !running_cleanups;
	return !strncmp(start, "runtime.", strlen("runtime."));
}

static struct error *classify(const struct reader *reader, const uint8_t *bytes,
			      struct goroutine *g)
{
	struct pc_facts *facts;
	struct error *err = pc_cache_find(reader->cache, g->start_pc, &facts);

	if (err && error_code(err) != ERROR_NOMEM) {
		error_free(err); /* the runtime takes what it cannot resolve for the user's */
		return NULL;
	}
	if (!err && facts)
		g->system = is_system(reader, facts->function->func.name,
				      number(bytes, reader->layout->g_running_cleanups));
	return err;
}

static void find_start(const struct reader *reader, const struct goroutine_table *table,
		       const uint8_t *bytes, struct goroutine *g)
{
	const struct layout *layout = reader->layout;
	const struct saved_registers saved = {
		.sched_pc = number(bytes, layout->g_sched_pc),
		.sched_sp = number(bytes, layout->g_sched_sp),
		.syscall_pc = number(bytes, layout->g_syscall_pc),
		.syscall_sp = number(bytes, layout->g_syscall_sp),
	};

	goroutine_find_start(g, &saved, machine_table_find(&table->machines, g->m),
			     reader->stacks_move);
}

/* Reads one g into the table. One that is not there, or there before, is counted and left out. */
static struct error *read_goroutine(struct reader *reader, struct goroutine_table *table,
				    taddr addr, uint8_t *bytes)
{
	struct goroutine *g = &table->goroutines[table->count];
	struct error *err;

	if (!addr || addr_map_get(&reader->seen, addr)) {
		reader->nil_count += !addr;
		reader->repeated_count += addr != 0;
		return NULL;
	}
	err = memory_read(reader->memory, addr, bytes, reader->layout->g.size);
	if (err && error_code(err) == ERROR_FAULT) {
		error_free(err);
		reader->unreadable_count++;
		return NULL;
	}
	if (!err)
		err = addr_map_put(&reader->seen, addr, g);
	if (err)
		return err;
	*g = (struct goroutine){ .g = addr };
	decode_g(reader->layout, bytes, g);
	find_start(reader, table, bytes, g);
	table->count++;
	return classify(reader, bytes, g);
}

static struct error *read_goroutines(struct reader *reader, struct goroutine_table *table)
{
	uint8_t *bytes scoped(freep) = malloc(reader->layout->g.size);
	struct error *err = NULL;

	table->goroutines =
	    calloc(reader->address_count ? reader->address_count : 1, sizeof(*table->goroutines));
	if (!bytes || !table->goroutines)
		return &error_nomem;
	for (uint64_t i = 0; !err && i < reader->address_count; i++)
		err = read_goroutine(reader, table, reader->addresses[i], bytes);
	table->unreadable = reader->unreadable_count;
	if (reader->nil_count || reader->repeated_count || reader->unreadable_count)
		complain(table,
			 "of %" PRIu64 " gs in allgs %" PRIu64 " are nil, %" PRIu64
			 " listed twice and %" PRIu64 " not readable",
			 reader->address_count, reader->nil_count, reader->repeated_count,
			 reader->unreadable_count);
	return err;
}

/*
 * The scheduler's own count of Ms: those it has made less those that have ended (runtime/proc.go,
 * mcount). Each is numbered before it is listed, and taken off the list before it is counted as
 * ended, by a thread that is there for it; the first M stays listed when it ends.
 */
static struct error *check_machine_count(struct reader *reader, uint32_t thread_count,
					 struct goroutine_table *table)
{
	const struct layout *l = reader->layout;
	uint32_t listed = table->machines.count;
	uint64_t made, ended;
	struct error *err =
	    layout_read_field(reader->memory, l->global_sched.addr, l->sched_m_next, &made);

	if (!err)
		err = layout_read_field(reader->memory, l->global_sched.addr, l->sched_m_freed,
					&ended);
	if (err)
		return error_context(err, "sched");
	if (made - ended + 1 < listed || made - ended > (uint64_t)listed + thread_count)
		complain(table, "the scheduler counts %" PRId64 " Ms, %" PRIu32 " are listed",
			 (int64_t)(made - ended), listed);
	return NULL;
}

/*
 * An M with a P runs on a thread. One that ends gives its number up some time before its P
 * (runtime/proc.go, mexit; os_linux.go, unminit, since go1.22): a thread that is nobody else's is
 * there for it.
 */
static void check_machine_threads(uint32_t thread_count, struct goroutine_table *table)
{
	uint32_t lost = 0, ending = 0, matched = 0;

	for (uint32_t i = 0; i < table->machines.count; i++) {
		const struct machine *machine = &table->machines.machines[i];

		matched += machine->thread != NULL;
		lost += machine->p && !machine->thread && machine->procid;
		ending += machine->p && !machine->thread && !machine->procid;
	}
	if (matched + ending > thread_count)
		lost += matched + ending - thread_count;
	if (lost)
		complain(table,
			 "%" PRIu32 " of %" PRIu32 " Ms hold a P, but none of the %" PRIu32
			 " threads is theirs",
			 lost, table->machines.count, thread_count);
}

static struct error *read_machines(struct reader *reader, const struct stopped_thread *threads,
				   uint32_t thread_count, struct goroutine_table *table)
{
	struct error *err = machine_table_read(reader->memory, reader->layout, reader->cache,
					       threads, thread_count, &table->machines);

	if (err)
		return error_context(err, "Ms");
	for (uint32_t i = 0; i < table->machines.count; i++)
		reader->stacks_move |= table->machines.machines[i].moves_stack;
	err = check_machine_count(reader, thread_count, table);
	if (!err)
		check_machine_threads(thread_count, table);
	return err;
}

/* To go1.19 a flag of its own, then a bit of the goroutine's status; runtime/mfinal.go. */
static struct error *read_finalizer_state(struct reader *reader)
{
	const struct layout *layout = reader->layout;
	uint32_t status = 0;
	uint8_t flag = 0;
	struct error *err = NULL;

	if (layout_has(layout, global_fing_status))
		err = memory_u32(reader->memory, layout->global_fing_status.addr, &status);
	else if (layout_has(layout, global_fing_running))
		err = memory_u8(reader->memory, layout->global_fing_running.addr, &flag);
	reader->finalizer_runs = flag || status & FING_RUNNING_FINALIZER;
	return err;
}

/* An array of Go strings; runtime/runtime2.go, waitReasonStrings. One that is amiss is unknown. */
static struct error *read_wait_reasons(struct reader *reader, struct goroutine_table *table)
{
	const struct layout_global strings = reader->layout->global_wait_reason_strings;

	for (unsigned i = 0; i < WAIT_REASONS_MAX && 16 * (i + 1) <= strings.size; i++) {
		size_t size;
		struct error *err =
		    memory_go_string(reader->memory, strings.addr + 16 * i, WAIT_REASON_SIZE_MAX,
				     &table->wait_reasons[i], &size);

		if (err && error_code(err) == ERROR_NOMEM)
			return err;
		error_free(err);
	}
	return NULL;
}

static struct error *read_all(struct reader *reader, const struct stopped_thread *threads,
			      uint32_t thread_count, struct goroutine_table *table)
{
	struct error *err = read_machines(reader, threads, thread_count, table);

	if (!err)
		err = read_finalizer_state(reader);
	if (!err)
		err = read_wait_reasons(reader, table);
	if (!err)
		err = read_addresses(reader, table);
	return err ? err : read_goroutines(reader, table);
}

struct error *goroutine_table_read(struct memory *memory, const struct layout *layout,
				   const struct module_table *modules,
				   const struct stopped_thread *threads, uint32_t thread_count,
				   struct goroutine_table **ret)
{
	struct goroutine_table *table scoped(goroutine_table_freep) = calloc(1, sizeof(*table));
	struct pc_cache *cache scoped(pc_cache_freep) = NULL;
	struct reader reader = { .memory = memory, .layout = layout };
	struct error *err;

	if (!table)
		return &error_nomem;
	if (layout->g.size > G_SIZE_MAX)
		return error_new(ERROR_LIMIT, "a g of %" PRIu32 " bytes", layout->g.size);
	err = pc_cache_new(memory, layout, modules, &cache);
	if (err)
		return err;
	reader.cache = cache;
	err = read_all(&reader, threads, thread_count, table);
	addr_map_fini(&reader.seen);
	free(reader.addresses);
	if (err)
		return error_context(err, "goroutines");
	*ret = take(table);
	return NULL;
}

uint32_t goroutine_table_count(const struct goroutine_table *table)
{
	return table->count;
}

const struct goroutine *goroutine_table_at(const struct goroutine_table *table, uint32_t index)
{
	return &table->goroutines[index];
}

bool goroutine_is_alive(const struct goroutine *g)
{
	return g->status != GOROUTINE_IDLE && g->status != GOROUTINE_DEAD &&
	       g->status != GOROUTINE_DEADEXTRA;
}

uint64_t goroutine_stack_bytes(const struct goroutine *g)
{
	return g->stack_lo < g->stack_hi ? g->stack_hi - g->stack_lo : 0;
}

uint64_t goroutine_table_unreadable(const struct goroutine_table *table)
{
	return table->unreadable;
}

const struct machine_table *goroutine_table_machines(const struct goroutine_table *table)
{
	return &table->machines;
}

const char *goroutine_status_name(uint32_t status)
{
	static const char *const names[] = {
		[GOROUTINE_IDLE] = "idle",           [GOROUTINE_RUNNABLE] = "runnable",
		[GOROUTINE_RUNNING] = "running",     [GOROUTINE_SYSCALL] = "syscall",
		[GOROUTINE_WAITING] = "waiting",     [5] = "status 5",
		[GOROUTINE_DEAD] = "dead",           [7] = "status 7",
		[GOROUTINE_COPYSTACK] = "copystack", [GOROUTINE_PREEMPTED] = "preempted",
		[GOROUTINE_LEAKED] = "leaked",       [GOROUTINE_DEADEXTRA] = "deadextra",
	};

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown status";
}

const char *goroutine_wait_reason(const struct goroutine_table *table, uint8_t reason)
{
	return table->wait_reasons[reason];
}

const char *goroutine_table_complaint(const struct goroutine_table *table)
{
	return table->complaint[0] ? table->complaint : NULL;
}
