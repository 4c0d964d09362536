#include "daemon/json_fields.h"
#include "daemon/render.h"

static void add_process(struct text *text, const Goheapd__Process *process)
{
	struct json_fields fields;

	json_fields_init(&fields);
	json_add_u64(&fields, "pid", process->pid);
	json_add_time(&fields, "start_time", process->start_time_ns);
	json_add_bytes(&fields, "comm", process->comm);
	json_add_optional_bytes(&fields, "exe", process->has_exe, process->exe);
	json_add_optional_bytes(&fields, "go_version", process->has_go_version,
				process->go_version);
	json_add_u64(&fields, "uid", process->uid);
	json_add_optional_bytes(&fields, "cgroup", process->has_cgroup, process->cgroup);
	json_add_optional_bytes(&fields, "container_id", process->has_container_id,
				process->container_id);
	json_add_optional_u64(&fields, "rss_bytes", process->has_rss_bytes, process->rss_bytes);
	json_add_bool(&fields, "inspectable", process->inspectable);
	json_add_optional_bytes(&fields, "reason", process->has_reason, process->reason);
	json_write_element(text, &fields);
}

void render_json_pids(struct text *text, Goheapd__Process *const *processes, size_t count)
{
	json_begin(text, NULL, '{');
	json_begin(text, "processes", '[');
	for (size_t i = 0; i < count; i++)
		add_process(text, processes[i]);
	json_end(text, ']');
	json_end(text, '}');
	text_string(text, "\n");
}
