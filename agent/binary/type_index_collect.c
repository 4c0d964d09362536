/*
 * The walk over debug_info: every unit of Go's, entry by entry, with a stack of what encloses the
 * entry.
 */
#include <string.h>

#include <dwarf.h>

#include "agent/binary/closure_load.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/register_params.h"
#include "agent/binary/type_index_builder.h"

enum {
	DEPTH_MAX = 256,        /* of blocks and inlined functions in each other */
	GENERAL_REGISTERS = 16, /* DWARF's numbers of amd64 begin with them */
};

/* What an entry's children are to be taken for. */
enum inside {
	INSIDE_UNIT,
	INSIDE_STRUCT,
	INSIDE_ARRAY,
	INSIDE_ABSTRACT, /* a function that others are instances of */
	INSIDE_FUNCTION, /* or a block in it, or a function that was inlined into it */
	INSIDE_OTHER,
};

struct level {
	enum inside inside;
	Dwarf_Die die; /* the entry that is being visited */
	/* In a function: */
	uint32_t scope;
	uint64_t low, high; /* where its variables are, or */
	uint64_t ranges;    /* a list of that */
	bool has_ranges;
};

struct collecting {
	struct type_index_builder *b;
	struct dwarf_unit unit;
	struct level levels[DEPTH_MAX];
	unsigned depth;
	struct built_function function; /* the one that is being read */
	uint32_t function_scope;
	/* What its code loads from its closure, where DWARF does not tell. */
	struct closure_reader *closures; /* NULL: DWARF does */
	struct closure_load loads[CLOSURE_LOADS_MAX];
	unsigned load_count;
	uint64_t code_looked_at; /* bytes of all functions so far */
};

/* Functions may overlap, which Go's do not. */
static const uint64_t code_looked_at_max = UINT64_C(1) << 30;

/* ---- variables of functions ---- */

/* What goes to the list visitors. */
struct placing {
	struct collecting *c;
	struct built_local local;
	const struct dwarf_facts *facts;
	int32_t entry; /* where it is when its function begins, as of a register_param */
};

/* In a frame, or in a register that a pointer can be in. */
static bool is_kept(const struct location_piece *piece)
{
	if (piece->size > UINT32_MAX)
		return false;
	if (piece->kind == LOCATION_REGISTER)
		return piece->number < GENERAL_REGISTERS;
	return piece->kind == LOCATION_FRAME && piece->number >= INT32_MIN &&
	       piece->number <= INT32_MAX;
}

static struct error *add_piece(struct placing *p, const struct location_piece *piece)
{
	if (!is_kept(piece))
		return NULL;
	p->local.is_register = piece->kind == LOCATION_REGISTER;
	p->local.offset = (int32_t)piece->number;
	p->local.size = (uint32_t)piece->size;
	p->local.is_address = piece->is_address;
	return built_list_add(&p->c->b->locals, &p->local);
}

static struct error *add_capture(struct placing *p, uint64_t offset, enum capture_form form)
{
	const struct dwarf_facts *facts = p->facts;
	const struct built_capture capture = {
		.piece = form == CAPTURE_VALUE ? p->local.piece : (struct built_piece){ 0 },
		.name = p->local.name,
		.origin = p->local.origin,
		.type = p->local.type,
		.offset = (uint32_t)offset,
		.line = facts->line > UINT32_MAX ? UINT32_MAX : (uint32_t)facts->line,
		.form = form,
	};

	return offset > UINT32_MAX ? NULL : built_list_add(&p->c->b->captures, &capture);
}

/* A variable with a list of places is in one from where it was loaded on. */
static bool is_loaded(const struct placing *p, const struct closure_load *load,
		      const struct location_piece *piece)
{
	return load->place == piece->number && load->in_frame == (piece->kind == LOCATION_FRAME) &&
	       !piece->is_address && (load->pc == p->local.start || !p->facts->has_location_list);
}

/* Whether the piece came out of the closure of the function. */
static struct error *match_loads(struct placing *p, const struct location_piece *piece)
{
	const struct collecting *c = p->c;

	if (p->local.scope != c->function_scope || p->facts->tag != DW_TAG_variable ||
	    (piece->kind != LOCATION_FRAME && piece->kind != LOCATION_REGISTER))
		return NULL;
	for (unsigned i = 0; i < c->load_count; i++)
		if (is_loaded(p, &c->loads[i], piece))
			return add_capture(p, c->loads[i].offset,
					   c->loads[i].is_address ? CAPTURE_IN_PLACE
								  : CAPTURE_VALUE);
	return NULL;
}

/* Where the beginning of a parameter is when the function begins. */
static void note_entry(struct placing *p, const struct location_piece *piece)
{
	if (p->local.start != p->c->function.entry)
		return;
	if (piece->kind == LOCATION_FRAME)
		p->entry = PARAM_IN_FRAME;
	else if (piece->kind == LOCATION_REGISTER && piece->number <= INT32_MAX)
		p->entry = (int32_t)piece->number;
}

static struct error *add_place(void *arg, uint64_t start, uint64_t end, const uint8_t *expression,
			       size_t size)
{
	struct placing *p = arg;
	struct location_piece pieces[LOCATION_PIECES_MAX];
	unsigned count;
	struct error *err = dwarf_expression_read(expression, size, pieces, &count);

	p->local.start = start;
	p->local.end = end;
	for (unsigned i = 0; !err && i < count; i++) {
		p->local.piece = (struct built_piece){ 0 };
		if (pieces[i].size && size <= UINT16_MAX)
			p->local.piece =
			    (struct built_piece){ expression, (uint16_t)size, (uint16_t)i };
		if (!i)
			note_entry(p, &pieces[i]);
		err = add_piece(p, &pieces[i]);
		if (!err)
			err = match_loads(p, &pieces[i]);
	}
	return err;
}

/* The variable has one place, good for the whole block. */
static struct error *add_range(void *arg, uint64_t start, uint64_t end, const uint8_t *expression,
			       size_t size)
{
	struct placing *p = arg;

	(void)expression;
	(void)size;
	return add_place(arg, start, end, p->facts->expression, p->facts->expression_size);
}

static struct error *place_local(struct placing *p, const struct level *level)
{
	struct collecting *c = p->c;
	const struct dwarf_list_visitor places = { add_place, p }, ranges = { add_range, p };

	if (p->facts->has_location_list)
		return dwarf_lists_locations(&c->b->lists, &c->unit, p->facts->location_list,
					     &places);
	if (!p->facts->expression_size)
		return NULL;
	if (level->has_ranges)
		return dwarf_lists_ranges(&c->b->lists, &c->unit, level->ranges, &ranges);
	return level->low < level->high ? add_range(p, level->low, level->high, NULL, 0) : NULL;
}

static struct error *add_param(struct placing *p)
{
	const struct built_param param = { .name = p->local.name,
					   .origin = p->local.origin,
					   .type = p->local.type,
					   .entry = p->entry,
					   .is_result = p->facts->is_result };

	return built_list_add(&p->c->b->params, &param);
}

/* Names of the program have no point, some of the compiler's begin with one ("&.autotmp_9"). */
static const char *point_in(const char *name)
{
	if (*name == '&')
		name++;
	return *name ? strchr(name + 1, '.') : NULL;
}

/*
 * Of a variable that was taken apart, "x.ptr" or "x.data" may be there beside x, in its place in
 * the frame for all of the function; x is where it is at the time, and may be nowhere.
 *
 * cmd/compile/internal/ssagen/ssa.go, SplitSlot; ssa/func.go, SplitSlice, SplitInterface.
 */
static struct error *name_local(struct collecting *c, const char *name, struct built_local *local)
{
	const char *point = name ? point_in(name) : NULL;

	if (!point)
		return builder_name(c->b, name, &local->name);
	local->is_split = true;
	local->is_data = strcmp(point, ".data") == 0;
	return string_pool_add(&c->b->strings, name, (size_t)(point - name), &local->name);
}

static struct error *add_local(struct collecting *c, const struct level *level,
			       const struct dwarf_facts *facts)
{
	struct placing p = { .c = c, .facts = facts, .entry = PARAM_UNKNOWN };
	struct error *err = name_local(c, facts->name, &p.local);

	p.local.origin = (uint32_t)facts->origin;
	p.local.type = (uint32_t)facts->type;
	p.local.scope = level->scope;
	if (!err)
		err = place_local(&p, level);
	if (!err && facts->closure_offset)
		err = add_capture(&p, facts->closure_offset, CAPTURE_TOLD);
	if (!err && facts->tag == DW_TAG_formal_parameter && level->scope == c->function_scope)
		err = add_param(&p);
	return err;
}

static struct error *add_origin(struct collecting *c, const struct dwarf_facts *facts)
{
	struct built_origin origin = { .die = (uint32_t)facts->offset,
				       .type = (uint32_t)facts->type,
				       .is_result = facts->is_result };
	struct error *err = builder_name(c->b, facts->name, &origin.name);

	return err ? err : built_list_add(&c->b->origins, &origin);
}

/* ---- functions ---- */

static struct error *add_scope(struct collecting *c, const struct dwarf_facts *facts, uint32_t *ret)
{
	struct built_scope scope = { .origin = (uint32_t)facts->origin };
	struct error *err = builder_name(c->b, facts->name, &scope.name);

	*ret = built_list_count(&c->b->scopes);
	return err ? err : built_list_add(&c->b->scopes, &scope);
}

static void take_ranges(struct level *level, const struct dwarf_facts *facts)
{
	level->low = facts->low;
	level->high = facts->high;
	level->ranges = facts->ranges;
	level->has_ranges = facts->has_ranges;
}

/* Code that cannot be read loads nothing. */
static void find_loads(struct collecting *c, const struct dwarf_facts *facts)
{
	uint8_t code[CLOSURE_LOAD_CODE_MAX];
	uint64_t size = facts->high - facts->low;
	struct error *err;

	c->load_count = 0;
	if (!c->closures || c->code_looked_at > code_looked_at_max)
		return;
	if (size > sizeof(code))
		size = sizeof(code);
	c->code_looked_at += size;
	err = elf_file_read_addr(c->b->executable, facts->low, code, size);
	if (!err)
		c->load_count = closure_reader_find(c->closures, code, size, facts->low, c->loads);
	error_free(err);
}

static struct error *enter_function(struct collecting *c, const struct dwarf_facts *facts,
				    struct level *ret)
{
	ret->inside = facts->is_abstract ? INSIDE_ABSTRACT : INSIDE_OTHER;
	if (facts->is_abstract)
		return add_origin(c, facts);
	if (!facts->low || facts->low >= facts->high)
		return NULL;
	ret->inside = INSIDE_FUNCTION;
	take_ranges(ret, facts);
	c->function = (struct built_function){
		.entry = facts->low,
		.first_local = built_list_count(&c->b->locals),
		.end = facts->high,
		.first_capture = built_list_count(&c->b->captures),
		.first_param = built_list_count(&c->b->params),
		.scope = built_list_count(&c->b->scopes),
	};
	find_loads(c, facts);
	c->function_scope = c->function.scope;
	return add_scope(c, facts, &ret->scope);
}

static struct error *leave_function(struct collecting *c)
{
	struct built_function *f = &c->function;

	f->local_count = built_list_count(&c->b->locals) - f->first_local;
	f->capture_count = built_list_count(&c->b->captures) - f->first_capture;
	f->param_count = built_list_count(&c->b->params) - f->first_param;
	if (!f->local_count && !f->capture_count && !f->param_count)
		return NULL;
	return built_list_add(&c->b->functions, f);
}

static struct error *visit_in_function(struct collecting *c, const struct level *level,
				       const struct dwarf_facts *facts, struct level *ret)
{
	switch (facts->tag) {
	case DW_TAG_variable:
	case DW_TAG_formal_parameter:
		return add_local(c, level, facts);
	case DW_TAG_lexical_block:
		ret->inside = INSIDE_FUNCTION;
		ret->scope = level->scope;
		take_ranges(ret, facts);
		return NULL;
	case DW_TAG_inlined_subroutine:
		ret->inside = INSIDE_FUNCTION;
		take_ranges(ret, facts);
		return add_scope(c, facts, &ret->scope);
	default:
		return builder_add_type(c->b, facts); /* a generic function's own */
	}
}

/* ---- all else ---- */

static struct error *add_global(struct collecting *c, const struct dwarf_facts *facts)
{
	struct location_piece pieces[LOCATION_PIECES_MAX];
	struct global_record global = { .type = (uint32_t)facts->type };
	unsigned count;
	struct error *err =
	    dwarf_expression_read(facts->expression, facts->expression_size, pieces, &count);

	if (err || count != 1 || pieces[0].kind != LOCATION_FIXED || pieces[0].size)
		return err;
	global.addr = (uint64_t)pieces[0].number;
	err = builder_name(c->b, facts->name, &global.name);
	return err || !global.name ? err : built_list_add(&c->b->globals, &global);
}

static struct error *visit_in_unit(struct collecting *c, const struct dwarf_facts *facts,
				   struct level *ret)
{
	switch (facts->tag) {
	case DW_TAG_subprogram:
		return enter_function(c, facts, ret);
	case DW_TAG_variable:
		return add_global(c, facts);
	case DW_TAG_structure_type:
		ret->inside = INSIDE_STRUCT;
		break;
	case DW_TAG_array_type:
		ret->inside = INSIDE_ARRAY;
		break;
	default:
		break;
	}
	return builder_add_type(c->b, facts);
}

/* Fills *ret, the level of the entry's children, but for its die. */
static struct error *visit(struct collecting *c, const struct level *level,
			   const struct dwarf_facts *facts, struct level *ret)
{
	*ret = (struct level){ .inside = INSIDE_OTHER };
	switch (level->inside) {
	case INSIDE_UNIT:
		return visit_in_unit(c, facts, ret);
	case INSIDE_STRUCT:
		return facts->tag == DW_TAG_member ? builder_add_field(c->b, facts) : NULL;
	case INSIDE_ARRAY:
		if (facts->tag == DW_TAG_subrange_type)
			builder_set_length(c->b, facts->count);
		return NULL;
	case INSIDE_ABSTRACT:
		return facts->tag == DW_TAG_variable || facts->tag == DW_TAG_formal_parameter
			   ? add_origin(c, facts)
			   : NULL;
	case INSIDE_FUNCTION:
		return visit_in_function(c, level, facts, ret);
	default:
		return NULL;
	}
}

/* The entry's children are next, or what follows it. */
static struct error *step(struct collecting *c)
{
	struct level *level = &c->levels[c->depth - 1], below;
	struct dwarf_facts facts;
	struct error *err = dwarf_facts_read(c->b->object, level->die, &facts);

	if (!err && facts.offset > UINT32_MAX)
		err = error_new(ERROR_LIMIT, "DWARF: more than 4 GiB");
	if (!err)
		err = visit(c, level, &facts, &below);
	if (err)
		return err;
	if (below.inside != INSIDE_OTHER)
		err = die_child(c->b->object, level->die, &below.die);
	if (err)
		return err;
	if (below.inside != INSIDE_OTHER && below.die) {
		if (c->depth == DEPTH_MAX) {
			die_fini(&below.die);
			return error_new(ERROR_LIMIT, "DWARF: more than %d levels", DEPTH_MAX);
		}
		c->levels[c->depth++] = below;
		return NULL;
	}
	return die_next(c->b->object, &level->die);
}

/* Goes on behind the entry whose children are done. */
static struct error *leave(struct collecting *c)
{
	struct error *err = NULL;

	c->depth--;
	if (!c->depth)
		return NULL;
	if (c->depth == 1 && c->levels[1].inside == INSIDE_FUNCTION)
		err = leave_function(c);
	return err ? err : die_next(c->b->object, &c->levels[c->depth - 1].die);
}

static struct error *walk(struct collecting *c, Dwarf_Die unit)
{
	struct error *err;

	c->levels[0] = (struct level){ .inside = INSIDE_UNIT };
	c->depth = 1;
	err = die_child(c->b->object, unit, &c->levels[0].die);
	while (!err && c->depth)
		err = c->levels[c->depth - 1].die ? step(c) : leave(c);
	while (c->depth)
		die_fini(&c->levels[--c->depth].die);
	return err;
}

/* Code is only looked at where DWARF does not say what it captures. */
static struct error *choose_captures(struct collecting *c, uint64_t abbrev_offset)
{
	bool told = false;
	struct error *err = dwarf_object_has_attribute(c->b->object, abbrev_offset,
						       DWARF_AT_GO_CLOSURE_OFFSET, &told);

	if (err || told == !c->closures)
		return err;
	closure_reader_free(take(c->closures));
	return told ? NULL : closure_reader_new(&c->closures);
}

/* Units of C code are told by their language, and left out. */
static struct error *collect_unit(struct collecting *c, Dwarf_Die unit, Dwarf_Half version,
				  uint64_t abbrev_offset)
{
	const struct dwarf_object *object = c->b->object;
	struct dwarf_facts facts;
	Dwarf_Error error = NULL;
	Dwarf_Unsigned language = 0;
	struct error *err;

	if (dwarf_srclang(unit, &language, &error) == DW_DLV_ERROR)
		return dwarf_object_error(object, error, "DWARF unit");
	if (language != DW_LANG_Go)
		return NULL;
	err = dwarf_object_check_abbrevs(object, abbrev_offset);
	if (!err)
		err = choose_captures(c, abbrev_offset);
	if (!err)
		err = dwarf_facts_read(object, unit, &facts);
	if (err)
		return err;
	c->unit = (struct dwarf_unit){ version, facts.low, facts.addr_base };
	return walk(c, unit);
}

/* *ret_done: there are no more units. */
static struct error *next_unit(struct collecting *c, bool *ret_done)
{
	Dwarf_Debug debug = dwarf_object_debug(c->b->object);
	Dwarf_Error error = NULL;
	Dwarf_Die unit scoped(die_fini) = NULL;
	Dwarf_Off abbrev_offset;
	Dwarf_Half version;
	int status = dwarf_next_cu_header_d(debug, 1, NULL, &version, &abbrev_offset, NULL, NULL,
					    NULL, NULL, NULL, NULL, NULL, &error);

	*ret_done = status == DW_DLV_NO_ENTRY;
	if (*ret_done)
		return NULL;
	if (status == DW_DLV_OK)
		status = dwarf_siblingof_b(debug, NULL, 1, &unit, &error);
	if (status == DW_DLV_ERROR)
		return dwarf_object_error(c->b->object, error, "DWARF unit");
	return unit ? collect_unit(c, unit, version, abbrev_offset) : NULL;
}

struct error *type_index_collect(struct type_index_builder *b)
{
	struct collecting *c scoped(freep) = calloc(1, sizeof(*c));
	struct error *err = NULL;
	bool done = false;

	if (!c)
		return &error_nomem;
	c->b = b;
	while (!err && !done)
		err = next_unit(c, &done);
	closure_reader_free(c->closures);
	return err;
}
