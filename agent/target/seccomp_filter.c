#include "agent/target/seccomp_filter.h"

#include <string.h>

enum { WORD_BITS = 32 };

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	size_t next; /* instruction */
	const struct seccomp_data *data;
};

static uint32_t operand(const struct machine *m, const struct sock_filter *insn)
{
	return BPF_SRC(insn->code) == BPF_X ? m->x : insn->k;
}

/* Only words of the call's description, on their boundaries. */
static bool load_data(struct machine *m, uint32_t offset)
{
	if (offset % sizeof(m->a) || offset >= sizeof(*m->data))
		return false;
	memcpy(&m->a, (const char *)m->data + offset, sizeof(m->a));
	return true;
}

static bool move(struct machine *m, const struct sock_filter *insn)
{
	uint32_t k = insn->k;
	bool in_memory = k < BPF_MEMWORDS;

	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return load_data(m, k);
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof(*m->data);
		return true;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof(*m->data);
		return true;
	case BPF_LD | BPF_IMM:
		m->a = k;
		return true;
	case BPF_LDX | BPF_IMM:
		m->x = k;
		return true;
	case BPF_LD | BPF_MEM:
		m->a = in_memory ? m->memory[k] : 0;
		return in_memory;
	case BPF_LDX | BPF_MEM:
		m->x = in_memory ? m->memory[k] : 0;
		return in_memory;
	case BPF_ST:
	case BPF_STX:
		if (in_memory)
			m->memory[k] = insn->code == BPF_ST ? m->a : m->x;
		return in_memory;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return true;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return true;
	default:
		return false;
	}
}

static bool compute(struct machine *m, const struct sock_filter *insn)
{
	uint32_t value = operand(m, insn);

	switch (BPF_OP(insn->code)) {
	case BPF_ADD:
		m->a += value;
		return true;
	case BPF_SUB:
		m->a -= value;
		return true;
	case BPF_MUL:
		m->a *= value;
		return true;
	case BPF_DIV:
		m->a = value ? m->a / value : 0;
		return value;
	case BPF_AND:
		m->a &= value;
		return true;
	case BPF_OR:
		m->a |= value;
		return true;
	case BPF_XOR:
		m->a ^= value;
		return true;
	case BPF_LSH:
		m->a <<= value % WORD_BITS;
		return true;
	case BPF_RSH:
		m->a >>= value % WORD_BITS;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	default:
		return false;
	}
}

static bool jump(struct machine *m, const struct sock_filter *insn)
{
	uint32_t value = operand(m, insn);
	bool holds;

	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		m->next += insn->k;
		return true;
	case BPF_JEQ:
		holds = m->a == value;
		break;
	case BPF_JGT:
		holds = m->a > value;
		break;
	case BPF_JGE:
		holds = m->a >= value;
		break;
	case BPF_JSET:
		holds = m->a & value;
		break;
	default:
		return false;
	}
	m->next += holds ? insn->jt : insn->jf;
	return true;
}

static bool step(struct machine *m, const struct sock_filter *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
		return compute(m, insn);
	case BPF_JMP:
		return jump(m, insn);
	default:
		return move(m, insn);
	}
}

bool seccomp_filter_run(const struct sock_filter *code, size_t count,
			const struct seccomp_data *data, uint32_t *ret)
{
	struct machine m = { .data = data };

	while (m.next < count) {
		const struct sock_filter *insn = &code[m.next++];

		if (BPF_CLASS(insn->code) == BPF_RET) {
			*ret = BPF_RVAL(insn->code) == BPF_A ? m.a : insn->k;
			return true;
		}
		if (!step(&m, insn))
			return false;
	}
	return false;
}

uint32_t seccomp_filter_stricter(uint32_t a, uint32_t b)
{
	/* SECCOMP_RET_KILL_PROCESS is the one that is negative */
	int32_t action_a = (int32_t)(a & SECCOMP_RET_ACTION_FULL);
	int32_t action_b = (int32_t)(b & SECCOMP_RET_ACTION_FULL);

	return action_a < action_b ? a : b;
}

bool seccomp_filter_harmless(uint32_t returned)
{
	uint32_t action = returned & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG ||
	       action == SECCOMP_RET_ERRNO;
}
