#include "tests/support/canned.h"

#include <stdbool.h>
#include <string.h>

#include "tests/support/canned_labels.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
}

/* 2026-02-03T02:58:11.25Z, and a start 6 days and 4 hours before. */
static const uint64_t scan_time_ns = 1770087491250000000, start_time_ns = 1769552291120000000;

static Goheapd__Access *access_of(uint32_t uid)
{
	static Goheapd__Access access;
	static uint32_t uids[1], gids[1];

	uids[0] = gids[0] = uid;
	access = (Goheapd__Access)GOHEAPD__ACCESS__INIT;
	access.n_uids = access.n_gids = 1;
	access.uids = uids;
	access.gids = gids;
	access.dumpable = true;
	access.same_user_namespace = true;
	return &access;
}

Goheapd__Process canned_process(void)
{
	Goheapd__Process process = GOHEAPD__PROCESS__INIT;

	process.pid = CANNED_PID;
	process.start_ticks = CANNED_TICKS;
	process.start_time_ns = start_time_ns;
	process.comm = bytes("checkout");
	process.has_exe = process.has_go_version = process.has_cgroup = process.has_container_id =
	    process.has_rss_bytes = true;
	process.exe = bytes("/usr/bin/checkout");
	process.go_version = bytes("go1.26.11");
	process.uid = 0;
	process.cgroup = bytes("/system.slice/checkout.service");
	process.container_id = bytes("4f5e6d");
	process.rss_bytes = 7600000000;
	process.inspectable = true;
	process.access = access_of(0);
	return process;
}

static Goheapd__Identity *identity(void)
{
	static Goheapd__Build build = GOHEAPD__BUILD__INIT;
	static Goheapd__Identity identity = GOHEAPD__IDENTITY__INIT;

	build.has_module = build.has_version = build.has_vcs_revision = build.has_vcs_time =
	    build.has_build_id = build.has_path = true;
	build.module = bytes("shop/checkout");
	build.version = bytes("v1.2.3");
	build.vcs_revision = bytes("9c1e2ab0d1e2f3");
	build.vcs_time = bytes("2026-01-02T03:04:05Z");
	build.build_id = bytes("abcdef0123");
	build.path = bytes("shop/checkout/cmd");
	identity.pid = CANNED_PID;
	identity.start_ticks = CANNED_TICKS;
	identity.start_time_ns = start_time_ns;
	identity.comm = bytes("checkout");
	identity.exe = bytes("/usr/bin/checkout");
	identity.go_version = bytes("go1.26.11");
	identity.arch = "amd64";
	identity.uid = 0;
	identity.build = &build;
	return &identity;
}

static Goheapd__Detail *detail(void)
{
	static Goheapd__Detail detail = GOHEAPD__DETAIL__INIT;

	detail.layouts = "dwarf";
	detail.names = "pclntab";
	detail.types = "sizes only";
	detail.has_missing = true;
	detail.missing = bytes("types need a build without -ldflags=-w");
	return &detail;
}

static Goheapd__GcState *gc(void)
{
	static Goheapd__GcState gc = GOHEAPD__GC_STATE__INIT;

	gc.has_gogc = gc.has_memory_limit_bytes = gc.has_goal_bytes = gc.has_live_last_gc_bytes =
	    gc.has_cycles = gc.has_forced = gc.has_last_end_ns = gc.has_pause_total_ns =
		gc.has_cpu_fraction = gc.has_limiter_active = true;
	gc.gogc = 100;
	gc.memory_limit_bytes = 8053063680; /* 7.5 GiB */
	gc.goal_bytes = 7945689498;         /* 7.4 GiB */
	gc.live_last_gc_bytes = 5583457485;
	gc.cycles = 89200;
	gc.forced = 3;
	gc.last_end_ns = 1770087490000000000;
	gc.phase = "off";
	gc.pause_total_ns = 1250000000;
	gc.cpu_fraction = 0.23;
	gc.limiter_active = true;
	return &gc;
}

static Goheapd__Cgroup *cgroup(void)
{
	static Goheapd__Cgroup cgroup = GOHEAPD__CGROUP__INIT;

	cgroup.path = bytes("/system.slice/checkout.service");
	cgroup.version = 2;
	cgroup.has_current_bytes = cgroup.has_limit_bytes = cgroup.has_high_bytes =
	    cgroup.has_anon_bytes = cgroup.has_file_bytes = cgroup.has_kernel_bytes =
		cgroup.has_others_bytes = cgroup.has_oom_kills = true;
	cgroup.current_bytes = 8332236554;
	cgroup.limit_bytes = 8589934592;
	cgroup.high_bytes = 8500000000;
	cgroup.anon_bytes = 7956426588;
	cgroup.file_bytes = 236223201;
	cgroup.kernel_bytes = 118111600;
	cgroup.others_bytes = 21474836;
	cgroup.oom_kills = 0;
	return &cgroup;
}

static Goheapd__Warning **warnings(size_t *ret_count)
{
	static Goheapd__Warning warning = GOHEAPD__WARNING__INIT;
	static Goheapd__Warning *list[] = { &warning };

	warning.code = "resident_differs";
	warning.message = bytes("the kernel counts 12 MiB more in RAM than the walk of the page "
				"tables found, in pages that were touched in between");
	*ret_count = COUNT(list);
	return list;
}

/* ---- the overview ---- */

Goheapd__OverviewResult *canned_overview(void)
{
	static Goheapd__RuntimeMemory memory = GOHEAPD__RUNTIME_MEMORY__INIT;
	static Goheapd__Cost cost = GOHEAPD__COST__INIT;
	static Goheapd__OverviewResult overview = GOHEAPD__OVERVIEW_RESULT__INIT;

	memory.has_rss_bytes = memory.has_heap_in_use_bytes = memory.has_heap_idle_bytes =
	    memory.has_heap_released_bytes = memory.has_heap_live_bytes = memory.has_stacks_bytes =
		memory.has_sys_bytes = true;
	memory.rss_bytes = 7956426588;
	memory.heap_in_use_bytes = 6900000000;
	memory.heap_idle_bytes = 700000000;
	memory.heap_released_bytes = 100000000;
	memory.heap_live_bytes = 5594000000;
	memory.stacks_bytes = 204000000;
	memory.sys_bytes = 8100000000;
	cost.mode = GOHEAPD__MODE__MODE_FORK;
	cost.has_why = true;
	cost.why = bytes("a snapshot is safe here");
	cost.pause_us = 12500;
	cost.read_bytes = 6000000000;
	cost.memory_bytes = 900000000;
	overview.identity = identity();
	overview.gc = gc();
	overview.memory = &memory;
	overview.cgroup = cgroup();
	overview.has_goroutines = true;
	overview.goroutines = 18204;
	overview.threads = 31;
	overview.detail = detail();
	overview.cost = &cost;
	overview.warnings = warnings(&overview.n_warnings);
	return &overview;
}

/* ---- the tree ---- */

enum { NODES_MAX = 40, CHILDREN_MAX = 12 };

static Goheapd__MemoryNode nodes[NODES_MAX];
static Goheapd__MemoryNode *children[NODES_MAX][CHILDREN_MAX];
static size_t node_count;

static Goheapd__MemoryNode *leaf(const char *id, uint64_t megabytes, uint64_t resident_megabytes)
{
	Goheapd__MemoryNode *node = &nodes[node_count];

	*node = (Goheapd__MemoryNode)GOHEAPD__MEMORY_NODE__INIT;
	node->id = (char *)(uintptr_t)id;
	node->title = bytes(id);
	node->bytes = megabytes << 20;
	node->resident_bytes = resident_megabytes << 20;
	node->children = children[node_count++];
	return node;
}

/* Adds a child, and its figures to the parent's. */
static Goheapd__MemoryNode *with(Goheapd__MemoryNode *node, Goheapd__MemoryNode *child)
{
	node->children[node->n_children++] = child;
	node->bytes += child->bytes;
	node->resident_bytes += child->resident_bytes;
	return node;
}

static Goheapd__MemoryNode *heap(void)
{
	Goheapd__MemoryNode *alloc = leaf("alloc", 0, 0), *in_use = leaf("in_use_spans", 0, 0);
	Goheapd__MemoryNode *manual = leaf("manual_spans", 0, 0),
			    *unused = leaf("free_spans", 0, 0);
	Goheapd__MemoryNode *node = leaf("heap", 0, 0);

	with(alloc, leaf("live", 5340, 5335));
	with(alloc, leaf("finalizable", 3, 3));
	with(alloc, leaf("garbage", 902, 901));
	with(with(with(in_use, alloc), leaf("free_slots", 420, 400)), leaf("round", 12, 10));
	with(with(manual, leaf("stacks_used", 196, 190)), leaf("other", 4, 2));
	with(with(unused, leaf("kept", 215, 215)), leaf("released", 300, 0));
	return with(with(with(node, in_use), manual), unused);
}

static Goheapd__MemoryNode *tree(void)
{
	Goheapd__MemoryNode *files = leaf("file_maps", 0, 0), *foreign = leaf("c_memory", 0, 0);
	Goheapd__MemoryNode *root = leaf("process", 0, 0);

	with(with(files, leaf("/usr/lib/libc.so.6", 4, 2)), leaf("/data/dictionary", 200, 90));
	with(foreign, leaf("[heap]", 400, 318));
	with(
	    with(with(with(root, leaf("text", 12, 9)), leaf("readonly", 8, 6)), leaf("data", 2, 1)),
	    leaf("bss", 1, 1));
	with(with(with(root, heap()), leaf("heap_metadata", 120, 92)),
	     leaf("thread_stacks", 16, 3));
	with(with(with(root, files), foreign), leaf("shared", 0, 0));
	return with(root, leaf("unexplained", 1, 1));
}

/* ---- the scan ---- */

static Goheapd__Trust *trust(void)
{
	static Goheapd__Trust trust = GOHEAPD__TRUST__INIT;

	trust.goroutines = 18204;
	trust.exact_stacks = 18201;
	trust.conservative_stacks = 2;
	trust.skipped_stacks = 1;
	trust.has_conservative_only_bytes = trust.has_free_slot_hits =
	    trust.has_system_stack_only_bytes = true;
	trust.conservative_only_bytes = 12288;
	trust.free_slot_hits = 0;
	trust.skipped_bytes = 8192;
	trust.self_check = bytes("ok");
	trust.system_stack_only_bytes = 4096;
	return &trust;
}

static Goheapd__ScanInfo *scan_info(void)
{
	static Goheapd__ScanInfo info = GOHEAPD__SCAN_INFO__INIT;

	info.started_at_ns = scan_time_ns;
	info.mode = GOHEAPD__MODE__MODE_FORK;
	info.depth = GOHEAPD__DEPTH__DEPTH_FULL;
	info.pause_us = 11300;
	info.total_us = 910000;
	info.has_prepare_us = true;
	info.prepare_us = 18000;
	info.bytes_read = 123456789;
	info.peak_memory_bytes = 225000000;
	info.gc_phase = "mark";
	info.has_gc_cycles = info.has_index_used = true;
	info.gc_cycles = 17;
	info.index_used = true;
	info.detail = detail();
	info.trust = trust();
	info.warnings = warnings(&info.n_warnings);
	return &info;
}

/* What goroutines name places of. */
enum { INNER, OUTER, CREATOR, HOSTILE, FRAMES };
enum { WAITING_TRACE, HOSTILE_TRACE, TRACES };

static void add_frames(Goheapd__ScanResult *result)
{
	static Goheapd__Frame frames[FRAMES];
	static Goheapd__Frame *pointers[FRAMES];

	for (size_t i = 0; i < FRAMES; i++) {
		goheapd__frame__init(&frames[i]);
		pointers[i] = &frames[i];
		frames[i].has_file = frames[i].has_line = i != HOSTILE;
		frames[i].file = bytes(i == INNER ? "/go/src/runtime/chan.go" : "/src/main.go");
	}
	frames[INNER].function = bytes("runtime.chanrecv1");
	frames[INNER].line = 442;
	frames[INNER].has_inlined = frames[INNER].inlined = true;
	frames[OUTER].function = bytes("main.worker");
	frames[OUTER].line = 31;
	frames[CREATOR].function = bytes("main.main");
	frames[CREATOR].line = 20;
	/* as a hostile target could have it */
	frames[HOSTILE].function = bytes("main.\x1b[31m\xff\"\\");
	result->n_frames = FRAMES;
	result->frames = pointers;
}

static void add_traces(Goheapd__ScanResult *result)
{
	static uint32_t waiting[] = { INNER, OUTER }, hostile[] = { HOSTILE };
	static Goheapd__StackTrace traces[TRACES];
	static Goheapd__StackTrace *pointers[TRACES];

	for (size_t i = 0; i < TRACES; i++) {
		goheapd__stack_trace__init(&traces[i]);
		pointers[i] = &traces[i];
	}
	traces[WAITING_TRACE].frames = waiting;
	traces[WAITING_TRACE].n_frames = COUNT(waiting);
	traces[HOSTILE_TRACE].frames = hostile;
	traces[HOSTILE_TRACE].n_frames = COUNT(hostile);
	result->n_traces = TRACES;
	result->traces = pointers;
}

static Goheapd__Goroutine *waiting_goroutine(void)
{
	static Goheapd__Goroutine g = GOHEAPD__GOROUTINE__INIT;

	g.id = 18;
	g.status = "waiting";
	g.has_wait_reason = g.has_waiting_since_ns = g.has_created_by = g.has_creator_id =
	    g.has_locked_thread = g.has_stack_in_use_bytes = g.has_blocked_on = g.has_trace =
		g.has_thread = g.has_retained_bytes = true;
	g.wait_reason = bytes("chan receive");
	g.waiting_since_ns = scan_time_ns - 301000000000; /* five minutes and a second */
	g.created_by = CREATOR;
	g.creator_id = 1;
	g.thread = 5000;
	g.locked_thread = 5001;
	g.stack_bytes = 8192;
	g.stack_in_use_bytes = 600;
	g.retained_bytes = 1310720;
	g.blocked_on = 0xc000123000;
	g.trace = WAITING_TRACE;
	return &g;
}

static Goheapd__Goroutine *hostile_goroutine(void)
{
	static Goheapd__Goroutine g = GOHEAPD__GOROUTINE__INIT;

	g.id = 19;
	g.status = "running";
	g.system = true;
	g.stack_bytes = 2048;
	g.has_error = true;
	g.error = bytes("no function\nat 0x10");
	g.has_trace = true;
	g.trace = HOSTILE_TRACE;
	return &g;
}

static Goheapd__Goroutine *dead_goroutine(void)
{
	static Goheapd__Goroutine g = GOHEAPD__GOROUTINE__INIT;

	g.id = 20;
	g.status = "dead";
	return &g;
}

static Goheapd__Mapping **mappings(size_t *ret_count)
{
	static Goheapd__Holding live = GOHEAPD__HOLDING__INIT, unused = GOHEAPD__HOLDING__INIT;
	static Goheapd__Holding *holds[] = { &live, &unused };
	static Goheapd__Mapping text = GOHEAPD__MAPPING__INIT, arena = GOHEAPD__MAPPING__INIT;
	static Goheapd__Mapping *list[] = { &text, &arena };

	text.start = 0x400000;
	text.end = 0x1000000;
	text.perms = "r-xp";
	text.has_file = true;
	text.file = bytes("/usr/bin/checkout");
	text.kind = "text";
	text.resident_bytes = 9 << 20;
	live.kind = "live";
	live.bytes = 3 << 20;
	unused.kind = "free_spans";
	unused.bytes = 1 << 20;
	arena.start = 0xc000000000;
	arena.end = 0xc000400000;
	arena.perms = "rw-p";
	arena.kind = "heap";
	arena.resident_bytes = 3 << 20;
	arena.n_holds = COUNT(holds);
	arena.holds = holds;
	*ret_count = COUNT(list);
	return list;
}

static void add_totals(Goheapd__ScanResult *result)
{
	static Goheapd__HeapTotals totals = GOHEAPD__HEAP_TOTALS__INIT;
	static Goheapd__StackTotals stacks = GOHEAPD__STACK_TOTALS__INIT;

	totals.has_live_bytes = totals.has_live_objects = totals.has_finalizable_bytes =
	    totals.has_finalizable_objects = totals.has_garbage_bytes = totals.has_garbage_objects =
		totals.has_goal_bytes = totals.has_marked_bytes_last_gc = true;
	totals.live_bytes = 5599395840;
	totals.live_objects = 41000000;
	totals.finalizable_bytes = 3145728;
	totals.finalizable_objects = 12;
	totals.garbage_bytes = 945815552;
	totals.garbage_objects = 7000000;
	totals.free_bytes = 440401920;
	totals.round_bytes = 12582912;
	totals.goal_bytes = 7945689498;
	totals.marked_bytes_last_gc = 5583457485;
	totals.allocated_bytes = 6548357120;
	totals.allocated_objects = 48000012;
	stacks.goroutines = 18204;
	stacks.bytes = 205520896;
	stacks.in_use_bytes = 51380224;
	result->heap = &totals;
	result->stacks = &stacks;
}

Goheapd__ScanResult *canned_scan(void)
{
	static Goheapd__Goroutine *goroutines[3];
	static Goheapd__ScanResult result;

	node_count = 0;
	result = (Goheapd__ScanResult)GOHEAPD__SCAN_RESULT__INIT;
	goroutines[0] = waiting_goroutine();
	goroutines[1] = hostile_goroutine();
	goroutines[2] = dead_goroutine();
	result.identity = identity();
	result.scan = scan_info();
	result.memory = tree();
	add_totals(&result);
	result.n_goroutines = COUNT(goroutines);
	result.goroutines = goroutines;
	add_frames(&result);
	add_traces(&result);
	result.mappings = mappings(&result.n_mappings);
	result.gc = gc();
	result.cgroup = cgroup();
	result.has_rss_bytes = true;
	result.rss_bytes = 7956426588;
	result.labels = canned_labels();
	canned_goroutine_labels(&result);
	return &result;
}
