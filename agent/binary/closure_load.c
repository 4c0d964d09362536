/*
 * The code is read from its start to its end, as if it ran so, keeping in mind which registers and
 * words of the frame hold the closure, and which hold something that came out of it. Where another
 * path may lead in, behind a jump or return, registers are unknown; a word of the frame that the
 * closure was put in stays that.
 */
#include "agent/binary/closure_load.h"

#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

enum {
	REGISTER_COUNT = 33, /* as DWARF numbers them: 16 general ones, the pc, 16 of SSE */
	REGISTER_NONE = REGISTER_COUNT,
	REGISTER_CONTEXT = 1, /* rdx */
	FIRST_SSE = 17,
	SLOTS_MAX = 8,
	WORD = 8,
};

struct closure_reader {
	csh handle;
	cs_insn *instruction;
};

enum content { HOLDS_OTHER, HOLDS_CLOSURE, HOLDS_FIELD, HOLDS_FIELD_ADDRESS };

struct holder {
	enum content content;
	uint64_t offset; /* of the field */
};

struct tracking {
	const struct closure_reader *reader;
	struct holder registers[REGISTER_COUNT];
	int64_t slots[SLOTS_MAX]; /* words of the frame that hold the closure, from the CFA */
	unsigned slot_count;
	int64_t depth; /* of sp below the CFA */
	bool has_frame;
	taddr next_pc;
	struct closure_load *loads;
	unsigned load_count;
};

struct error *closure_reader_new(struct closure_reader **ret)
{
	struct closure_reader *reader scoped(closure_reader_freep) = calloc(1, sizeof(*reader));

	if (!reader)
		return &error_nomem;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &reader->handle) != CS_ERR_OK ||
	    cs_option(reader->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK)
		return error_new(ERROR_SYSTEM, "Capstone cannot be had");
	reader->instruction = cs_malloc(reader->handle);
	if (!reader->instruction)
		return &error_nomem;
	*ret = take(reader);
	return NULL;
}

void closure_reader_free(struct closure_reader *reader)
{
	if (!reader)
		return;
	if (reader->instruction)
		cs_free(reader->instruction, 1);
	if (reader->handle)
		cs_close(&reader->handle);
	free(reader);
}

/* All names of a register are one; what is none of them is REGISTER_NONE. */
static unsigned register_of(unsigned reg)
{
	static const uint16_t names[16][4] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};

	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15)
		return FIRST_SSE + reg - X86_REG_XMM0;
	for (unsigned i = 0; i < 16; i++)
		for (unsigned j = 0; j < 4; j++)
			if (names[i][j] == reg)
				return i;
	return REGISTER_NONE;
}

static void add_load(struct tracking *t, const struct holder *holder, int64_t place, bool in_frame)
{
	if (t->load_count == CLOSURE_LOADS_MAX)
		return;
	t->loads[t->load_count++] = (struct closure_load){
		.pc = t->next_pc,
		.offset = holder->offset,
		.place = place,
		.in_frame = in_frame,
		.is_address = holder->content == HOLDS_FIELD_ADDRESS,
	};
}

static void put(struct tracking *t, unsigned reg, struct holder holder)
{
	t->registers[reg] = holder;
	if (holder.content >= HOLDS_FIELD)
		add_load(t, &holder, reg, false);
}

static bool is_slot(const struct tracking *t, int64_t place)
{
	for (unsigned i = 0; i < t->slot_count; i++)
		if (t->slots[i] == place)
			return true;
	return false;
}

static void add_slot(struct tracking *t, int64_t place)
{
	if (t->slot_count < SLOTS_MAX && !is_slot(t, place))
		t->slots[t->slot_count++] = place;
}

static bool is_move(unsigned id)
{
	switch (id) {
	case X86_INS_MOV:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_MOVUPS:
	case X86_INS_MOVDQU:
	case X86_INS_MOVSD:
	case X86_INS_MOVSS:
	case X86_INS_MOVQ:
		return true;
	default:
		return false;
	}
}

/* What an operand names that is read, or whose address is taken. */
static struct holder read_operand(const struct tracking *t, const cs_x86_op *op, bool address)
{
	struct holder other = { HOLDS_OTHER, 0 };
	unsigned reg;

	if (op->type == X86_OP_REG) {
		reg = register_of(op->reg);
		return reg == REGISTER_NONE ? other : t->registers[reg];
	}
	if (op->type != X86_OP_MEM || op->mem.index != X86_REG_INVALID)
		return other;
	if (op->mem.base == X86_REG_RSP && !address && op->size == WORD &&
	    is_slot(t, op->mem.disp - t->depth))
		return (struct holder){ HOLDS_CLOSURE, 0 };
	reg = register_of(op->mem.base);
	if (reg == REGISTER_NONE || t->registers[reg].content != HOLDS_CLOSURE ||
	    op->mem.disp < WORD)
		return other;
	return (struct holder){ address ? HOLDS_FIELD_ADDRESS : HOLDS_FIELD,
				(uint64_t)op->mem.disp };
}

static void write_frame(struct tracking *t, const cs_x86_op *op, struct holder holder)
{
	int64_t place = op->mem.disp - t->depth;

	if (op->mem.base != X86_REG_RSP || op->mem.index != X86_REG_INVALID)
		return;
	if (holder.content == HOLDS_CLOSURE && op->size == WORD)
		add_slot(t, place);
	else if (holder.content >= HOLDS_FIELD)
		add_load(t, &holder, place, true);
}

static void forget_registers(struct tracking *t)
{
	memset(t->registers, 0, sizeof(t->registers));
}

static void forget_written(struct tracking *t, const cs_insn *instruction)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(t->reader->handle, instruction, read, &read_count, written,
			   &written_count) != CS_ERR_OK) {
		forget_registers(t);
		return;
	}
	for (uint8_t i = 0; i < written_count; i++) {
		unsigned reg = register_of(written[i]);

		if (reg != REGISTER_NONE)
			t->registers[reg] = (struct holder){ HOLDS_OTHER, 0 };
	}
}

/* The frame is made once, at the beginning; later changes of sp are those of returns. */
static void follow_frame(struct tracking *t, const cs_insn *instruction)
{
	const cs_x86_op *ops = instruction->detail->x86.operands;

	if (t->has_frame)
		return;
	if (instruction->id == X86_INS_PUSH)
		t->depth += WORD;
	if (instruction->id == X86_INS_SUB && ops[0].type == X86_OP_REG &&
	    ops[0].reg == X86_REG_RSP && ops[1].type == X86_OP_IMM) {
		t->depth += ops[1].imm;
		t->has_frame = true;
	}
}

static void follow(struct tracking *t, const cs_insn *instruction)
{
	const cs_x86 *x86 = &instruction->detail->x86;
	bool moves = is_move(instruction->id), address = instruction->id == X86_INS_LEA;
	struct holder holder;

	follow_frame(t, instruction);
	if (instruction->id == X86_INS_CALL || instruction->id == X86_INS_JMP ||
	    instruction->id == X86_INS_RET) {
		forget_registers(t);
		return;
	}
	if ((!moves && !address) || x86->op_count != 2) {
		forget_written(t, instruction);
		return;
	}
	holder = read_operand(t, &x86->operands[1], address);
	forget_written(t, instruction);
	if (x86->operands[0].type == X86_OP_MEM)
		write_frame(t, &x86->operands[0], holder);
	else if (register_of(x86->operands[0].reg) != REGISTER_NONE)
		put(t, register_of(x86->operands[0].reg), holder);
}

/* Whether the closure is still anywhere. */
static bool has_closure(const struct tracking *t)
{
	if (t->slot_count)
		return true;
	for (unsigned i = 0; i < REGISTER_COUNT; i++)
		if (t->registers[i].content != HOLDS_OTHER)
			return true;
	return false;
}

unsigned closure_reader_find(struct closure_reader *reader, const uint8_t *code, size_t size,
			     taddr pc, struct closure_load ret[CLOSURE_LOADS_MAX])
{
	struct tracking t = {
		.reader = reader,
		.registers[REGISTER_CONTEXT] = { HOLDS_CLOSURE, 0 },
		.depth = WORD, /* the return address */
		.loads = ret,
	};

	while (has_closure(&t) &&
	       cs_disasm_iter(reader->handle, &code, &size, &pc, reader->instruction)) {
		t.next_pc = pc;
		follow(&t, reader->instruction);
	}
	return t.load_count;
}
