/*
 * Types and variables that a test makes up. It implements what go_type.h and variable_table.h
 * promise of asking, for tests that do not link agent/goruntime.
 */
#ifndef TESTS_SUPPORT_FAKE_GO_TYPES_H
#define TESTS_SUPPORT_FAKE_GO_TYPES_H

#include "agent/goruntime/go_type.h"
#include "agent/goruntime/variable_table.h"

/* Types are numbered as they are added, from 1. A descriptor of 0 is none. Names are borrowed. */
struct go_types *fake_types_new(void);
type_id fake_types_add(struct go_types *types, const struct go_type *type);
/* To change: for circles. */
struct go_type *fake_types_at(struct go_types *types, type_id type);
/* itab stands for the type in interfaces with methods. */
void fake_types_add_itab(struct go_types *types, taddr itab, type_id type);
/* Closures of the function at code are of the type. */
void fake_types_add_closure(struct go_types *types, taddr code, type_id type);

/* The first parameter of the function at code is of the type. */
void fake_types_add_param(struct go_types *types, taddr code, type_id type);

/* The usual ones. Structs have their pointers where their fields have them. */
type_id fake_type_plain(struct go_types *types, const char *name, enum go_kind kind, uint64_t size);
type_id fake_type_pointer(struct go_types *types, const char *name, type_id elem);
type_id fake_type_slice(struct go_types *types, const char *name, type_id elem);
type_id fake_type_channel(struct go_types *types, const char *name, type_id elem);
type_id fake_type_array(struct go_types *types, const char *name, type_id elem, uint64_t length);
type_id fake_type_string(struct go_types *types);
type_id fake_type_interface(struct go_types *types, const char *name, bool has_methods);
type_id fake_type_struct(struct go_types *types, const char *name, uint64_t size,
			 const struct go_field *fields, uint32_t count);

struct variable_table *fake_variables_new(void);
/* Slots in [addr, addr + size) are the variable's. What is none's is "(nameless data)". */
void fake_variables_add(struct variable_table *table, const struct variable *variable);

#endif
