#!/usr/bin/env python3
"""What questions about objects cost: scans of one heap with each and without, in turn, and their ratio.

profile    reference chains, for go tool pprof
types      objects by type
goroutines what would be freed with each goroutine: dominators alone
retained   what would be freed with each type and global: types and dominators
"""

from agentclient import Agent
import measure

CHAINS = {"max_depth": 256, "max_samples": 16000, "min_bytes": 0}
QUESTIONS = {
    "profile": {"profile": CHAINS},
    "types": {"histogram": {}},
    "goroutines": {"goroutine_retained": True},
    "retained": {"histogram": {"retained": True}},
}
LIMITS = {"profile": 2.5, "types": "", "goroutines": "", "retained": 4}  # times the plain scan
KINDS = {"tree": "tree", "maps": "maps and interfaces"}


def once(agent, target):
    """All questions, one after the other, so that each sees the machine as the others do."""
    plain = agent.scan(target.pid, want_memory=True)
    found = {"plain": plain["scan"]["total_us"] / 1e6, "live": plain["heap"]["live_bytes"],
             "objects": plain["heap"]["live_objects"]}
    for name, question in QUESTIONS.items():
        scan = agent.scan(target.pid, want_memory=True, want_goroutines=name == "goroutines",
                          analysis=question)["scan"]
        found[name] = scan["total_us"] / 1e6
        found[f"{name} pause"] = scan["pause_us"] / 1e6
        found[f"{name} memory"] = scan["peak_memory_bytes"]
    return found


def main():
    options = measure.options(__doc__, 5)
    table = measure.Table(__doc__, "Go", "heap", "objects", "question", "plain scan", "with it",
                          "ratio", "allowed", "pause", "peak memory per live heap")
    for version in options.go:
        for kind in KINDS:
            with Agent() as agent, measure.heap(version, kind, 1024) as target:
                once(agent, target)  # makes the indexes
                found = measure.rounds(options.count, lambda: once(agent, target))
            for name in QUESTIONS:
                table.row(version, KINDS[kind], f"{found['objects']:,.0f}", name,
                          f"{found['plain']:.2f} s", f"{found[name]:.2f} s",
                          f"{found[name] / found['plain']:.2f}", LIMITS[name],
                          measure.milliseconds(found[f"{name} pause"]),
                          f"{found[f'{name} memory'] / found['live']:.3f}")


if __name__ == "__main__":
    main()
