#!/usr/bin/env python3
"""What label sets cost: scans of one heap with usage per set and without, in turn, and their ratio.

private  10,000 sets with memory of their own and a dictionary of a million objects in common
random   1,000 sets that share a heap at random
"""

from agentclient import Agent
from harness import Fixture
import gobuild
import measure

KINDS = {"private": "private memory and a common dictionary", "random": "share one tree at random"}
LIMITS = {"private": 3, "random": 10}  # times the plain scan


def once(agent, target):
    plain = agent.scan(target.pid)["scan"]
    labelled = agent.scan(target.pid, want_labels=True)
    assert len(labelled["labels"]["sets"]) == target.hello["sets"]
    return {
        "plain": plain["total_us"] / 1e6,
        "labelled": labelled["scan"]["total_us"] / 1e6,
        "memory": labelled["scan"]["peak_memory_bytes"],
        "live": labelled["heap"]["live_bytes"],
        "objects": labelled["heap"]["live_objects"],
    }


def main():
    options = measure.options(__doc__, 3, ("1.26",))
    table = measure.Table(__doc__, "Go", "label sets", "objects", "plain scan", "with labels",
                          "ratio", "allowed", "peak memory per live heap")
    for version in options.go:
        program = gobuild.build("labels", version, root=measure.BENCH)
        for kind, limit in LIMITS.items():
            with Agent() as agent, Fixture([program, kind]) as target:
                agent.scan(target.pid)  # makes the index
                found = measure.rounds(options.count, lambda: once(agent, target))
            table.row(version, f"{target.hello['sets']:,}: {KINDS[kind]}",
                      f"{found['objects']:,.0f}", f"{found['plain']:.2f} s",
                      f"{found['labelled']:.2f} s", f"{found['labelled'] / found['plain']:.2f}",
                      limit, f"{found['memory'] / found['live']:.3f}")


if __name__ == "__main__":
    main()
