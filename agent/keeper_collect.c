#include "agent/keeper_plan.h"

#include "agent/target/inject.h"
#include "agent/target/process.h"
#include "agent/target/snapshot.h"

/* A target that is gone took everything with it. */
static struct error *forgive_absence(struct error *err)
{
	enum error_code code = error_code(err);

	if (code != ERROR_NO_PROCESS && code != ERROR_PROCESS_CHANGED && code != ERROR_GONE)
		return err;
	error_free(err);
	return NULL;
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

struct error *keeper_collect(struct keeper *keeper, const Goheapd__KeeperCollect *order)
{
	const struct keeper_target target = { order->pid, order->start_ticks,
					      order->clone_allowed };
	struct process *process scoped(process_freep) = NULL;
	struct error *err = keeper_find(keeper, &target, &process);

	if (!err)
		err = collect(process, order);
	return err ? forgive_absence(err) : NULL;
}
