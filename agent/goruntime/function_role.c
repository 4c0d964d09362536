#include "agent/goruntime/function_role.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
	SWITCH = ROLE_SWITCH | ROLE_UNWALKABLE,
	MOVE = ROLE_MOVES_STACK | ROLE_UNWALKABLE,
	GROW = ROLE_GROWS_STACK | ROLE_UNWALKABLE,
	BARRIER = ROLE_UNMAPPED_CALL | ROLE_UNWALKABLE,
	RUNTIME = ROLE_RUNTIME | ROLE_SYSTEM_CALL,
};

/*
 * Where not said otherwise, of every release since go1.15. Assembly is in runtime/asm_amd64.s and
 * sys_linux_amd64.s. Its static symbols, such as gogo<> (since go1.17) and gcWriteBarrier<> (since
 * go1.21), have no package in their name.
 */
static const struct {
	const char *name; /* without "runtime."; a '*' at its end stands for anything */
	uint32_t roles;
} runtime_functions[] = {
	/* Before go1.17 no flag in the function says so; runtime/traceback.go, topofstack. */
	{ "goexit", ROLE_TOP },
	{ "mstart", ROLE_TOP },
	{ "rt0_go", ROLE_TOP },

	{ "gogo", SWITCH },
	{ "mcall", SWITCH },
	{ "systemstack", SWITCH },
	{ "gosave", SWITCH },                    /* to go1.16 */
	{ "gosave_systemstack_switch", SWITCH }, /* since go1.17 */
	{ "morestack", SWITCH },
	{ "morestack_noctxt", SWITCH },
	{ "asmcgocall", ROLE_SWITCH },
	{ "switchToCrashStack0", ROLE_SWITCH }, /* since go1.22 */
	{ "jmpdefer", SWITCH },                 /* to go1.17 */
	{ "sigtramp", ROLE_SWITCH },
	{ "cgoSigtramp", ROLE_SWITCH },
	{ "sigreturn*", ROLE_SWITCH },
	{ "cgocallback", ROLE_CGO_CALLBACK },
	{ "cgocallback_gofunc", ROLE_CGO_CALLBACK }, /* to go1.15 */

	/* They note vdsoPC and vdsoSP in their m before they leave the stack. */
	{ "nanotime1", ROLE_CLOCK },
	{ "walltime", ROLE_CLOCK },
	{ "walltime1", ROLE_CLOCK }, /* to go1.16 */

	/* runtime/signal_amd64.go, preparePanic and pushCall. */
	{ "sigpanic", ROLE_SIGPANIC },
	{ "sigpanic0", ROLE_SIGPANIC }, /* since go1.17 */
	{ "asyncPreempt", ROLE_INJECTED },
	{ "debugCallV1", ROLE_INJECTED }, /* to go1.16 */
	{ "debugCallV2", ROLE_INJECTED }, /* since go1.17 */

	/*
	 * No stack map at a call: cmd/compile/internal/liveness/plive.go, hasStackMap (typedmemmove
	 * and typedmemclr to go1.20, wbMove and wbZero since); write barriers and duff's devices
	 * are not calls to the compiler. newproc and deferproc take the arguments of the function
	 * they start (to go1.17) from their caller's frame, where no map has them.
	 */
	{ "gcWriteBarrier*", BARRIER },
	{ "wbBufFlush", BARRIER },
	{ "wbBufFlush1", ROLE_UNWALKABLE },
	{ "wbMove", BARRIER },
	{ "wbZero", BARRIER },
	{ "typedmemmove", ROLE_UNMAPPED_CALL },
	{ "typedmemclr", ROLE_UNMAPPED_CALL },
	{ "duffzero", ROLE_UNMAPPED_CALL },
	{ "duffcopy", ROLE_UNMAPPED_CALL },
	{ "newproc", ROLE_UNMAPPED_CALL },
	{ "deferproc", ROLE_UNMAPPED_CALL },
	{ "deferprocStack", ROLE_UNMAPPED_CALL },

	/* runtime/stack.go. */
	{ "newstack", GROW },
	{ "copystack", MOVE },
	{ "shrinkstack", MOVE },
	{ "adjustframe", MOVE },
	{ "adjustpointers", MOVE },
	{ "adjustdefers", MOVE },
	{ "adjustpanics", MOVE },
	{ "adjustctxt", MOVE },
	{ "adjustsudogs", MOVE },
	{ "syncadjustsudogs", MOVE },
};

static bool matches(const char *pattern, const char *name)
{
	size_t length = strlen(pattern);

	if (pattern[length - 1] == '*')
		return !strncmp(pattern, name, length - 1);
	return !strcmp(pattern, name);
}

static uint32_t runtime_roles(const char *name)
{
	for (size_t i = 0; i < sizeof(runtime_functions) / sizeof(runtime_functions[0]); i++) {
		if (matches(runtime_functions[i].name, name))
			return RUNTIME | runtime_functions[i].roles;
	}
	return RUNTIME;
}

uint32_t function_roles(const char *name)
{
	static const char runtime[] = "runtime.";

	if (!strncmp(name, runtime, sizeof(runtime) - 1))
		return runtime_roles(name + sizeof(runtime) - 1);
	if (!strchr(name, '.')) /* static assembly, of whosever it is */
		return runtime_roles(name) & ~(uint32_t)ROLE_SYSTEM_CALL;
	/* runtime/time_linux_amd64.s, linked under another name. */
	if (!strcmp(name, "time.now"))
		return RUNTIME | ROLE_CLOCK;
	if (!strncmp(name, "internal/runtime/", 17) || !strncmp(name, "runtime/internal/", 17))
		return RUNTIME;
	/* syscall/asm_linux_amd64.s, of which a vfork's return address is all that it keeps. */
	if (!strncmp(name, "syscall.", 8))
		return ROLE_SYSTEM_CALL;
	/* reflect/asm_amd64.s; they alone have arguments of unknown size. */
	if (!strcmp(name, "reflect.makeFuncStub") || !strcmp(name, "reflect.methodValueCall"))
		return ROLE_REFLECT_STUB;
	return 0;
}
