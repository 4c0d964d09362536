/*
 * Who reaches the shared part: a bit for each class of parties goes with every group, from the
 * groups that the class enters on to all they lead to. Groups are in topological order, so one pass
 * over their edges does it; as many classes at a time as memory allows.
 */
#ifndef AGENT_ANALYSIS_LABEL_REACH_H
#define AGENT_ANALYSIS_LABEL_REACH_H

#include "agent/analysis/label_class.h"
#include "agent/analysis/label_group.h"

/*
 * Adds what the parties reach of the shared part to their usage. Takes the entries, pairs of group
 * and party sorted by group, for its own use.
 */
must_check struct error *label_reach(const struct label_attribution *input,
				     const struct groups *groups, struct pair_list *entries,
				     struct budget *budget, struct party_usage *usage);

#endif
