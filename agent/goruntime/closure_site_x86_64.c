/*
 *	lea type(%rip), %rax	the allocator's argument, in whatever register
 *	call runtime.newobject	or what the compiler calls in its place
 *	lea code(%rip), %rcx
 *	mov %rcx, (%rax)	the first word of the new object
 *
 * with what else the compiler puts between. Bytes are looked at wherever an lea could begin; that
 * one address is a type's and the other in the text, and that both come in this order with a call
 * between, is what tells them from chance.
 */
#include <stdbool.h>
#include <string.h>

#include "agent/goruntime/closure_site_code.h"
#include "agent/goruntime/module.h"

enum {
	LEA_SIZE = 7,
	STORE_SIZE = 3,
	CHECK_SIZE = 2, /* test %al, (%rax): of a nil pointer, in code that is not optimised */
	REX_W = 0x48,
	REX_R = 4,
	OP_LEA = 0x8d,
	OP_STORE = 0x89,
	OP_TEST = 0x84,
	OP_CALL = 0xe8,
};

struct lea {
	taddr target;
	uint8_t reg;
};

static uint8_t register_of(uint8_t rex, uint8_t modrm)
{
	return (uint8_t)((modrm >> 3 & 7) | (rex & REX_R) << 1);
}

/* code has LEA_SIZE bytes, or more. */
static bool read_lea(const uint8_t *code, taddr pc, struct lea *ret)
{
	int32_t offset;

	if ((code[0] & 0xf8) != REX_W || code[1] != OP_LEA || (code[2] & 0xc7) != 5)
		return false;
	memcpy(&offset, code + 3, sizeof(offset));
	*ret = (struct lea){ pc + LEA_SIZE + (uint64_t)(int64_t)offset,
			     register_of(code[0], code[2]) };
	return true;
}

/* Is the register stored where another one points to, at no offset? */
static bool is_stored(const uint8_t *code, size_t size, uint8_t reg)
{
	if (size >= CHECK_SIZE && code[0] == OP_TEST) {
		code += CHECK_SIZE;
		size -= CHECK_SIZE;
	}
	return size >= STORE_SIZE && (code[0] & 0xf8) == REX_W && code[1] == OP_STORE &&
	       (code[2] & 0xc0) == 0 && (code[2] & 7) != 4 && (code[2] & 7) != 5 &&
	       register_of(code[0], code[2]) == reg;
}

struct error *closure_site_scan(const uint8_t *code, size_t size, taddr pc,
				const struct module *module, closure_site_sink *sink, void *arg)
{
	const uint8_t *end = code + size, *type_at = NULL;
	taddr type = 0;
	const uint8_t *at = code;

	/* The opcode is the second byte of the instruction. */
	while (end - at >= LEA_SIZE &&
	       (at = memchr(at + 1, OP_LEA, (size_t)(end - at) - LEA_SIZE + 1))) {
		const uint8_t *start = at - 1, *next = start + LEA_SIZE;
		struct lea lea;

		if (!read_lea(start, pc + (size_t)(start - code), &lea))
			continue;
		if (module->types <= lea.target && lea.target < module->etypes) {
			type_at = start;
			type = lea.target;
		} else if (type_at && module->text <= lea.target && lea.target < module->etext &&
			   next - type_at <= CLOSURE_SITE_SIZE_MAX - CHECK_SIZE - STORE_SIZE &&
			   memchr(type_at + LEA_SIZE, OP_CALL,
				  (size_t)(start - type_at) - LEA_SIZE) &&
			   is_stored(next, (size_t)(end - next), lea.reg)) {
			struct error *err = sink(arg, &(struct closure_site){ lea.target, type });

			if (err)
				return err;
		}
	}
	return NULL;
}
