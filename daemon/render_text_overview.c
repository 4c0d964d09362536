#include <inttypes.h>

#include "daemon/render_json_common.h"
#include "daemon/render_text_common.h"

enum { PATH_CHARS = 88 };

static void append_size_item(struct text *text, const char *name, bool has, uint64_t bytes)
{
	if (!has)
		return;
	text_printf(text, "%s ", name);
	text_size(text, bytes);
	text_string(text, "  ");
}

/* A line on which nothing could be said says so. */
static void end_line(struct text *text, size_t start)
{
	if (text->bytes.size == start)
		text_string(text, "not known without a scan");
	text_end_line(text);
}

static void append_memory(struct text *text, const Goheapd__RuntimeMemory *memory)
{
	size_t start;

	text_string(text, "MEMORY ");
	start = text->bytes.size;
	append_size_item(text, "RSS", memory->has_rss_bytes, memory->rss_bytes);
	append_size_item(text, "heap in use", memory->has_heap_in_use_bytes,
			 memory->heap_in_use_bytes);
	append_size_item(text, "live", memory->has_heap_live_bytes, memory->heap_live_bytes);
	append_size_item(text, "stacks", memory->has_stacks_bytes, memory->stacks_bytes);
	append_size_item(text, "from the system", memory->has_sys_bytes, memory->sys_bytes);
	end_line(text, start);
}

static void append_gc(struct text *text, const Goheapd__GcState *gc)
{
	size_t start;

	text_string(text, "GC     ");
	start = text->bytes.size;
	if (gc->has_gogc && gc->gogc < 0)
		text_string(text, "GOGC=off  ");
	else if (gc->has_gogc)
		text_printf(text, "GOGC=%" PRId64 "  ", gc->gogc);
	append_size_item(text, "limit", gc->has_memory_limit_bytes, gc->memory_limit_bytes);
	append_size_item(text, "goal", gc->has_goal_bytes, gc->goal_bytes);
	append_size_item(text, "live after the last", gc->has_live_last_gc_bytes,
			 gc->live_last_gc_bytes);
	if (gc->has_cycles) {
		text_string(text, "cycles ");
		text_count(text, gc->cycles);
		text_string(text, "  ");
	}
	if (gc->phase)
		text_printf(text, "phase %s  ", gc->phase);
	if (gc->has_limiter_active && gc->limiter_active)
		text_string(text, "limiter ON");
	end_line(text, start);
}

static void append_cgroup(struct text *text, const Goheapd__Cgroup *cgroup)
{
	text_string(text, "CGROUP ");
	text_escaped(text, cgroup->path, PATH_CHARS);
	text_string(text, "\n       ");
	append_size_item(text, "used", cgroup->has_current_bytes, cgroup->current_bytes);
	append_size_item(text, "limit", cgroup->has_limit_bytes, cgroup->limit_bytes);
	append_size_item(text, "page cache", cgroup->has_file_bytes, cgroup->file_bytes);
	append_size_item(text, "kernel", cgroup->has_kernel_bytes, cgroup->kernel_bytes);
	if (cgroup->has_oom_kills)
		text_printf(text, "OOM kills %" PRIu64, cgroup->oom_kills);
	text_end_line(text);
}

static void append_cost(struct text *text, const Goheapd__Cost *cost)
{
	text_printf(text, "COST   a scan would take mode %s, stop it for about %.1f ms, read ",
		    render_mode(cost->mode), (double)cost->pause_us / 1000);
	text_size(text, cost->read_bytes);
	text_string(text, ", need ");
	text_size(text, cost->memory_bytes);
	text_string(text, "\n");
	if (cost->has_why)
		text_note(text, "", cost->why);
}

static void append_detail(struct text *text, const Goheapd__Detail *detail)
{
	text_printf(text, "KNOWN  layouts from %s, names from %s, types from %s\n", detail->layouts,
		    detail->names, detail->types);
	if (detail->has_missing)
		text_note(text, "", detail->missing);
}

void render_text_overview(struct text *text, const Goheapd__OverviewResult *overview,
			  uint64_t now_ns)
{
	uint32_t pid = overview->identity->pid;

	text_identity(text, overview->identity, now_ns);
	text_printf(text, "\nEXE    ");
	text_escaped(text, overview->identity->exe, PATH_CHARS);
	text_printf(text, "\nRUNS   uid %" PRIu32 "  threads %" PRIu32, overview->identity->uid,
		    overview->threads);
	if (overview->has_goroutines) {
		text_string(text, "  goroutines ");
		text_count(text, overview->goroutines);
	}
	text_string(text, "\n");
	append_memory(text, overview->memory);
	append_gc(text, overview->gc);
	if (overview->cgroup)
		append_cgroup(text, overview->cgroup);
	append_detail(text, overview->detail);
	append_cost(text, overview->cost);
	text_warnings(text, overview->warnings, overview->n_warnings);
	text_printf(text, "NEXT   goheap memusage %" PRIu32 " | goheap goroutines %" PRIu32 "\n",
		    pid, pid);
}
