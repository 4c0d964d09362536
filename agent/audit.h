/*
 * The audit log: one line for every time that a target was stopped, and for every scan that is kept
 * no more.
 */
#ifndef AGENT_AUDIT_H
#define AGENT_AUDIT_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/goheapd.pb-c.h"

struct audit_stop {
	uint32_t caller_uid; /* as the daemon says */
	pid_t pid;
	uint64_t start_ticks;
	ProtobufCBinaryData path; /* of the request, as the daemon says; borrowed */
	Goheapd__Mode mode;       /* MODE_AUTO: not known, the keeper died */
	uint64_t pause_us;
	const char *outcome; /* "ok" or an error's message */
};

void audit_log_stop(const struct audit_stop *stop);

struct audit_drop {
	ProtobufCBinaryData id; /* as the daemon named it; borrowed */
	pid_t pid;              /* of the target */
	uint64_t start_ticks;
	uint64_t memory_bytes; /* that the decoder took */
	const char *reason;
};

void audit_log_drop(const struct audit_drop *drop);

#endif
