/*
 * Encoded names: a byte of flags, the length, the text; where the flags say so the length and text
 * of a tag. To go1.16 a length is two bytes, the greater first, then a varint (abi.Name; runtime's
 * and reflect's name before go1.21). No layout tells the two apart, but the text does: a name of a
 * length that is no text is not meant.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/goruntime/layout.h"
#include "agent/goruntime/module.h"
#include "agent/goruntime/reflect_offsets.h"
#include "agent/goruntime/rtype.h"
#include "agent/goruntime/type_memory.h"
#include "proto/base/bytes.h"

enum {
	FLAG_TAG = 2,
	FLAG_EMBEDDED = 8,
	VARINT_BYTES_MAX = 3, /* RTYPE_NAME_MAX needs no more */
};

struct error *rtype_resolve(const struct rtype_source *source, taddr base, int32_t offset,
			    taddr *ret)
{
	const struct module *module = module_table_find_types(source->modules, base);

	*ret = 0;
	if (!offset || offset == -1) /* none, or what the linker left out */
		return module || !offset
			   ? NULL
			   : reflect_offsets_find(source->reflect_offsets, source->memory,
						  source->layout, offset, ret);
	if (!module)
		return reflect_offsets_find(source->reflect_offsets, source->memory, source->layout,
					    offset, ret);
	if (offset > 0 && (uint32_t)offset < module->etypes - module->types)
		*ret = module->types + (uint32_t)offset;
	return NULL;
}

static bool is_text(const uint8_t *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

/* Any text at addr; ERROR_FORMAT if it has control characters and must not have. */
static struct error *read_text(const struct rtype_source *source, taddr addr, uint64_t size,
			       bool strict, char **ret)
{
	char *text scoped(freep) = NULL;
	struct error *err;

	if (size > RTYPE_NAME_MAX)
		return error_new(ERROR_LIMIT, "a name of %" PRIu64 " bytes", size);
	text = malloc(size + 1);
	if (!text)
		return &error_nomem;
	err = type_memory_read(source->memory, addr, text, size);
	if (err)
		return err;
	text[size] = '\0';
	if (strict && !is_text((const uint8_t *)text, size))
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no name", addr);
	*ret = take(text);
	return NULL;
}

static struct error *varint_length(const struct rtype_source *source, taddr *addr, uint64_t *ret)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
		uint8_t byte;
		struct error *err = type_memory_read(source->memory, (*addr)++, &byte, 1);

		if (err)
			return err;
		length |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*ret = length;
			return NULL;
		}
	}
	return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no name", *addr);
}

static struct error *two_byte_length(const struct rtype_source *source, taddr *addr, uint64_t *ret)
{
	uint8_t bytes[2];
	struct error *err = type_memory_read(source->memory, *addr, bytes, sizeof(bytes));

	if (err)
		return err;
	*addr += sizeof(bytes);
	*ret = (uint64_t)bytes[0] << 8 | bytes[1];
	return NULL;
}

typedef struct error *length_reader(const struct rtype_source *, taddr *, uint64_t *);

/* Text and tag whose lengths are written in one way; flags lie at addr. */
static struct error *read_encoded(const struct rtype_source *source, taddr addr,
				  length_reader *read_length, char **ret, char **ret_tag)
{
	char *text scoped(freep) = NULL, *tag scoped(freep) = NULL;
	uint64_t length;
	uint8_t flags;
	struct error *err = type_memory_read(source->memory, addr++, &flags, 1);

	if (!err)
		err = read_length(source, &addr, &length);
	if (!err)
		err = read_text(source, addr, length, true, &text);
	if (err)
		return err;
	addr += length;
	if (ret_tag && flags & FLAG_TAG) {
		err = read_length(source, &addr, &length);
		if (!err)
			err = read_text(source, addr, length, false, &tag);
		if (err)
			return err;
	}
	*ret = take(text);
	if (ret_tag)
		*ret_tag = take(tag);
	return NULL;
}

/* Is this of a time in which lengths may have had two bytes? */
static bool may_be_old(const struct layout *layout)
{
	return layout_has(layout, struct_field_offset_and_embedded);
}

static bool is_final(const struct error *err)
{
	return !err || error_code(err) == ERROR_NOMEM || error_code(err) == ERROR_GONE;
}

struct error *rtype_text(const struct rtype_source *source, taddr name, char **ret, char **ret_tag)
{
	struct error *err;

	if (!name || name > UINT64_MAX - 4 * RTYPE_NAME_MAX)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": no name", name);
	if (may_be_old(source->layout)) {
		err = read_encoded(source, name, two_byte_length, ret, ret_tag);
		if (is_final(err))
			return err;
		error_free(err);
	}
	return read_encoded(source, name, varint_length, ret, ret_tag);
}

struct error *rtype_name_is_embedded(const struct rtype_source *source, taddr name, bool *ret)
{
	uint8_t flags;
	struct error *err = type_memory_read(source->memory, name, &flags, 1);

	if (!err)
		*ret = !may_be_old(source->layout) && flags & FLAG_EMBEDDED;
	return err;
}

/* Types that only the runtime's own code handles, like a map's buckets, have this before. */
static const char no_algorithms[] = "noalg.";

struct error *rtype_string(const struct rtype_source *source, const struct rtype *type, char **ret)
{
	char *text scoped(freep) = NULL;
	const char *from;
	struct error *err = rtype_text(source, type->name, &text, NULL);

	if (err)
		return err;
	from = text + (type->extra_star && *text == '*');
	if (!strncmp(from, no_algorithms, sizeof(no_algorithms) - 1))
		from += sizeof(no_algorithms) - 1;
	if (!*from)
		return error_new(ERROR_FORMAT, "0x%" PRIx64 ": a type without a name", type->addr);
	memmove(text, from, strlen(from) + 1);
	*ret = take(text);
	return NULL;
}
