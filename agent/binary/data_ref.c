#include "agent/binary/data_ref.h"

#include <stdlib.h>

#include <capstone/capstone.h>

/* Capstone's own objects, freed together. */
struct disassembler {
	csh handle;
	cs_insn *instruction;
};

static void disassembler_fini(struct disassembler *d)
{
	if (d->instruction)
		cs_free(d->instruction, 1);
	if (d->handle)
		cs_close(&d->handle);
}

static struct error *disassembler_init(struct disassembler *d)
{
	cs_err status = cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);

	if (status == CS_ERR_OK)
		status = cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	if (status == CS_ERR_OK) {
		d->instruction = cs_malloc(d->handle);
		status = d->instruction ? CS_ERR_OK : CS_ERR_MEM;
	}
	if (status == CS_ERR_MEM)
		return &error_nomem;
	if (status != CS_ERR_OK)
		return error_new(ERROR_SYSTEM, "Capstone: %s", cs_strerror(status));
	return NULL;
}

/* The operand relative to the instruction pointer, of which an instruction has one at most. */
static bool reference_of(const cs_insn *instruction, struct data_ref *ret)
{
	const cs_x86 *x86 = &instruction->detail->x86;

	for (uint8_t i = 0; i < x86->op_count; i++) {
		const cs_x86_op *op = &x86->operands[i];

		if (op->type != X86_OP_MEM || op->mem.base != X86_REG_RIP)
			continue;
		ret->addr = instruction->address + instruction->size + (uint64_t)op->mem.disp;
		ret->width = instruction->id == X86_INS_LEA ? 0 : op->size;
		return true;
	}
	return false;
}

struct error *data_ref_read(const uint8_t *code, size_t size, taddr pc, struct data_ref **ret,
			    size_t *ret_count)
{
	struct disassembler d scoped(disassembler_fini) = { 0 };
	struct data_ref *refs scoped(freep) = calloc(DATA_REF_COUNT_MAX, sizeof(*refs));
	size_t count = 0;
	struct error *err = refs ? disassembler_init(&d) : &error_nomem;

	if (err)
		return err;
	if (size > DATA_REF_FUNCTION_MAX)
		size = DATA_REF_FUNCTION_MAX;
	while (count < DATA_REF_COUNT_MAX &&
	       cs_disasm_iter(d.handle, &code, &size, &pc, d.instruction))
		count += reference_of(d.instruction, &refs[count]);
	*ret = take(refs);
	*ret_count = count;
	return NULL;
}
