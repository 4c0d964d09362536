#!/usr/bin/env python3
"""Snapshots of a busy program that checks itself: taken over and over, and with us dying at every
phase of the injection. The program must not notice, and nothing of ours may stay behind."""

import random

from harness import repeat_count
from tap import Suite, check_equal, note
from victim import busy, check_collected, check_left_alone, leftovers, tool

VERSIONS = ["1.15", "1.19", "1.22", "1.24", "1.26", "1.27"]

PHASES = ["frame written", "registers set", "signals blocked", "resumed", "at entry", "in the call",
          "at the clone event", "at exit", "signals restored", "restored"]
CALLS = ["clone", "wait4"]
AT_CLONE = PHASES.index("at the clone event")

DIED = 77  # exit status of a tool that died where it was told to

suite = Suite()


def add_tests(version):
    @suite.test(f"go{version}: snapshots do no harm")
    def _():
        with busy(version) as target:
            result = tool("take", target.pid, target.plan, repeat_count(20, 2000))
            note(f"{result['taken']} snapshots: pause {result['mean_pause_us']} us, at most "
                 f"{result['most_pause_us']} us; collecting {result['mean_collect_us']} us")
            check_equal(leftovers(target.pid), [], "children of our making")
            check_left_alone(target)

    @suite.test(f"go{version}: our death at any phase of the injection does no harm")
    def _():
        with busy(version) as target:
            for call in range(len(CALLS)):
                for phase in range(len(PHASES)):
                    if call and phase == AT_CLONE:
                        continue
                    for _ in range(repeat_count(1, 50)):
                        tool("die", target.pid, target.plan, call, phase, status=DIED)
                        check_left_alone(target)
                        check_collected(target)
                    check_equal(target.command("")["errors"], [],
                                f"after our death in {CALLS[call]}, {PHASES[phase]}")

    @suite.test(f"go{version}: our death at random moments does no harm")
    def _():
        with busy(version) as target:
            for _ in range(repeat_count(10, 500)):
                tool("die-after", target.pid, target.plan, random.randrange(20000), status=-9)
                check_left_alone(target)
                check_collected(target)


for each in VERSIONS:
    add_tests(each)

suite.run()
