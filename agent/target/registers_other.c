#include "agent/target/registers.h"

/* Nothing is known of this architecture's registers: no stack is walked from them. */
void registers_view(const struct user_regs_struct *raw, struct registers *ret)
{
	(void)raw;
	*ret = (struct registers){ 0 };
}
