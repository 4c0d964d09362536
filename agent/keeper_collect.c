#include "agent/keeper_plan.h"

#include <time.h>

#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/snapshot.h"

enum {
	ATTEMPTS = 10,
	ABSENT_ATTEMPTS = 3, /* in the midst of an exec nothing but a dead leader may be seen */
	REST_NS = 20000000, /* after the first; doubled from time to time */
	REST_NS_MAX = 500000000,
};

/* A target that is gone took everything with it. */
static bool is_absent(const struct error *err)
{
	return error_code(err) == ERROR_NO_PROCESS || error_code(err) == ERROR_PROCESS_CHANGED;
}

static struct error *collect(const struct process *process, const Goheapd__KeeperCollect *order)
{
	struct injector *injector scoped(injector_freep) = NULL;
	struct inject_plan plan;
	unsigned count;
	struct error *err;

	if (!order->injection)
		return error_new(ERROR_FORMAT, "a collection without an injection");
	keeper_plan_injection(order->injection, &plan);
	err = injector_new(process, &plan, &injector);
	return err ? err : snapshot_collect_leftover(injector, (pid_t)order->snapshot_pid, &count);
}

static struct error *attempt(struct keeper *keeper, const Goheapd__KeeperCollect *order,
			     bool *ret_absent)
{
	const struct keeper_target target = { order->pid, order->start_ticks,
					      order->clone_allowed };
	struct process *process scoped(process_freep) = NULL;
	struct error *err = keeper_find(keeper, &target, &process);

	*ret_absent = err && is_absent(err);
	if (!err)
		err = collect(process, order);
	return err;
}

/* What is being run again just then is not what it was any more, and not yet what it will be. */
struct error *keeper_collect(struct keeper *keeper, const Goheapd__KeeperCollect *order)
{
	struct timespec rest = { 0, REST_NS };

	for (unsigned i = 1;; i++) {
		bool absent;
		struct error *err = attempt(keeper, order, &absent);

		if (!err)
			return NULL;
		if (!absent && i >= ATTEMPTS)
			return err;
		error_free(err);
		if (absent && i >= ABSENT_ATTEMPTS)
			return NULL;
		nanosleep(&rest, NULL);
		if (rest.tv_nsec < REST_NS_MAX)
			rest.tv_nsec *= 2;
	}
}
