/*
 * The compiler takes a variable apart into its leaves, each a register's worth: the words of a
 * string, the fields of a struct in a struct. Pieces of locations are leaves in order, told by
 * their sizes alone: where there is padding, or a leaf is left out since the function has no use
 * for it, only the type tells where they lie, and at times it does not. Up to go1.21 some pieces
 * are there twice.
 *
 * cmd/compile/internal/ssa/debug.go, BuildFuncDebug and varSlots.
 */
#include <string.h>

#include "agent/binary/type_index_builder.h"
#include "agent/binary/type_index_kind.h"

enum {
	LEAVES_MAX = 2 * LOCATION_PIECES_MAX,
	PARTS_MAX = 64, /* that wait to be taken apart */
	PARTS_LOOKED_AT_MAX = 4096,
	WORD = 8,
};

struct leaf {
	uint64_t offset, size;
	bool is_pointer;
};

struct part {
	uint32_t type;
	uint64_t offset;
};

struct taking_apart {
	const struct type_shapes *shapes;
	struct part waiting[PARTS_MAX]; /* the first is the last */
	unsigned waiting_count;
	struct leaf leaves[LEAVES_MAX];
	unsigned leaf_count;
	bool failed; /* more than the compiler would take apart */
};

static const struct type_record *record_at(const struct type_shapes *shapes, uint32_t number)
{
	const struct built_type *type = built_list_at(shapes->types, number - 1);

	return &type->record;
}

static void add_leaf(struct taking_apart *t, uint64_t offset, uint64_t size, bool is_pointer)
{
	if (t->leaf_count == LEAVES_MAX)
		t->failed = true;
	else if (size)
		t->leaves[t->leaf_count++] = (struct leaf){ offset, size, is_pointer };
}

/* The first pointer_count of them are pointers. */
static void add_leaves(struct taking_apart *t, uint64_t offset, uint64_t size, unsigned count,
		       unsigned pointer_count)
{
	for (unsigned i = 0; i < count; i++)
		add_leaf(t, offset + i * size, size, i < pointer_count);
}

static void add_part(struct taking_apart *t, uint32_t type, uint64_t offset)
{
	if (!type || t->waiting_count == PARTS_MAX)
		t->failed = true;
	else
		t->waiting[t->waiting_count++] = (struct part){ type, offset };
}

static void take_struct_apart(struct taking_apart *t, const struct type_record *record,
			      uint64_t offset)
{
	for (uint32_t i = record->field_count; i > 0 && !t->failed; i--) {
		const struct field_record *field =
		    built_list_at(t->shapes->fields, record->first_field + i - 1);

		add_part(t, field->type, offset + field->offset);
	}
}

static void take_array_apart(struct taking_apart *t, const struct type_record *record,
			     uint64_t offset)
{
	for (uint64_t i = record->length; i > 0 && !t->failed; i--)
		add_part(t, record->elem,
			 offset + (i - 1) * (record->elem ? record_at(t->shapes, record->elem)->size
							  : 0));
}

static void take_apart(struct taking_apart *t, const struct type_record *record, uint64_t offset)
{
	switch (record->kind) {
	case KIND_STRUCT:
		take_struct_apart(t, record, offset);
		break;
	case KIND_ARRAY:
		take_array_apart(t, record, offset);
		break;
	case KIND_STRING:
		add_leaves(t, offset, WORD, 2, 1);
		break;
	case KIND_INTERFACE:
		add_leaves(t, offset, WORD, 2, 2);
		break;
	case KIND_SLICE:
		add_leaves(t, offset, WORD, 3, 1);
		break;
	case KIND_COMPLEX64:
	case KIND_COMPLEX128:
		add_leaves(t, offset, record->size / 2, 2, 0);
		break;
	default:
		add_leaf(t, offset, record->size, !record->kind || record->kind > KIND_ARRAY);
	}
}

static bool find_leaves(struct taking_apart *t, uint32_t type)
{
	add_part(t, type, 0);
	for (unsigned i = 0; t->waiting_count && !t->failed; i++) {
		struct part part = t->waiting[--t->waiting_count];

		if (i == PARTS_LOOKED_AT_MAX)
			return false;
		take_apart(t, record_at(t->shapes, part.type), part.offset);
	}
	return !t->failed;
}

/* Leaves out what is there twice; the piece that is wanted gets another number. */
static void drop_repeated(struct location_piece *pieces, unsigned *count, unsigned *wanted)
{
	unsigned kept = 0, number = *wanted;

	for (unsigned i = 0; i < *count; i++) {
		const struct location_piece *before = kept ? &pieces[kept - 1] : NULL;

		if (before && before->kind && pieces[i].kind == before->kind &&
		    pieces[i].number == before->number && pieces[i].size == before->size) {
			number -= i <= *wanted;
			continue;
		}
		pieces[kept++] = pieces[i];
	}
	*count = kept;
	*wanted = number;
}

/* The first leaf that the wanted piece can be, going forward with each; leaf_count if none. */
static unsigned first_leaf(const struct taking_apart *t, const struct location_piece *pieces,
			   unsigned wanted)
{
	unsigned next = 0;

	for (unsigned i = 0; i <= wanted; i++, next++)
		while (next < t->leaf_count && t->leaves[next].size != pieces[i].size)
			next++;
	return next > t->leaf_count ? t->leaf_count : next - 1;
}

/* The last one, going backward from the last piece; leaf_count if none. */
static unsigned last_leaf(const struct taking_apart *t, const struct location_piece *pieces,
			  unsigned count, unsigned wanted)
{
	unsigned end = t->leaf_count;

	for (unsigned i = count; i > wanted; i--, end--) {
		while (end && t->leaves[end - 1].size != pieces[i - 1].size)
			end--;
		if (!end)
			return t->leaf_count;
	}
	return end;
}

/*
 * Every leaf in between that is as large can be the one; or every leaf at all, where the pieces are
 * more than there are leaves, or others.
 */
static enum piece_place match(const struct taking_apart *t, const struct location_piece *pieces,
			      unsigned count, unsigned wanted, bool is_pointer, uint64_t *ret)
{
	bool fits = first_leaf(t, pieces, count - 1) < t->leaf_count;
	unsigned first = fits ? first_leaf(t, pieces, wanted) : 0;
	unsigned last = fits ? last_leaf(t, pieces, count, wanted) : t->leaf_count;
	enum piece_place found = PIECE_NOWHERE;

	for (unsigned i = first; i <= last && i < t->leaf_count; i++) {
		const struct leaf *leaf = &t->leaves[i];

		if (leaf->size != pieces[wanted].size || (is_pointer && !leaf->is_pointer))
			continue;
		*ret = found ? 0 : leaf->offset;
		found = found ? PIECE_AMBIGUOUS : PIECE_KNOWN;
		if (found == PIECE_AMBIGUOUS)
			break;
	}
	return found;
}

enum piece_place type_index_piece_offset(const struct type_shapes *shapes, uint32_t type,
					 const struct built_piece *piece, bool is_pointer,
					 uint64_t *ret)
{
	struct taking_apart t = { .shapes = shapes };
	struct location_piece pieces[LOCATION_PIECES_MAX];
	unsigned count, wanted = piece->number;
	struct error *err;

	*ret = 0;
	if (!piece->expression)
		return PIECE_KNOWN;
	err = dwarf_expression_read(piece->expression, piece->expression_size, pieces, &count);
	if (err) {
		error_free(err);
		return PIECE_NOWHERE;
	}
	if (!find_leaves(&t, type))
		return PIECE_AMBIGUOUS;
	drop_repeated(pieces, &count, &wanted);
	return match(&t, pieces, count, wanted, is_pointer, ret);
}
