#include "agent/target/inject_arch.h"

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * Go's functions, from runtime/sys_linux_amd64.s: the instructions are the same from go1.15 to
 * go1.27. Behind the function's name in the pc-line table there can also be its ABIInternal
 * wrapper (since go1.17), which does not match.
 */
struct code_pattern {
	enum inject_role role;
	uint8_t size;
	uint8_t entry; /* where the injection enters it */
	uint8_t bytes[INJECT_CODE_SIZE];
};

static const struct code_pattern patterns[] = {
	/* runtime.osyield: mov $SYS_sched_yield, %eax; syscall; ret */
	{ INJECT_SYSCALL, 8, 5, { 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3 } },
	/* runtime.exit: mov 8(%rsp), %edi; mov $SYS_exit_group, %eax; syscall */
	{ INJECT_EXIT, 11, 0, { 0x8b, 0x7c, 0x24, 0x08, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05 } },
	/* runtime.sigreturn: mov $SYS_rt_sigreturn, %rax; syscall */
	{ INJECT_SIGRETURN, 9, 0, { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 } },
	/* the same in the short form, which an assembler may choose */
	{ INJECT_SIGRETURN, 7, 0, { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 } },
};

/* The kernel's struct ucontext behind the return address (arch/x86/include/uapi/asm/ucontext.h). */
struct signal_frame {
	uint64_t trampoline;
	uint64_t flags;
	uint64_t link;
	uint64_t stack_sp;
	uint32_t stack_flags, stack_padding;
	uint64_t stack_size;
	/* struct sigcontext_64 */
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t mask;
};

_Static_assert(offsetof(struct signal_frame, r8) == 8 + offsetof(ucontext_t, uc_mcontext),
	       "mcontext");
_Static_assert(offsetof(struct signal_frame, fpstate) ==
		   8 + offsetof(ucontext_t, uc_mcontext.fpregs),
	       "fpstate");
_Static_assert(offsetof(struct signal_frame, mask) == 8 + offsetof(ucontext_t, uc_sigmask), "mask");

enum {
	FRAME_FLAGS = 1 | 2 | 4, /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
	USER_CODE_64 = 0x33,     /* the kernel's __USER_CS */
	XSTATE_ALIGN = 64,
	STACK_ALIGN = 16,
	SYSCALL_SIZE = 2,
	SW_BYTES_OFFSET = 464,  /* the kernel's words in the legacy region; xcr0 first */
	XSTATE_BV_OFFSET = 512, /* features that are not in their initial state */
	XSTATE_MINIMUM = 576,   /* legacy region and header */
	XSTATE_LEAF = 0xd,      /* of cpuid */
	XFEATURE_TILE_DATA = 18,
	HANDLER_ROOM = 8 << 10, /* a handler of Go's on the same stack, beneath */
	ERESTARTSYS = 512,      /* the kernel's include/linux/errno.h */
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
};

struct error *inject_arch_check(void)
{
	return NULL;
}

bool inject_arch_matches(enum inject_role role, const uint8_t code[INJECT_CODE_SIZE],
			 unsigned *ret_offset)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		if (patterns[i].role != role || memcmp(code, patterns[i].bytes, patterns[i].size))
			continue;
		*ret_offset = patterns[i].entry;
		return true;
	}
	return false;
}

bool inject_arch_usable(const struct user_regs_struct *registers)
{
	return registers->cs == USER_CODE_64;
}

/* How far into the area the features reach, in its uncompacted form. */
static uint32_t extended_end(uint64_t features)
{
	uint32_t end = XSTATE_MINIMUM;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, offset, flags, unused;

		if (!(features >> i & 1) ||
		    !__get_cpuid_count(XSTATE_LEAF, i, &size, &offset, &flags, &unused))
			continue;
		if (offset + size > end)
			end = offset + size;
	}
	return end;
}

/*
 * Turns what ptrace gives into what the kernel lays into a signal frame: its magic words around
 * the state, and the size that this thread's frames have. ptrace always shows room for the matrix
 * tiles of AMX, which the kernel refuses in the frame of a thread that does not use them.
 */
static struct error *sign_extended_state(uint8_t *state, size_t size, size_t *ret_size)
{
	struct _fpx_sw_bytes sign = { .magic1 = FP_XSTATE_MAGIC1 };
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	uint64_t features, in_use;

	if (size < XSTATE_MINIMUM)
		return error_new(ERROR_UNSUPPORTED, "extended state of %zu bytes", size);
	memcpy(&features, state + SW_BYTES_OFFSET, sizeof(features));
	memcpy(&in_use, state + XSTATE_BV_OFFSET, sizeof(in_use));
	if (!(in_use >> XFEATURE_TILE_DATA & 1))
		features &= ~(UINT64_C(1) << XFEATURE_TILE_DATA);
	sign.xfeatures = features;
	sign.xstate_size = extended_end(features);
	if (sign.xstate_size > size)
		return error_new(ERROR_UNSUPPORTED, "extended state of %zu bytes, not %" PRIu32,
				 size, sign.xstate_size);
	sign.extended_size = sign.xstate_size + FP_XSTATE_MAGIC2_SIZE;
	memcpy(state + SW_BYTES_OFFSET, &sign, sizeof(sign));
	memcpy(state + sign.xstate_size, &magic2, sizeof(magic2));
	*ret_size = sign.extended_size;
	return NULL;
}

/*
 * A system call that our stop interrupted is prepared as the kernel does where no handler runs:
 * it is run again, but for the restart block, which a signal return throws away.
 */
static void prepare_restart(struct user_regs_struct *regs)
{
	if ((int64_t)regs->orig_rax < 0)
		return;
	switch (-(int64_t)regs->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		regs->rax = regs->orig_rax;
		regs->rip -= SYSCALL_SIZE;
		break;
	case ERESTART_RESTARTBLOCK:
		regs->rax = (uint64_t)-EINTR;
		break;
	}
}

/*
 * The frame's stack is one that the kernel refuses (too small, and it ignores that): the thread's
 * alternate signal stack stays whatever it was.
 */
static struct signal_frame make_frame(const struct inject_site *site, taddr fpstate)
{
	struct user_regs_struct r = site->saved;

	prepare_restart(&r);
	return (struct signal_frame){
		.trampoline = site->sigreturn,
		.flags = FRAME_FLAGS,
		.stack_sp = site->lo,
		.stack_size = 0,
		.r8 = r.r8,
		.r9 = r.r9,
		.r10 = r.r10,
		.r11 = r.r11,
		.r12 = r.r12,
		.r13 = r.r13,
		.r14 = r.r14,
		.r15 = r.r15,
		.di = r.rdi,
		.si = r.rsi,
		.bp = r.rbp,
		.bx = r.rbx,
		.dx = r.rdx,
		.ax = r.rax,
		.cx = r.rcx,
		.sp = r.rsp,
		.ip = r.rip,
		.eflags = r.eflags,
		.cs = (uint16_t)r.cs,
		.ss = (uint16_t)r.ss,
		.fpstate = fpstate,
		.mask = site->mask,
	};
}

static taddr align_down(taddr addr, taddr alignment)
{
	return addr & ~(alignment - 1);
}

struct error *inject_arch_image(const struct inject_site *site, struct inject_image *ret)
{
	/* the child returns into runtime.exit(0), whose argument lies above its return address */
	const uint64_t child_stack[3] = { site->exit, 0, 0 };
	struct signal_frame frame;
	taddr fpstate, child, base;
	size_t state_size;
	struct error *err =
	    sign_extended_state(site->extended_state, site->extended_size, &state_size);

	if (err)
		return err;
	if (site->hi - site->lo < 2 * state_size + HANDLER_ROOM)
		return error_new(ERROR_UNSUPPORTED, "the signal stack has %" PRIu64 " bytes",
				 site->hi - site->lo);
	fpstate = align_down(site->hi - state_size, XSTATE_ALIGN);
	child = align_down(fpstate - sizeof(child_stack), STACK_ALIGN);
	base = align_down(child - sizeof(frame), STACK_ALIGN) - sizeof(frame.trampoline);
	ret->addr = base;
	ret->child_sp = child;
	ret->size = fpstate + state_size - base;
	frame = make_frame(site, fpstate);
	memset(ret->bytes, 0, fpstate - base);
	memcpy(ret->bytes, &frame, sizeof(frame));
	memcpy(ret->bytes + (child - base), child_stack, sizeof(child_stack));
	memcpy(ret->bytes + (fpstate - base), site->extended_state, state_size);
	return NULL;
}

void inject_arch_call(const struct user_regs_struct *saved, taddr syscall, taddr sp,
		      const struct inject_call *call, struct user_regs_struct *ret)
{
	*ret = *saved;
	ret->rip = syscall;
	ret->rsp = sp;
	ret->rax = call->number;
	ret->orig_rax = (uint64_t)-1; /* no interrupted call of its own to run again */
	ret->rdi = call->args[0];
	ret->rsi = call->args[1];
	ret->rdx = call->args[2];
	ret->r10 = call->args[3];
	ret->r8 = ret->r9 = 0;
}

void inject_arch_filter_data(const struct user_regs_struct *registers, struct seccomp_data *ret)
{
	*ret = (struct seccomp_data){
		.nr = (int)registers->rax,
		.arch = AUDIT_ARCH_X86_64,
		.instruction_pointer = registers->rip + SYSCALL_SIZE,
		.args = { registers->rdi, registers->rsi, registers->rdx, registers->r10,
			  registers->r8, registers->r9 },
	};
}

int64_t inject_arch_result(const struct user_regs_struct *registers)
{
	return (int64_t)registers->rax;
}

bool inject_arch_restarts(int64_t result)
{
	return result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK;
}
