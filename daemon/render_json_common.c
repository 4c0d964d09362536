#include "daemon/render_json_common.h"

const char *render_mode(Goheapd__Mode mode)
{
	switch (mode) {
	case GOHEAPD__MODE__MODE_FORK:
		return "fork";
	case GOHEAPD__MODE__MODE_STOP:
		return "stop";
	default:
		return "auto";
	}
}

const char *render_depth(Goheapd__Depth depth)
{
	return depth == GOHEAPD__DEPTH__DEPTH_CENSUS ? "census" : "full";
}

static void add_build(struct json_fields *fields, const Goheapd__Build *build)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_optional_bytes(&object, "module", build->has_module, build->module);
	json_add_optional_bytes(&object, "version", build->has_version, build->version);
	json_add_optional_bytes(&object, "path", build->has_path, build->path);
	json_add_optional_bytes(&object, "vcs_revision", build->has_vcs_revision,
				build->vcs_revision);
	json_add_optional_bytes(&object, "vcs_time", build->has_vcs_time, build->vcs_time);
	json_add_optional_bytes(&object, "build_id", build->has_build_id, build->build_id);
	json_add_fields(fields, "build", &object);
}

void render_json_identity(struct json_fields *fields, const Goheapd__Identity *identity)
{
	json_add_u64(fields, "pid", identity->pid);
	json_add_time(fields, "start_time", identity->start_time_ns);
	json_add_bytes(fields, "comm", identity->comm);
	json_add_bytes(fields, "exe", identity->exe);
	json_add_bytes(fields, "go_version", identity->go_version);
	json_add_string(fields, "arch", identity->arch);
	json_add_u64(fields, "uid", identity->uid);
	add_build(fields, identity->build);
}

void render_json_detail(struct json_fields *fields, const Goheapd__Detail *detail)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_string(&object, "layouts", detail->layouts);
	json_add_string(&object, "names", detail->names);
	json_add_string(&object, "types", detail->types);
	json_add_optional_bytes(&object, "missing", detail->has_missing, detail->missing);
	json_add_fields(fields, "detail", &object);
}

static void add_cpu_fraction(struct json_fields *fields, const Goheapd__GcState *gc)
{
	/* jansson has no NaN and no infinity, and refuses them */
	json_t *value = gc->has_cpu_fraction ? json_real(gc->cpu_fraction) : NULL;

	json_add(fields, "cpu_fraction", value ? value : json_null());
}

void render_json_gc(struct json_fields *fields, const Goheapd__GcState *gc)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add(&object, "gogc", gc->has_gogc ? json_integer(gc->gogc) : json_null());
	json_add_optional_u64(&object, "memory_limit_bytes", gc->has_memory_limit_bytes,
			      gc->memory_limit_bytes);
	json_add_optional_u64(&object, "goal_bytes", gc->has_goal_bytes, gc->goal_bytes);
	json_add_optional_u64(&object, "live_last_gc_bytes", gc->has_live_last_gc_bytes,
			      gc->live_last_gc_bytes);
	json_add_optional_u64(&object, "cycles", gc->has_cycles, gc->cycles);
	json_add_optional_u64(&object, "forced", gc->has_forced, gc->forced);
	if (gc->has_last_end_ns && gc->last_end_ns)
		json_add_time(&object, "last_end", gc->last_end_ns);
	else
		json_add_null(&object, "last_end");
	if (gc->phase)
		json_add_string(&object, "phase", gc->phase);
	else
		json_add_null(&object, "phase");
	if (gc->has_pause_total_ns)
		json_add(&object, "pause_total_seconds",
			 json_real((double)gc->pause_total_ns / 1e9));
	else
		json_add_null(&object, "pause_total_seconds");
	add_cpu_fraction(&object, gc);
	if (gc->has_limiter_active)
		json_add_bool(&object, "limiter_active", gc->limiter_active);
	else
		json_add_null(&object, "limiter_active");
	json_add_fields(fields, "gc", &object);
}

void render_json_cgroup(struct json_fields *fields, const Goheapd__Cgroup *cgroup)
{
	struct json_fields object;

	if (!cgroup) {
		json_add_null(fields, "cgroup");
		return;
	}
	json_fields_init(&object);
	json_add_bytes(&object, "path", cgroup->path);
	json_add_u64(&object, "version", cgroup->version);
	json_add_optional_u64(&object, "current_bytes", cgroup->has_current_bytes,
			      cgroup->current_bytes);
	json_add_optional_u64(&object, "limit_bytes", cgroup->has_limit_bytes, cgroup->limit_bytes);
	json_add_optional_u64(&object, "high_bytes", cgroup->has_high_bytes, cgroup->high_bytes);
	json_add_optional_u64(&object, "anon_bytes", cgroup->has_anon_bytes, cgroup->anon_bytes);
	json_add_optional_u64(&object, "file_bytes", cgroup->has_file_bytes, cgroup->file_bytes);
	json_add_optional_u64(&object, "kernel_bytes", cgroup->has_kernel_bytes,
			      cgroup->kernel_bytes);
	json_add_optional_u64(&object, "others_bytes", cgroup->has_others_bytes,
			      cgroup->others_bytes);
	json_add_optional_u64(&object, "oom_kills", cgroup->has_oom_kills, cgroup->oom_kills);
	json_add_fields(fields, "cgroup", &object);
}

static json_t *warning_object(const Goheapd__Warning *warning)
{
	struct json_fields object;
	json_t *ret = NULL;

	json_fields_init(&object);
	json_add_string(&object, "code", warning->code);
	json_add_bytes(&object, "message", warning->message);
	error_free(json_fields_finish(&object, &ret));
	return ret;
}

void render_json_warnings(struct json_fields *fields, Goheapd__Warning *const *warnings,
			  size_t count)
{
	json_t *list = json_array();
	bool failed = false;

	for (size_t i = 0; i < count; i++)
		failed |= json_array_append_new(list, warning_object(warnings[i])) < 0;
	if (failed) {
		json_decref(list);
		list = NULL;
	}
	json_add(fields, "warnings", list);
}

static void add_trust(struct json_fields *fields, const Goheapd__Trust *trust)
{
	struct json_fields object;

	json_fields_init(&object);
	json_add_u64(&object, "goroutines", trust->goroutines);
	json_add_u64(&object, "exact_stacks", trust->exact_stacks);
	json_add_u64(&object, "conservative_stacks", trust->conservative_stacks);
	json_add_u64(&object, "skipped_stacks", trust->skipped_stacks);
	json_add_optional_u64(&object, "conservative_only_bytes",
			      trust->has_conservative_only_bytes, trust->conservative_only_bytes);
	json_add_optional_u64(&object, "system_stack_only_bytes",
			      trust->has_system_stack_only_bytes, trust->system_stack_only_bytes);
	json_add_optional_u64(&object, "free_slot_hits", trust->has_free_slot_hits,
			      trust->free_slot_hits);
	json_add_u64(&object, "skipped_bytes", trust->skipped_bytes);
	json_add_bytes(&object, "self_check", trust->self_check);
	json_add_fields(fields, "trust", &object);
}

static void add_scan(struct json_fields *fields, const struct scan_view *view)
{
	const Goheapd__ScanInfo *scan = view->result->scan;
	struct json_fields object;

	json_fields_init(&object);
	json_add_string(&object, "id", view->id);
	json_add_time(&object, "started_at", scan->started_at_ns);
	json_add_string(&object, "mode", render_mode(scan->mode));
	json_add_string(&object, "depth", render_depth(scan->depth));
	json_add_bool(&object, "cached", view->cached);
	json_add_seconds(&object, "pause_seconds", scan->pause_us);
	json_add_seconds(&object, "total_seconds", scan->total_us);
	if (scan->has_prepare_us)
		json_add_seconds(&object, "prepare_seconds", scan->prepare_us);
	else
		json_add_null(&object, "prepare_seconds");
	json_add_u64(&object, "bytes_read", scan->bytes_read);
	json_add_u64(&object, "peak_memory_bytes", scan->peak_memory_bytes);
	if (scan->gc_phase)
		json_add_string(&object, "gc_phase", scan->gc_phase);
	else
		json_add_null(&object, "gc_phase");
	json_add_optional_u64(&object, "gc_cycles", scan->has_gc_cycles, scan->gc_cycles);
	if (scan->has_index_used)
		json_add_bool(&object, "index_used", scan->index_used);
	else
		json_add_null(&object, "index_used");
	render_json_detail(&object, scan->detail);
	add_trust(&object, scan->trust);
	render_json_warnings(&object, scan->warnings, scan->n_warnings);
	json_add_fields(fields, "scan", &object);
}

void render_json_scan_head(struct text *text, const struct scan_view *view)
{
	struct json_fields fields;

	json_fields_init(&fields);
	render_json_identity(&fields, view->result->identity);
	add_scan(&fields, view);
	json_write_fields(text, &fields);
}
