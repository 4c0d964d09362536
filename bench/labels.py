#!/usr/bin/env python3
"""What label sets cost: scans of one heap with usage per set and without, in turn, and their ratio.

private  10,000 sets with memory of their own and a dictionary of a million objects in common
random   1,000 sets that share a heap at random
"""

import argparse
import statistics

from agentclient import Agent
from harness import Fixture
import gobuild

LIMITS = {"private": 3, "random": 10}  # times the plain scan


def measure(agent, target, count):
    plain, labelled = [], []
    for _ in range(count):
        plain.append(agent.scan(target.pid)["scan"])
        scan = agent.scan(target.pid, want_labels=True)
        labelled.append(scan["scan"])
        assert len(scan["labels"]["sets"]) == target.hello["sets"]

    def median(scans, key):
        return statistics.median(scan[key] for scan in scans)

    return (median(plain, "total_us") / 1e6, median(labelled, "total_us") / 1e6,
            median(labelled, "peak_memory_bytes"), scan["heap"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--go", default="1.26", help="Go version of the target")
    parser.add_argument("--count", type=int, default=3, help="scans of each kind")
    options = parser.parse_args()
    program = gobuild.build("labels", options.go, root=gobuild.SOURCE_ROOT / "bench")
    print("\n| label sets | objects | plain scan | with labels | ratio | allowed | peak memory "
          "per live heap |")
    print("|---|---|---|---|---|---|---|")
    for kind, limit in LIMITS.items():
        with Agent() as agent, Fixture([program, kind]) as target:
            agent.scan(target.pid)  # makes the index
            plain, labelled, peak, heap = measure(agent, target, options.count)
            print(f"| {target.hello['sets']} {kind} | {heap['live_objects']} | {plain:.2f} s "
                  f"| {labelled:.2f} s | {labelled / plain:.2f} | {limit} "
                  f"| {peak / heap['live_bytes']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
