/*
 * What several JSON answers have in common.
 */
#ifndef DAEMON_RENDER_JSON_COMMON_H
#define DAEMON_RENDER_JSON_COMMON_H

#include "daemon/json_fields.h"
#include "daemon/render.h"

/* "auto", "fork" or "stop"; "full" or "census". */
const char *render_mode(Goheapd__Mode mode);
const char *render_depth(Goheapd__Depth depth);

/* pid, start_time, comm, exe, go_version, arch, uid and build. */
void render_json_identity(struct json_fields *fields, const Goheapd__Identity *identity);

/* { layouts, names, types, missing } */
void render_json_detail(struct json_fields *fields, const Goheapd__Detail *detail);
void render_json_gc(struct json_fields *fields, const Goheapd__GcState *gc);
/* A NULL cgroup is null. */
void render_json_cgroup(struct json_fields *fields, const Goheapd__Cgroup *cgroup);

void render_json_warnings(struct json_fields *fields, Goheapd__Warning *const *warnings,
			  size_t count);

/* Writes what every scan answer starts with: identity and "scan". */
void render_json_scan_head(struct text *text, const struct scan_view *view);

#endif
