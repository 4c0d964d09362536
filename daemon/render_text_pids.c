#include <inttypes.h>

#include "daemon/render_text_common.h"

enum { NS_PER_SECOND = 1000000000, COMM_CHARS = 15, GO_CHARS = 11, REST_CHARS = 45 };

/* The column that has something to say: why it cannot be inspected, else where it runs. */
static void append_rest(struct text *text, const Goheapd__Process *process)
{
	if (!process->inspectable) {
		text_string(text, "no: ");
		text_escaped(text, process->has_reason ? process->reason : text_bytes("unknown"),
			     REST_CHARS);
	} else if (process->has_exe) {
		text_escaped(text, process->exe, REST_CHARS);
	}
}

static void append_process(struct text *text, const Goheapd__Process *process, uint64_t now_ns)
{
	text_printf(text, "%7" PRIu32 "  ", process->pid);
	text_escaped(text, process->comm, COMM_CHARS);
	text_pad(text, 26, 1);
	if (process->has_go_version)
		text_escaped(text, process->go_version, GO_CHARS);
	text_pad(text, 38, 1);
	text_printf(text, "%6" PRIu32 "  ", process->uid);
	if (process->has_rss_bytes)
		text_size(text, process->rss_bytes);
	text_pad(text, 56, 1);
	if (now_ns > process->start_time_ns)
		text_duration(text, (now_ns - process->start_time_ns) / NS_PER_SECOND);
	text_pad(text, 63, 1);
	append_rest(text, process);
	text_end_line(text);
}

void render_text_pids(struct text *text, Goheapd__Process *const *processes, size_t count,
		      uint64_t now_ns)
{
	if (count == 0) {
		text_string(text, "no Go process that you may ask about\n");
		return;
	}
	text_string(text, "    PID  COMMAND          GO             UID  RSS       UP     EXE\n");
	for (size_t i = 0; i < count; i++)
		append_process(text, processes[i], now_ns);
}
