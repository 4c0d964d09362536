#include "agent/keeper_search.h"
#include "agent/keeper_watch.h"

#include "agent/target/fork_safety.h"
#include "agent/target/process.h"
#include "agent/target/tracee.h"

/* Waits until the decoder has what it wants, of which more files may be a part. */
static struct error *serve(struct keeper *keeper, const Goheapd__KeeperObserve *order,
			   const struct process *process)
{
	struct keeper_watch watch = { .keeper = keeper,
				      .target_pidfd = -1,
				      .target_mem_fd = -1,
				      .snapshot_pidfd = -1,
				      .deadline_ns = UINT64_MAX };
	struct keeper_searches searches = { keeper, process, order->debug_dir, false, false };
	struct frame frame;
	bool answered = true;
	struct error *err = NULL;

	while (!err && answered) {
		enum keeper_wake wake;

		err = keeper_wait(&watch, &frame, &wake);
		if (err || wake != KEEPER_MESSAGE)
			return err;
		err = keeper_search(&searches, &frame, &answered);
	}
	if (err)
		return err;
	frame_fini(&frame);
	return error_new(ERROR_FORMAT, "a plan for an overview");
}

struct error *keeper_observe(struct keeper *keeper, const Goheapd__KeeperObserve *order)
{
	struct process *process scoped(process_freep) = NULL;
	const struct keeper_target target = { order->pid, order->start_ticks,
					      order->clone_allowed };
	const struct fork_safety_scan full = { .huge_page_weight = order->huge_page_weight };
	struct fork_safety_policy policy = { 0 };
	struct fork_safety safety;
	struct keeper_forecast forecast;
	struct error *err = keeper_find(keeper, &target, &process);

	if (err)
		return err;
	policy.huge_page_bytes = fork_safety_huge_page_bytes(process);
	policy.can_suspend_filters = process->seccomp_filter && tracee_can_suspend_filters();
	err = fork_safety_judge(process, &policy, &safety);
	if (err)
		return err;
	fork_safety_predict(process, &full, &safety);
	forecast = (struct keeper_forecast){
		.mode = safety.preferred ? GOHEAPD__MODE__MODE_FORK : GOHEAPD__MODE__MODE_STOP,
		.reason = safety.reason,
		.pause_us = safety.preferred ? safety.fork_pause_us : safety.stop_pause_us,
	};
	err = keeper_open(keeper, process, &forecast);
	if (!err)
		err = serve(keeper, order, process);
	keeper->outcome.released = true;
	return err;
}
