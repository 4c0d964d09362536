/*
 * The keeper's four orders, and what they share. Each reports to the agent by itself and returns
 * the failure that the last word to the agent carries.
 */
#ifndef AGENT_KEEPER_ORDERS_H
#define AGENT_KEEPER_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/target/procfs.h"
#include "proto/base/error.h"
#include "proto/goheapd.pb-c.h"
#include "proto/wire/frame_queue.h"

struct process;

/* How the keeper's work went, for its last word. */
struct keeper_outcome {
	uint64_t pause_us;
	Goheapd__Mode mode; /* MODE_AUTO: never stopped */
	bool released;
};

struct keeper {
	struct procfs procfs;
	int agent;         /* blocks: the agent can be waited for */
	int decoder;       /* never blocks: the decoder cannot */
	int decoder_pidfd; /* -1: none */
	struct frame_reader plans;
	struct frame_queue to_decoder;
	struct keeper_outcome outcome;
};

must_check struct error *keeper_list(struct keeper *keeper);
must_check struct error *keeper_observe(struct keeper *keeper, const Goheapd__KeeperObserve *order);
must_check struct error *keeper_scan(struct keeper *keeper, const Goheapd__KeeperScan *order);
must_check struct error *keeper_collect(struct keeper *keeper, const Goheapd__KeeperCollect *order);

/* ---- shared ---- */

must_check struct error *keeper_tell_agent(struct keeper *keeper, const Goheapd__KeeperEvent *event,
					   const int *fds, unsigned fd_count);

/* What an order says of its process: which it is, and whose filters somebody vouches for. */
struct keeper_target {
	uint32_t pid;
	uint64_t start_ticks;
	const Goheapd__CloneAllowed *clone_allowed;
};

/*
 * Reads the process and checks that it is the one that was meant and may be looked at. The caller
 * frees *ret.
 */
must_check struct error *keeper_find(struct keeper *keeper, const struct keeper_target *target,
				     struct process **ret);

/* Nothing happens where there is none, or where it has ended. */
void keeper_signal_decoder(const struct keeper *keeper, int signal);

/* How a scan would go, and why; reason may be empty. */
struct keeper_forecast {
	Goheapd__Mode mode;
	const char *reason;
	uint64_t pause_us;
};

/* Opens the target's files, hands them to the decoder, and tells the agent of its executable. */
must_check struct error *keeper_open(struct keeper *keeper, const struct process *process,
				     const struct keeper_forecast *forecast);

#endif
