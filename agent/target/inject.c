#include "agent/target/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "agent/target/injection.h"
#include "agent/target/maps.h"
#include "agent/target/process.h"
#include "agent/target/registers.h"
#include "agent/target/thread_list.h"
#include "agent/target/tracee.h"

enum {
	OFFSET_LIMIT = 64 << 10, /* no struct of the runtime is larger */
	ALLM_LIMIT = 1 << 20,    /* of the chain of Ms */
	STACK_SIZE_LIMIT = 1 << 20,
	CHILD_OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD,
};

struct injector {
	const struct process *process; /* borrowed */
	struct inject_plan plan;
	struct maps *maps;
	struct inject_code code;
	struct injection_room room;
	struct late_threads late;
};

/* ---- memory of the target ---- */

/* ERROR_UNSUPPORTED, saying that what cannot be read, unless the target is gone. */
static struct error *read_vector(pid_t tid, const struct iovec *local, const struct iovec *remote,
				 unsigned count, const char *what)
{
	size_t want = 0;
	ssize_t got = process_vm_readv(tid, local, count, remote, count, 0);

	if (got < 0 && errno == ESRCH)
		return error_new(ERROR_GONE, "the target ended");
	for (unsigned i = 0; i < count; i++)
		want += local[i].iov_len;
	if (got != (ssize_t)want)
		return error_new(ERROR_UNSUPPORTED, "%s at %p cannot be read", what,
				 remote[0].iov_base);
	return NULL;
}

static struct error *read_target(pid_t tid, taddr addr, void *buffer, size_t size, const char *what)
{
	const struct iovec local = { buffer, size };
	const struct iovec remote = { (void *)(uintptr_t)addr, size };

	return read_vector(tid, &local, &remote, 1, what);
}

/* ---- checking the plan ---- */

/* Code that nobody can change: mapped from a file, executable and not writable. */
static bool is_code(const struct maps *maps, taddr addr)
{
	const struct mapping *mapping = maps_find(maps, addr);

	return mapping && mapping->kind == MAPPING_FILE && mapping->execute && !mapping->write &&
	       !mapping->shared && mapping->end - addr >= INJECT_CODE_SIZE;
}

static struct error *find_function(const struct injector *injector, enum inject_role role,
				   const struct inject_function *function, const char *name,
				   taddr *ret)
{
	uint8_t code[INJECT_CODE_SIZE];
	struct error *err;
	unsigned offset;

	for (int i = 0; i < INJECT_CANDIDATES; i++) {
		taddr entry = function->entry[i];

		if (!entry || !is_code(injector->maps, entry))
			continue;
		err = read_target(injector->process->tid, entry, code, sizeof(code), name);
		if (err)
			return err;
		if (inject_arch_matches(role, code, &offset)) {
			*ret = entry + offset;
			return NULL;
		}
	}
	return error_new(ERROR_UNSUPPORTED, "%s is not the code that we know", name);
}

static struct error *check_plan(struct injector *injector)
{
	const struct inject_plan *plan = &injector->plan;
	const uint32_t offsets[] = { plan->m_alllink, plan->m_procid,   plan->m_gsignal,
				     plan->g_m,       plan->g_stack_lo, plan->g_stack_hi };
	struct error *err;

	if (injector->process->shadow_stack)
		return error_new(ERROR_UNSUPPORTED, "the target has shadow stacks");
	if (!plan->allm)
		return error_new(ERROR_UNSUPPORTED, "runtime.allm is not known");
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		if (offsets[i] > OFFSET_LIMIT)
			return error_new(ERROR_UNSUPPORTED, "offset %" PRIu32, offsets[i]);
	}
	err = find_function(injector, INJECT_SYSCALL, &plan->osyield, "runtime.osyield",
			    &injector->code.syscall);
	if (!err)
		err = find_function(injector, INJECT_EXIT, &plan->exit, "runtime.exit",
				    &injector->code.exit);
	if (!err)
		err = find_function(injector, INJECT_SIGRETURN, &plan->sigreturn,
				    "runtime.sigreturn", &injector->code.sigreturn);
	return err;
}

static struct error *read_maps(struct injector *injector)
{
	struct maps *maps;
	int fd scoped(closep) = -1;
	struct error *err = process_open(injector->process, "maps", O_RDONLY, &fd);

	if (!err)
		err = maps_read(fd, &maps);
	if (err)
		return err;
	maps_free(injector->maps);
	injector->maps = maps;
	return NULL;
}

static void move_function(struct inject_function *function, uint64_t by)
{
	for (int i = 0; i < INJECT_CANDIDATES; i++) {
		if (function->entry[i])
			function->entry[i] += by;
	}
}

/* All addresses of the plan are the program's own. */
static void move_plan(struct inject_plan *plan, taddr entry)
{
	uint64_t by = entry - plan->entry;

	move_function(&plan->osyield, by);
	move_function(&plan->exit, by);
	move_function(&plan->sigreturn, by);
	if (plan->allm)
		plan->allm += by;
	plan->entry = entry;
}

/* The same program run again has its addresses elsewhere if it is position independent. */
static struct error *follow_program(struct injector *injector)
{
	taddr entry;
	int fd scoped(closep) = -1;
	struct error *err;

	if (!injector->plan.entry)
		return NULL;
	err = process_open(injector->process, "auxv", O_RDONLY, &fd);
	if (!err)
		err = process_entry(fd, &entry);
	if (err)
		return err;
	if (entry != injector->plan.entry)
		move_plan(&injector->plan, entry);
	return NULL;
}

struct error *injector_refresh(struct injector *injector)
{
	struct error *err = follow_program(injector);

	if (!err)
		err = read_maps(injector);
	if (!err)
		err = check_plan(injector);
	return err ? error_context(err, "injection") : NULL;
}

struct error *injector_new(const struct process *process, const struct inject_plan *plan,
			   struct injector **ret)
{
	struct injector *injector scoped(injector_freep) = NULL;
	struct error *err = inject_arch_check();

	if (err)
		return err;
	injector = calloc(1, sizeof(*injector));
	if (!injector)
		return &error_nomem;
	injector->process = process;
	injector->plan = *plan;
	err = injector_refresh(injector);
	if (err)
		return err;
	*ret = take(injector);
	return NULL;
}

void injector_free(struct injector *injector)
{
	if (!injector)
		return;
	maps_free(injector->maps);
	free(injector);
}

const struct process *injector_process(const struct injector *injector)
{
	return injector->process;
}

struct late_threads *injector_late_threads(struct injector *injector)
{
	return &injector->late;
}

/* ---- finding the idle signal stack of a thread ---- */

/* The fields of one runtime.m. */
struct machine {
	uint64_t procid; /* its thread, in the target's own pid namespace */
	taddr gsignal;
	taddr next;
};

static struct error *read_machine(const struct injector *injector, pid_t tid, taddr m,
				  struct machine *ret)
{
	const struct inject_plan *plan = &injector->plan;
	const struct iovec local[3] = { { &ret->procid, 8 },
					{ &ret->gsignal, 8 },
					{ &ret->next, 8 } };
	const struct iovec remote[3] = { { (void *)(uintptr_t)(m + plan->m_procid), 8 },
					 { (void *)(uintptr_t)(m + plan->m_gsignal), 8 },
					 { (void *)(uintptr_t)(m + plan->m_alllink), 8 } };

	return read_vector(tid, local, remote, 3, "runtime.m");
}

/* Through runtime.allm and not through the thread's own pointers, which C code may have replaced.
 */
static struct error *find_machine(const struct injector *injector, pid_t tid, pid_t namespace_tid,
				  taddr *ret, taddr *ret_gsignal)
{
	struct machine machine = { 0 };
	taddr m;
	struct error *err = read_target(tid, injector->plan.allm, &m, sizeof(m), "runtime.allm");

	for (uint32_t i = 0; !err && m && i < ALLM_LIMIT; i++, m = machine.next) {
		err = read_machine(injector, tid, m, &machine);
		if (!err && machine.procid == (uint64_t)namespace_tid && machine.gsignal) {
			*ret = m;
			*ret_gsignal = machine.gsignal;
			return NULL;
		}
	}
	return err ? err : error_new(ERROR_UNSUPPORTED, "thread %d is none of Go's", tid);
}

/* All of [lo, hi) in writable private mappings, which may adjoin. */
static bool is_private_memory(const struct maps *maps, taddr lo, taddr hi)
{
	while (lo < hi) {
		const struct mapping *mapping = maps_find(maps, lo);

		if (!mapping || !mapping->write || mapping->shared)
			return false;
		lo = mapping->end;
	}
	return true;
}

/* m.gsignal's stack, if it is one. */
static struct error *read_signal_stack(const struct injector *injector, pid_t tid, taddr m,
				       taddr gsignal, struct inject_stack *ret)
{
	const struct inject_plan *plan = &injector->plan;
	taddr back;
	const struct iovec local[3] = { { &back, 8 }, { &ret->lo, 8 }, { &ret->hi, 8 } };
	const struct iovec remote[3] = { { (void *)(uintptr_t)(gsignal + plan->g_m), 8 },
					 { (void *)(uintptr_t)(gsignal + plan->g_stack_lo), 8 },
					 { (void *)(uintptr_t)(gsignal + plan->g_stack_hi), 8 } };
	struct error *err = read_vector(tid, local, remote, 3, "m.gsignal");

	if (err)
		return err;
	if (back != m || ret->lo >= ret->hi || ret->hi - ret->lo > STACK_SIZE_LIMIT ||
	    (ret->lo | ret->hi) % 8)
		return error_new(ERROR_UNSUPPORTED, "m.gsignal is no signal stack");
	if (!is_private_memory(injector->maps, ret->lo, ret->hi))
		return error_new(ERROR_UNSUPPORTED,
				 "the signal stack is not writable private memory");
	return NULL;
}

/*
 * Go blocks all signals of a thread just where its signal stack is being made or given up, or
 * another process made (runtime/proc.go: newm, mexit, beforefork): SIGURG tells. A thread that
 * executes on its signal stack handles a signal there.
 */
static struct error *check_idle(const struct tracee *tracee, const struct inject_stack *stack)
{
	struct user_regs_struct raw;
	struct registers registers;
	uint64_t mask;
	struct error *err = tracee_registers(tracee, &raw);

	if (!err)
		err = tracee_signal_mask(tracee, &mask);
	if (err)
		return err;
	if (!inject_arch_usable(&raw))
		return error_new(ERROR_UNSUPPORTED, "thread %d runs in another mode", tracee->tid);
	registers_view(&raw, &registers);
	if (mask >> (SIGURG - 1) & 1)
		return error_new(ERROR_BUSY, "thread %d blocks signals", tracee->tid);
	if (registers.sp >= stack->lo && registers.sp <= stack->hi)
		return error_new(ERROR_BUSY, "thread %d handles a signal", tracee->tid);
	return NULL;
}

struct error *injector_find_stack(const struct injector *injector, const struct tracee *tracee,
				  pid_t namespace_tid, struct inject_stack *ret)
{
	struct inject_stack stack;
	taddr m, gsignal;
	struct error *err;

	if (tracee->stop != TRACEE_INTERRUPTED && tracee->stop != TRACEE_GROUP_STOPPED)
		return error_new(ERROR_BUSY, "thread %d takes a signal", tracee->tid);
	err = find_machine(injector, tracee->tid, namespace_tid, &m, &gsignal);
	if (!err)
		err = read_signal_stack(injector, tracee->tid, m, gsignal, &stack);
	if (!err)
		err = check_idle(tracee, &stack);
	if (err)
		return err;
	*ret = stack;
	return NULL;
}

/* ---- the calls ---- */

static struct inject_call wait_call(pid_t namespace_child)
{
	return (struct inject_call){ SYS_wait4,
				     { (uint64_t)namespace_child, 0, WNOHANG | __WALL } };
}

/*
 * Filters and namespaces belong to threads, and a thread may have come by them since the process
 * was judged: what counts is how the stopped thread is now.
 */
static struct error *check_thread(const struct injector *injector, const struct tracee *tracee,
				  bool clone, bool *ret_filtered)
{
	const struct process *process = injector->process;
	struct task_status status;
	struct error *err = task_status_read(process, tracee->tid, &status);

	if (err)
		return err;
	if (status.seccomp_mode == SECCOMP_MODE_STRICT)
		return error_new(ERROR_FORK_UNSAFE, "thread %d is in seccomp's strict mode",
				 tracee->tid);
	if (clone && process_child_namespace_differs(process, tracee->tid))
		return error_new(ERROR_FORK_UNSAFE,
				 "a child of thread %d would live in another pid namespace",
				 tracee->tid);
	*ret_filtered = status.seccomp_mode == SECCOMP_MODE_FILTER;
	return NULL;
}

static struct error *run(struct injector *injector, struct tracee *tracee,
			 const struct inject_stack *stack, struct inject_call call, bool clone,
			 struct inject_result *ret)
{
	struct injection_request request = {
		.call = call,
		.clone = clone,
		.later = wait_call(1), /* whatever its pid will be */
		.vouched = injector->process->filters_vouched,
	};
	struct error *err = check_thread(injector, tracee, clone, &request.filtered);

	if (err) {
		*ret = (struct inject_result){ 0 };
		return err;
	}
	return injection_run(tracee, &injector->code, stack, request, &injector->room, ret);
}

struct error *injector_clone(struct injector *injector, struct tracee *tracee,
			     const struct inject_stack *stack, struct inject_result *ret)
{
	const struct inject_call call = { SYS_clone, { CLONE_FILES } };

	return run(injector, tracee, stack, call, true, ret);
}

/* The filter of the parent is the child's too; what it would do to the call is not tried out. */
struct error *injector_drop_descriptors(const struct injector *injector, struct tracee *child,
					bool *ret_begun)
{
	const struct inject_call call = { SYS_close_range, { 0, UINT32_MAX, CLOSE_RANGE_UNSHARE } };
	bool filtered = injector->process->seccomp_filter;
	struct error *err =
	    tracee_set_options(child, CHILD_OPTIONS | (filtered ? PTRACE_O_SUSPEND_SECCOMP : 0));

	*ret_begun = !err;
	if (!err)
		return injection_begin_in_child(child, injector->code.syscall, &call);
	if (!filtered)
		return err;
	error_free(err);
	return tracee_set_options(child, CHILD_OPTIONS);
}

struct error *injector_await_drop(struct tracee *child, uint64_t deadline_ns)
{
	return injection_await_child(child, deadline_ns);
}

struct error *injector_wait(struct injector *injector, struct tracee *tracee,
			    const struct inject_stack *stack, pid_t namespace_child,
			    struct inject_result *ret)
{
	return run(injector, tracee, stack, wait_call(namespace_child), false, ret);
}
