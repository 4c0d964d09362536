#include "agent/audit.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base/log.h"

static const char *mode_name(Goheapd__Mode mode)
{
	switch (mode) {
	case GOHEAPD__MODE__MODE_FORK:
		return "fork";
	case GOHEAPD__MODE__MODE_STOP:
		return "stop";
	default:
		return "unknown";
	}
}

void audit_log_stop(const struct audit_stop *stop)
{
	enum { PATH_MAX_SHOWN = 256 };
	char path[PATH_MAX_SHOWN], escaped[4 * PATH_MAX_SHOWN], outcome[512];

	snprintf(path, sizeof(path), "%.*s", (int)(stop->path.len % INT32_MAX),
		 stop->path.len ? (const char *)stop->path.data : "");
	log_info("audit",
		 "a process was stopped uid=%" PRIu32 " pid=%d start_ticks=%" PRIu64
		 " path=\"%s\" mode=%s pause_us=%" PRIu64 " outcome=\"%s\"",
		 stop->caller_uid, (int)stop->pid, stop->start_ticks,
		 log_escape(path, escaped, sizeof(escaped)), mode_name(stop->mode), stop->pause_us,
		 log_escape(stop->outcome, outcome, sizeof(outcome)));
}

void audit_log_drop(const struct audit_drop *drop)
{
	enum { ID_MAX_SHOWN = 64 };
	char id[ID_MAX_SHOWN + 1], escaped[4 * ID_MAX_SHOWN + 1], reason[512];

	snprintf(id, sizeof(id), "%.*s", (int)(drop->id.len % INT32_MAX),
		 drop->id.len ? (const char *)drop->id.data : "");
	log_info("audit",
		 "a kept scan was dropped id=\"%s\" pid=%d start_ticks=%" PRIu64
		 " memory_bytes=%" PRIu64 " reason=\"%s\"",
		 log_escape(id, escaped, sizeof(escaped)), (int)drop->pid, drop->start_ticks,
		 drop->memory_bytes, log_escape(drop->reason, reason, sizeof(reason)));
}
