/*
 * Joining what was gathered: entries become numbers of types, instances get the names and types of
 * their origins, what holds no pointer goes, and the tables are sorted and written.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/binary/elf_file.h"
#include "agent/binary/register_params.h"
#include "agent/binary/type_index_builder.h"
#include "agent/binary/type_index_kind.h"

enum {
	ALIASES_MAX = 16, /* in a row */
	NESTING_MAX = 64, /* of types by value */
	PARAMS_MAX = 64,  /* of a function */
	WORD = 8,
};

struct finishing {
	struct type_index_builder *b;
	uint32_t type_count;     /* without number 0 */
	uint8_t *holds_pointers; /* by number */
	uint64_t text_base;
	struct type_shapes shapes;
	struct built_list by_name, by_descriptor, functions, locals, captures;
	struct built_list drafts; /* of one function's locals */
};

/* A local before its place among the others is known. */
struct local_draft {
	struct local_record record;
	uint32_t scope;
};

static struct type_record *record_at(const struct finishing *f, uint32_t number)
{
	struct built_type *type = built_list_at(&f->b->types, number - 1);

	return &type->record;
}

/* ---- entries become numbers ---- */

/* All gathered records begin with the offset of their entry, and came in its order. */
static uint32_t find_die(const struct built_list *list, uint32_t die)
{
	uint32_t low = 0, high = built_list_count(list);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2, at;

		memcpy(&at, built_list_at(list, middle), sizeof(at));
		if (at < die)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_die(const struct built_list *list, uint32_t die, uint32_t *ret)
{
	uint32_t at;

	*ret = find_die(list, die);
	if (!die || *ret == built_list_count(list))
		return false;
	memcpy(&at, built_list_at(list, *ret), sizeof(at));
	return at == die;
}

/* 0 for what is no type. */
static uint32_t number_of(const struct finishing *f, uint32_t die)
{
	for (int i = 0; i < ALIASES_MAX; i++) {
		const struct built_alias *alias;
		uint32_t at;

		if (has_die(&f->b->types, die, &at))
			return at + 1;
		if (!has_die(&f->b->aliases, die, &at))
			return 0;
		alias = built_list_at(&f->b->aliases, at);
		die = alias->target;
	}
	return 0;
}

static const struct built_origin *origin_of(const struct finishing *f, uint32_t die)
{
	uint32_t at;

	return has_die(&f->b->origins, die, &at) ? built_list_at(&f->b->origins, at) : NULL;
}

/* ---- types ---- */

/* runtime/runtime2.go: an interface is an iface, or an eface if it has no methods. */
static bool has_methods(const struct finishing *f, const struct type_record *record)
{
	return record->kind == KIND_INTERFACE && record->representation &&
	       strcmp(string_pool_at(&f->b->strings, record_at(f, record->representation)->name),
		      "runtime.eface") != 0;
}

static void number_types(struct finishing *f)
{
	for (uint32_t i = 1; i <= f->type_count; i++) {
		struct type_record *record = record_at(f, i);

		record->elem = number_of(f, record->elem);
		record->key = number_of(f, record->key);
		record->representation = number_of(f, record->representation);
	}
	for (uint32_t i = 1; i <= f->type_count; i++) {
		struct type_record *record = record_at(f, i);

		if (has_methods(f, record))
			record->flags |= TYPE_HAS_METHODS;
		if (record->kind != KIND_MAP && record->kind != KIND_CHAN)
			record->representation = 0;
	}
	for (uint32_t i = 0; i < built_list_count(&f->b->fields); i++) {
		struct field_record *field = built_list_at(&f->b->fields, i);

		field->type = number_of(f, field->type);
	}
}

static bool fields_hold_pointers(const struct finishing *f, const struct type_record *record)
{
	for (uint32_t i = 0; i < record->field_count; i++) {
		const struct field_record *field =
		    built_list_at(&f->b->fields, record->first_field + i);

		if (!field->type || f->holds_pointers[field->type])
			return true;
	}
	return false;
}

static bool holds_pointers(const struct finishing *f, const struct type_record *record)
{
	if (record->kind == KIND_STRUCT)
		return fields_hold_pointers(f, record);
	if (record->kind == KIND_ARRAY)
		return record->length && (!record->elem || f->holds_pointers[record->elem]);
	return !record->kind || record->kind > KIND_ARRAY;
}

/*
 * What has something with pointers in it has pointers; said again and again until nothing new comes
 * of it, which is as often as types are nested. Those that are nested deeper are taken to have
 * some.
 */
static void find_pointers(struct finishing *f)
{
	for (int round = 0; round <= NESTING_MAX; round++) {
		bool changed = false;

		for (uint32_t i = 1; i <= f->type_count; i++) {
			if (f->holds_pointers[i] || !holds_pointers(f, record_at(f, i)))
				continue;
			f->holds_pointers[i] = true;
			changed = true;
		}
		if (!changed)
			return;
	}
	memset(f->holds_pointers, true, f->type_count + 1);
}

/* ---- types by name and descriptor ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct finishing *f = arg;
	uint32_t a_number = *(const uint32_t *)a, b_number = *(const uint32_t *)b;
	int order = strcmp(string_pool_at(&f->b->strings, record_at(f, a_number)->name),
			   string_pool_at(&f->b->strings, record_at(f, b_number)->name));

	return order ? order : compare_u64(a_number, b_number);
}

static int compare_descriptors(const void *a, const void *b, void *arg)
{
	const struct finishing *f = arg;
	uint32_t a_number = *(const uint32_t *)a, b_number = *(const uint32_t *)b;
	int order =
	    compare_u64(record_at(f, a_number)->descriptor, record_at(f, b_number)->descriptor);

	return order ? order : compare_u64(a_number, b_number);
}

static void sort_list(struct built_list *list, int (*compare)(const void *, const void *, void *),
		      void *arg)
{
	if (built_list_count(list))
		qsort_r(list->bytes.data, built_list_count(list), list->record_size, compare, arg);
}

static struct error *sort_names(struct finishing *f)
{
	struct error *err = NULL;

	for (uint32_t i = 1; !err && i <= f->type_count; i++)
		if (record_at(f, i)->name)
			err = built_list_add(&f->by_name, &i);
	sort_list(&f->by_name, compare_names, f);
	return err;
}

static struct error *sort_descriptors(struct finishing *f)
{
	struct error *err = NULL;

	for (uint32_t i = 1; !err && i <= f->type_count; i++)
		if (record_at(f, i)->descriptor)
			err = built_list_add(&f->by_descriptor, &i);
	sort_list(&f->by_descriptor, compare_descriptors, f);
	return err;
}

static const struct type_record *find_type(const struct finishing *f, const char *name)
{
	uint32_t low = 0, high = built_list_count(&f->by_name);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const uint32_t *number = built_list_at(&f->by_name, middle);
		const struct type_record *record = record_at(f, *number);
		int order = strcmp(string_pool_at(&f->b->strings, record->name), name);

		if (!order)
			return record;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool find_field(const struct finishing *f, const struct type_record *record,
		       const char *name, uint64_t *ret_offset)
{
	for (uint32_t i = 0; i < record->field_count; i++) {
		const struct field_record *field =
		    built_list_at(&f->b->fields, record->first_field + i);

		*ret_offset = field->offset;
		if (!strcmp(string_pool_at(&f->b->strings, field->name), name))
			return true;
	}
	return false;
}

static bool find_global(const struct finishing *f, const char *name, uint64_t *ret_addr)
{
	for (uint32_t i = 0; i < built_list_count(&f->b->globals); i++) {
		const struct global_record *global = built_list_at(&f->b->globals, i);

		*ret_addr = global->addr;
		if (!strcmp(string_pool_at(&f->b->strings, global->name), name))
			return true;
	}
	return false;
}

/* The addresses between which descriptors lie; false if that is not known. */
static bool find_descriptors(const struct finishing *f, taddr *ret_start, taddr *ret_end)
{
	const struct type_record *moduledata = find_type(f, "runtime.moduledata");
	uint64_t start, end, addr;
	struct error *err;

	*ret_start = f->b->descriptors;
	*ret_end = f->b->descriptors_end;
	if (*ret_start < *ret_end)
		return true;
	if (!moduledata || !find_field(f, moduledata, "types", &start) ||
	    !find_field(f, moduledata, "etypes", &end) ||
	    !find_global(f, "runtime.firstmoduledata", &addr))
		return false;
	err = elf_file_read_pointer(f->b->executable, addr + start, ret_start);
	if (!err)
		err = elf_file_read_pointer(f->b->executable, addr + end, ret_end);
	error_free(err);
	return !err && *ret_start < *ret_end;
}

/*
 * Go's linker tells a descriptor by its offset from where all descriptors begin, that of uintptr up
 * to go1.23 by its address. Where that could be either it is not told.
 */
static taddr descriptor_of(const struct type_record *record, taddr start, taddr end)
{
	uint64_t told = record->descriptor;
	bool is_offset = told && told < end - start, is_addr = told >= start && told < end;

	if (record->kind != KIND_UINTPTR || !is_addr)
		return is_offset ? start + told : 0;
	return is_offset ? 0 : told;
}

static void place_descriptors(struct finishing *f)
{
	taddr start = 0, end = 0;
	bool known = find_descriptors(f, &start, &end);

	for (uint32_t i = 1; i <= f->type_count; i++) {
		struct type_record *record = record_at(f, i);

		record->descriptor = known ? descriptor_of(record, start, end) : 0;
	}
}

/* ---- variables ---- */

static int compare_globals(const void *a, const void *b, void *arg)
{
	const struct global_record *x = a, *y = b;
	int order = compare_u64(x->addr, y->addr);

	(void)arg;
	return order ? order : compare_u64(x->name, y->name);
}

static void finish_globals(struct finishing *f)
{
	for (uint32_t i = 0; i < built_list_count(&f->b->globals); i++) {
		struct global_record *global = built_list_at(&f->b->globals, i);

		global->type = number_of(f, global->type);
	}
	sort_list(&f->b->globals, compare_globals, NULL);
}

/* The text of a name, and the type, of a variable or of its origin. */
static void name_variable(const struct finishing *f, uint32_t *name, uint32_t origin,
			  uint32_t *type)
{
	const struct built_origin *o = origin ? origin_of(f, origin) : NULL;

	if (o && !*name)
		*name = o->name;
	*type = number_of(f, o && !*type ? o->type : *type);
}

/* A list has a new entry when any piece moves: whether one goes on where it was. */
static bool extend_draft(const struct finishing *f, const struct local_draft *draft)
{
	uint32_t count = built_list_count(&f->drafts);

	for (uint32_t i = 0; i < LOCATION_PIECES_MAX && i < count; i++) {
		struct local_draft *before = built_list_at(&f->drafts, count - i - 1);
		struct local_draft moved = *draft;

		moved.record.start = before->record.start;
		moved.record.end = before->record.end;
		if (before->record.end != draft->record.start ||
		    memcmp(&moved, before, sizeof(moved)) != 0)
			continue;
		before->record.end = draft->record.end;
		return true;
	}
	return false;
}

static struct error *add_draft(struct finishing *f, const struct local_draft *draft)
{
	return extend_draft(f, draft) ? NULL : built_list_add(&f->drafts, draft);
}

/* A variable that is in one place, a piece that may hold a pointer, or a word beside one. */
static enum piece_place place_piece(const struct finishing *f, uint32_t type,
				    const struct built_local *built, uint64_t *ret)
{
	enum piece_place place;

	if (type && !f->holds_pointers[type])
		return PIECE_NOWHERE;
	place = type_index_piece_offset(&f->shapes, type, &built->piece, true, ret);
	if (place != PIECE_NOWHERE || built->size != WORD)
		return place;
	place = type_index_piece_offset(&f->shapes, type, &built->piece, false, ret);
	return place == PIECE_KNOWN ? place : PIECE_NOWHERE;
}

static struct error *finish_local(struct finishing *f, const struct built_local *built)
{
	const struct built_scope *scope = built_list_at(&f->b->scopes, built->scope);
	uint32_t name = built->name, type = built->type, function = scope->name, none = 0;
	struct local_record local = {
		.offset = built->offset,
		.size = built->size,
	};
	uint64_t piece_offset = 0;
	enum piece_place place;
	bool is_address = built->is_address;

	name_variable(f, &name, built->origin, &type);
	name_variable(f, &function, scope->origin, &none);
	if (!name || built->start - f->text_base > UINT32_MAX ||
	    built->end - f->text_base > UINT32_MAX)
		return NULL;
	if (*string_pool_at(&f->b->strings, name) == '&') {
		is_address = true;
		name++;
		type = type ? record_at(f, type)->elem : 0;
	}
	place = is_address ? PIECE_KNOWN : place_piece(f, type, built, &piece_offset);
	if (place == PIECE_NOWHERE)
		return NULL;
	if (place == PIECE_AMBIGUOUS)
		type = 0;
	local.piece_offset = (uint32_t)piece_offset;
	local.name = name;
	local.function = function;
	local.type = type;
	local.start = (uint32_t)(built->start - f->text_base);
	local.end = (uint32_t)(built->end - f->text_base);
	local.flags =
	    (is_address ? LOCAL_IS_HEAP_ADDRESS : 0) | (built->is_register ? LOCAL_IS_REGISTER : 0);
	if (is_address)
		local.size = WORD;
	else if (!local.size && type)
		local.size = record_at(f, type)->size > UINT32_MAX
				 ? UINT32_MAX
				 : (uint32_t)record_at(f, type)->size;
	if (built->is_data)
		local.type = 0;
	return add_draft(f, &(struct local_draft){ local, built->scope });
}

/*
 * A variable "&x" is the address of x: what was captured by reference; or, where x is too large to
 * be copied out, that of x in the closure. DWARF tells both alike: the closure is as large as it
 * takes, so that x itself must be there if what comes next has left room for it.
 */
static bool is_in_place(const struct finishing *f, const struct built_capture *built,
			const struct built_capture *next, uint32_t type)
{
	if (built->form != CAPTURE_TOLD)
		return built->form == CAPTURE_IN_PLACE;
	return next && type && record_at(f, type)->size > WORD &&
	       next->offset - built->offset >= record_at(f, type)->size;
}

static struct error *finish_capture(struct finishing *f, const struct built_capture *built,
				    const struct built_capture *next)
{
	struct field_record field = { .name = built->name,
				      .type = built->type,
				      .offset = built->offset };

	if (*string_pool_at(&f->b->strings, field.name) == '&') {
		uint32_t whole = field.type ? record_at(f, field.type)->elem : 0;

		field.name++;
		if (is_in_place(f, built, next, whole))
			field.type = whole;
	}
	return built_list_add(&f->captures, &field);
}

/* Gives a capture its variable's name, type and place; it has no name if that is not known. */
static void resolve_capture(const struct finishing *f, struct built_capture *capture)
{
	uint64_t piece_offset = 0;

	name_variable(f, &capture->name, capture->origin, &capture->type);
	if (type_index_piece_offset(&f->shapes, capture->type, &capture->piece, false,
				    &piece_offset) != PIECE_KNOWN ||
	    capture->offset < WORD + piece_offset)
		capture->name = 0;
	else
		capture->offset -= (uint32_t)piece_offset;
}

/* Of variables in one place for one time the outermost is first: scopes are numbered so. */
static int compare_drafts(const void *a, const void *b, void *arg)
{
	const struct local_draft *x = a, *y = b;
	int order = compare_u64(x->record.start, y->record.start);

	(void)arg;
	if (!order)
		order = compare_u64(x->record.flags & LOCAL_IS_REGISTER,
				    y->record.flags & LOCAL_IS_REGISTER);
	if (!order && x->record.offset != y->record.offset)
		order = x->record.offset < y->record.offset ? -1 : 1;
	if (!order)
		order = compare_u64(y->record.end, x->record.end);
	if (!order)
		order = compare_u64(x->scope, y->scope);
	return order ? order : memcmp(x, y, sizeof(*x));
}

/* A captured variable is declared before those that are made of it. */
static int compare_captures(const void *a, const void *b, void *arg)
{
	const struct built_capture *x = a, *y = b;
	int order = compare_u64(x->offset, y->offset);

	(void)arg;
	if (!order)
		order = compare_u64(x->line, y->line);
	return order ? order : compare_u64(x->name, y->name);
}

/* An inlined function's variable often is one of its caller's, which comes first. */
static bool is_same_place(const struct local_record *a, const struct local_record *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->size == b->size && a->flags == b->flags;
}

static void sort_part(struct built_list *list, uint32_t first, uint32_t count,
		      int (*compare)(const void *, const void *, void *))
{
	if (count)
		qsort_r(built_list_at(list, first), count, list->record_size, compare, NULL);
}

static const struct type_record *param_type(const void *arg, uint32_t number)
{
	return record_at(arg, number);
}

static const struct field_record *param_field(const void *arg, uint32_t place)
{
	const struct finishing *f = arg;

	return built_list_at(&f->b->fields, place);
}

/* A param with its name and type, which its origin may have. */
struct named_param {
	const struct built_param *built;
	uint32_t name;
};

static bool is_there(const struct finishing *f, const struct named_param *params, uint32_t count,
		     uint32_t name)
{
	const char *text = string_pool_at(&f->b->strings, name);

	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(string_pool_at(&f->b->strings, params[i].name), text))
			return true;
	return false;
}

/* Some compilers list a result twice. */
static uint32_t describe_params(const struct finishing *f, const struct built_function *built,
				struct named_param *named, struct register_param *ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < built->param_count && i < PARAMS_MAX; i++) {
		const struct built_param *param =
		    built_list_at(&f->b->params, built->first_param + i);
		const struct built_origin *origin =
		    param->origin ? origin_of(f, param->origin) : NULL;
		uint32_t name = param->name, type = param->type;

		name_variable(f, &name, param->origin, &type);
		if (is_there(f, named, count, name))
			continue;
		named[count] = (struct named_param){ param, name };
		ret[count++] =
		    (struct register_param){ .type = type,
					     .entry = param->entry,
					     .is_result = param->is_result ||
							  (origin && origin->is_result) };
	}
	return count;
}

static uint32_t first_param(const struct register_param *params, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!params[i].is_result)
			return params[i].type;
	return 0;
}

/*
 * Params that came in registers, in their places: where no other variable is known to be. They come
 * last, since whoever looks for a variable takes the first that fits.
 */
static struct error *finish_params(struct finishing *f, const struct built_function *built,
				   struct function_record *function)
{
	const struct param_types types = { param_type, param_field, f };
	struct register_param params[PARAMS_MAX];
	struct named_param named[PARAMS_MAX];
	uint32_t count = describe_params(f, built, named, params);
	struct error *err = NULL;

	function->first_param = first_param(params, count);
	if (built->param_count > PARAMS_MAX)
		return NULL;
	register_params_place(&types, params, count);
	f->drafts.bytes.size = 0;
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct built_local local = { .start = built->entry,
						   .end = built->end,
						   .name = named[i].built->name,
						   .origin = named[i].built->origin,
						   .scope = built->scope,
						   .type = named[i].built->type,
						   .offset = (int32_t)params[i].offset };

		if (params[i].has_place && f->holds_pointers[params[i].type])
			err = finish_local(f, &local);
	}
	for (uint32_t i = 0; !err && i < built_list_count(&f->drafts); i++) {
		struct local_draft *draft = built_list_at(&f->drafts, i);

		draft->record.flags |= LOCAL_IS_SPILLED;
		err = built_list_add(&f->locals, &draft->record);
	}
	return err;
}

/* Those that were split off, or all others. */
static struct error *finish_some_locals(struct finishing *f, const struct built_function *built,
					bool split)
{
	const struct local_draft *last = NULL;
	struct error *err = NULL;

	f->drafts.bytes.size = 0;
	for (uint32_t i = 0; !err && i < built->local_count; i++) {
		const struct built_local *local =
		    built_list_at(&f->b->locals, built->first_local + i);

		if (local->is_split == split)
			err = finish_local(f, local);
	}
	sort_part(&f->drafts, 0, built_list_count(&f->drafts), compare_drafts);
	for (uint32_t i = 0; !err && i < built_list_count(&f->drafts); i++) {
		const struct local_draft *draft = built_list_at(&f->drafts, i);

		if (!last || !is_same_place(&last->record, &draft->record))
			err = built_list_add(&f->locals, &draft->record);
		last = draft;
	}
	return err;
}

/* What all of a variable tells is better than what a part of it does, and comes first. */
static struct error *finish_locals(struct finishing *f, const struct built_function *built,
				   struct function_record *function)
{
	struct error *err;

	function->first_local = built_list_count(&f->locals);
	err = finish_some_locals(f, built, false);
	if (!err)
		err = finish_some_locals(f, built, true);
	if (!err)
		err = finish_params(f, built, function);
	function->local_count = built_list_count(&f->locals) - function->first_local;
	return err;
}

static void resolve_captures(const struct finishing *f, const struct built_function *built)
{
	for (uint32_t i = 0; i < built->capture_count; i++)
		resolve_capture(f, built_list_at(&f->b->captures, built->first_capture + i));
}

/* One for each offset. */
static struct error *finish_captures(struct finishing *f, const struct built_function *built,
				     struct function_record *function)
{
	const struct built_capture *last = NULL;
	struct error *err = NULL;

	function->first_capture = built_list_count(&f->captures);
	resolve_captures(f, built);
	sort_part(&f->b->captures, built->first_capture, built->capture_count, compare_captures);
	for (uint32_t i = 0; !err && i <= built->capture_count; i++) {
		const struct built_capture *next =
		    i < built->capture_count
			? built_list_at(&f->b->captures, built->first_capture + i)
			: NULL;

		if (next && (!next->name || (last && next->offset == last->offset)))
			continue;
		if (last)
			err = finish_capture(f, last, next);
		last = next;
	}
	function->capture_count = built_list_count(&f->captures) - function->first_capture;
	return err;
}

static struct error *finish_function(struct finishing *f, const struct built_function *built)
{
	struct function_record function = { .entry = built->entry };
	struct error *err = finish_locals(f, built, &function);

	if (!err)
		err = finish_captures(f, built, &function);
	if (err || (!function.local_count && !function.capture_count && !function.first_param))
		return err;
	return built_list_add(&f->functions, &function);
}

static int compare_functions(const void *a, const void *b, void *arg)
{
	const struct built_function *x = a, *y = b;

	(void)arg;
	return compare_u64(x->entry, y->entry);
}

static struct error *finish_functions(struct finishing *f)
{
	struct built_list *functions = &f->b->functions;
	uint32_t count = built_list_count(functions);
	struct error *err = NULL;

	sort_list(functions, compare_functions, NULL);
	if (count)
		f->text_base = ((struct built_function *)built_list_at(functions, 0))->entry;
	for (uint32_t i = 0; !err && i < count; i++)
		err = finish_function(f, built_list_at(functions, i));
	return err;
}

/* ---- the index ---- */

static struct error *write_types(const struct finishing *f, struct bytes *out)
{
	const struct type_record none = { 0 };
	struct error *err = bytes_append(out, &none, sizeof(none));

	for (uint32_t i = 1; !err && i <= f->type_count; i++)
		err = bytes_append(out, record_at(f, i), sizeof(none));
	return err;
}

static struct error *write_index(struct finishing *f, struct bytes *out)
{
	struct built_list strings = { f->b->strings.text, 1 };
	const struct built_list *const lists[TABLE_COUNT] = {
		[TABLE_FIELDS] = &f->b->fields,
		[TABLE_BY_NAME] = &f->by_name,
		[TABLE_BY_DESCRIPTOR] = &f->by_descriptor,
		[TABLE_GLOBALS] = &f->b->globals,
		[TABLE_FUNCTIONS] = &f->functions,
		[TABLE_LOCALS] = &f->locals,
		[TABLE_CAPTURES] = &f->captures,
		[TABLE_STRINGS] = &strings,
	};
	struct type_index_header header = {
		.magic = TYPE_INDEX_MAGIC,
		.version = TYPE_INDEX_VERSION,
		.text_base = f->text_base,
		.counts[TABLE_TYPES] = f->type_count + 1,
	};
	struct error *err;

	for (unsigned i = TABLE_TYPES + 1; i < TABLE_COUNT; i++)
		header.counts[i] = built_list_count(lists[i]);
	err = bytes_append(out, &header, sizeof(header));
	if (!err)
		err = write_types(f, out);
	for (unsigned i = TABLE_TYPES + 1; !err && i < TABLE_COUNT; i++)
		err = bytes_append(out, lists[i]->bytes.data, lists[i]->bytes.size);
	return err;
}

static struct error *finish(struct finishing *f, struct bytes *out)
{
	struct error *err = NULL;

	number_types(f);
	find_pointers(f);
	err = sort_names(f);
	if (err)
		return err;
	place_descriptors(f);
	err = sort_descriptors(f);
	finish_globals(f);
	if (!err)
		err = finish_functions(f);
	return err ? err : write_index(f, out);
}

static void list_init(struct built_list *list, size_t record_size, const struct bytes *out)
{
	list->record_size = record_size;
	bytes_init(&list->bytes, out->limit);
}

struct error *type_index_finish(struct type_index_builder *b, struct bytes *out)
{
	struct finishing f = { .b = b,
			       .type_count = built_list_count(&b->types),
			       .shapes = { &b->types, &b->fields } };
	struct error *err;

	list_init(&f.by_name, sizeof(uint32_t), out);
	list_init(&f.by_descriptor, sizeof(uint32_t), out);
	list_init(&f.functions, sizeof(struct function_record), out);
	list_init(&f.locals, sizeof(struct local_record), out);
	list_init(&f.captures, sizeof(struct field_record), out);
	list_init(&f.drafts, sizeof(struct local_draft), out);
	f.holds_pointers = calloc(f.type_count + 1, 1);
	err = f.holds_pointers ? finish(&f, out) : &error_nomem;
	free(f.holds_pointers);
	bytes_fini(&f.by_name.bytes);
	bytes_fini(&f.by_descriptor.bytes);
	bytes_fini(&f.functions.bytes);
	bytes_fini(&f.locals.bytes);
	bytes_fini(&f.captures.bytes);
	bytes_fini(&f.drafts.bytes);
	return err;
}
