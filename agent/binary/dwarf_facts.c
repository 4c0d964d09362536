#include "agent/binary/dwarf_facts.h"

#include <dwarf.h>

#include "proto/base/bytes.h"

/* cmd/internal/dwarf/dwarf.go. */
enum {
	AT_GO_KIND = 0x2900,
	AT_GO_KEY = 0x2901,
	AT_GO_ELEM = 0x2902,
	AT_GO_RUNTIME_TYPE = 0x2904,
};

enum { ATTRIBUTES_MAX = 64 };

struct reading {
	const struct dwarf_object *object;
	struct dwarf_facts *ret;
	bool high_is_size;
};

static int read_name(Dwarf_Attribute attr, const char **ret, Dwarf_Error *error)
{
	char *text;
	int status = dwarf_formstring(attr, &text, error);

	if (status == DW_DLV_OK)
		*ret = text;
	return status;
}

static int read_number(Dwarf_Attribute attr, uint64_t *ret, Dwarf_Error *error)
{
	Dwarf_Unsigned value;
	int status = dwarf_formudata(attr, &value, error);

	if (status == DW_DLV_OK)
		*ret = value;
	return status;
}

static int read_addr(Dwarf_Attribute attr, uint64_t *ret, Dwarf_Error *error)
{
	Dwarf_Addr value;
	int status = dwarf_formaddr(attr, &value, error);

	if (status == DW_DLV_OK)
		*ret = value;
	return status;
}

/* A reference to an entry, or to a place in another section. */
static int read_offset(Dwarf_Attribute attr, uint64_t *ret, Dwarf_Error *error)
{
	Dwarf_Off value;
	int status = dwarf_global_formref(attr, &value, error);

	if (status == DW_DLV_OK)
		*ret = value;
	return status;
}

static int read_flag(Dwarf_Attribute attr, bool *ret, Dwarf_Error *error)
{
	Dwarf_Bool value = 0;
	int status = dwarf_formflag(attr, &value, error);

	*ret = value;
	return status;
}

static bool is_address_form(Dwarf_Half form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

static int read_high(struct reading *r, Dwarf_Attribute attr, Dwarf_Half form, Dwarf_Error *error)
{
	if (is_address_form(form))
		return read_addr(attr, &r->ret->high, error);
	r->high_is_size = true;
	return read_number(attr, &r->ret->high, error);
}

static int read_block(const struct reading *r, Dwarf_Attribute attr, Dwarf_Error *error)
{
	Dwarf_Block *block;
	int status = dwarf_formblock(attr, &block, error);

	if (status != DW_DLV_OK)
		return status;
	r->ret->expression = block->bl_data;
	r->ret->expression_size = block->bl_len;
	dwarf_dealloc(dwarf_object_debug(r->object), block, DW_DLA_BLOCK);
	return DW_DLV_OK;
}

static int read_location(const struct reading *r, Dwarf_Attribute attr, Dwarf_Half form,
			 Dwarf_Error *error)
{
	Dwarf_Unsigned size;
	Dwarf_Ptr bytes;
	int status;

	switch (form) {
	case DW_FORM_sec_offset:
		r->ret->has_location_list = true;
		return read_offset(attr, &r->ret->location_list, error);
	case DW_FORM_exprloc:
		status = dwarf_formexprloc(attr, &size, &bytes, error);
		if (status == DW_DLV_OK) {
			r->ret->expression = bytes;
			r->ret->expression_size = size;
		}
		return status;
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		return read_block(r, attr, error);
	default:
		return DW_DLV_OK; /* none that Go writes */
	}
}

static int read_which(struct reading *r, Dwarf_Half which, Dwarf_Attribute attr, Dwarf_Half form,
		      Dwarf_Error *error)
{
	struct dwarf_facts *f = r->ret;

	switch (which) {
	case DW_AT_name:
		return read_name(attr, &f->name, error);
	case DW_AT_byte_size:
		f->has_size = true;
		return read_number(attr, &f->size, error);
	case DW_AT_count:
		return read_number(attr, &f->count, error);
	case DW_AT_data_member_location:
		return read_number(attr, &f->member_offset, error);
	case DW_AT_type:
		return read_offset(attr, &f->type, error);
	case DW_AT_abstract_origin:
		return read_offset(attr, &f->origin, error);
	case DW_AT_low_pc:
		return read_addr(attr, &f->low, error);
	case DW_AT_high_pc:
		return read_high(r, attr, form, error);
	case DW_AT_ranges:
		f->has_ranges = form == DW_FORM_sec_offset;
		return f->has_ranges ? read_offset(attr, &f->ranges, error) : DW_DLV_OK;
	case DW_AT_addr_base:
		return read_offset(attr, &f->addr_base, error);
	case DW_AT_decl_line:
		return read_number(attr, &f->line, error);
	case DW_AT_variable_parameter:
		return read_flag(attr, &f->is_result, error);
	case DW_AT_inline:
		f->is_abstract = true;
		return DW_DLV_OK;
	case DW_AT_location:
		return read_location(r, attr, form, error);
	case AT_GO_KIND:
		return read_number(attr, &f->kind, error);
	case AT_GO_KEY:
		return read_offset(attr, &f->key, error);
	case AT_GO_ELEM:
		return read_offset(attr, &f->elem, error);
	case AT_GO_RUNTIME_TYPE:
		return read_addr(attr, &f->runtime_type, error);
	case DWARF_AT_GO_CLOSURE_OFFSET:
		return read_number(attr, &f->closure_offset, error);
	default:
		return DW_DLV_OK;
	}
}

static struct error *read_attribute(struct reading *r, Dwarf_Attribute attr)
{
	Dwarf_Error error = NULL;
	Dwarf_Half which = 0, form = 0;
	int status = dwarf_whatattr(attr, &which, &error);

	if (status == DW_DLV_OK)
		status = dwarf_whatform(attr, &form, &error);
	if (status == DW_DLV_OK)
		status = read_which(r, which, attr, form, &error);
	return status == DW_DLV_OK ? NULL : dwarf_object_error(r->object, error, "DWARF attribute");
}

static struct error *read_attributes(struct reading *r, Dwarf_Die die)
{
	Dwarf_Error error = NULL;
	Dwarf_Attribute *attrs;
	Dwarf_Signed count;
	struct error *err = NULL;
	int status = dwarf_attrlist(die, &attrs, &count, &error);

	if (status == DW_DLV_NO_ENTRY)
		return NULL;
	if (status != DW_DLV_OK)
		return dwarf_object_error(r->object, error, "DWARF attributes");
	if (count > ATTRIBUTES_MAX)
		err = error_new(ERROR_LIMIT, "DWARF: an entry of %lld attributes", count);
	for (Dwarf_Signed i = 0; i < count; i++) {
		if (!err)
			err = read_attribute(r, attrs[i]);
		dwarf_dealloc_attribute(attrs[i]);
	}
	dwarf_dealloc(dwarf_object_debug(r->object), attrs, DW_DLA_LIST);
	return err;
}

struct error *dwarf_facts_read(const struct dwarf_object *object, Dwarf_Die die,
			       struct dwarf_facts *ret)
{
	struct dwarf_facts facts = { 0 };
	struct reading r = { .object = object, .ret = &facts };
	Dwarf_Off offset = 0;
	struct error *err = die_tag(object, die, &facts.tag);

	if (!err)
		err = die_offset(object, die, &offset);
	facts.offset = offset;
	if (!err)
		err = read_attributes(&r, die);
	if (err)
		return err;
	if (r.high_is_size && __builtin_add_overflow(facts.low, facts.high, &facts.high))
		return error_new(ERROR_FORMAT, "DWARF: a function without an end");
	*ret = facts;
	return NULL;
}
