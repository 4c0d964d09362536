#include "agent/target/inject_arch.h"

struct error *inject_arch_check(void)
{
	return error_new(ERROR_UNSUPPORTED_ARCH,
			 "no snapshots on this architecture: only mode stop");
}

bool inject_arch_matches(enum inject_role role, const uint8_t code[INJECT_CODE_SIZE],
			 unsigned *ret_offset)
{
	(void)role, (void)code, (void)ret_offset;
	return false;
}

bool inject_arch_usable(const struct user_regs_struct *registers)
{
	(void)registers;
	return false;
}

struct error *inject_arch_image(const struct inject_site *site, struct inject_image *ret)
{
	(void)site, (void)ret;
	return inject_arch_check();
}

void inject_arch_call(const struct user_regs_struct *saved, taddr syscall, taddr sp,
		      const struct inject_call *call, struct user_regs_struct *ret)
{
	(void)syscall, (void)sp, (void)call;
	*ret = *saved;
}

void inject_arch_filter_data(const struct user_regs_struct *registers, struct seccomp_data *ret)
{
	(void)registers;
	*ret = (struct seccomp_data){ 0 };
}

int64_t inject_arch_result(const struct user_regs_struct *registers)
{
	(void)registers;
	return -1;
}

bool inject_arch_restarts(int64_t result)
{
	(void)result;
	return false;
}
