/*
 * A reference walk and a dominator tree that a test makes up, for rooms that report on what these
 * say. It implements what reference_walk.h, dominators.h and retained.h promise, beside a fake heap
 * and fake types.
 */
#ifndef TESTS_SUPPORT_FAKE_ANALYSIS_H
#define TESTS_SUPPORT_FAKE_ANALYSIS_H

#include "agent/analysis/dominators.h"
#include "agent/analysis/reference_walk.h"
#include "agent/report/retained.h"
#include "tests/support/fake_go_types.h"

struct reference_walk *fake_walk_new(void);
void fake_walk_set_type(struct reference_walk *walk, uint32_t object, type_id type, bool is_array);

/* That the walk met an object, of whatever type. */
void fake_walk_set_live(struct reference_walk *walk, uint32_t object);
/* Returns the place. Frames are borrowed. */
uint32_t fake_walk_add(struct reference_walk *walk, uint32_t object, uint32_t parent, uint32_t root,
		       const char *const *frames, uint32_t frame_count);
uint32_t fake_walk_add_root(struct reference_walk *walk, const char *name);

/* A tree whose nodes of groups begin at object_end, together with what groups are. */
struct retained *fake_retained_new(uint32_t object_end);
void fake_retained_add_group(struct retained *retained, const struct retained_group *group);
void fake_retained_set(struct retained *retained, uint32_t node, uint32_t parent, uint64_t bytes);

#endif
