#include "agent/target/registers.h"

void registers_view(const struct user_regs_struct *raw, struct registers *ret)
{
	*ret = (struct registers){
		.pc = raw->rip,
		.sp = raw->rsp,
		.bp = raw->rbp,
		.tls = raw->fs_base,
		.general = { raw->r15, raw->r14, raw->r13, raw->r12, raw->rbp, raw->rbx, raw->r11,
			     raw->r10, raw->r9, raw->r8, raw->rax, raw->rcx, raw->rdx, raw->rsi,
			     raw->rdi, raw->rsp },
	};
}
