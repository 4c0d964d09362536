#!/usr/bin/env python3
"""Snapshots of a busy program that checks itself: taken over and over, and with us dying at every
phase of the injection. The program must not notice, and nothing of ours may stay behind."""

import json
import random
import subprocess

from harness import program, repeat_count
from tap import Suite, check, check_equal, note
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


def add_build_test(name, **build):
    @suite.test(f"go1.26, {name}: snapshots and our death at any phase do no harm")
    def _():
        with busy("1.26", **build) as target:
            tool("take", target.pid, target.plan, repeat_count(5, 200))
            for phase in range(len(PHASES)):
                tool("die", target.pid, target.plan, 0, phase, status=DIED)
                check_left_alone(target)
                check_collected(target)


for each in VERSIONS:
    add_tests(each)
add_build_test("position independent", flags=("-buildmode=pie",))
add_build_test("with cgo", env={"CGO_ENABLED": "1"})


PLAN_WORDS = 14  # addresses; the offsets of fields follow, four bytes each
PLAN_OFFSETS = 6


@suite.test("a plan that is wrong is refused, and does no harm")
def _():
    with busy("1.26") as target:
        plan = bytes.fromhex(target.plan)
        check_equal(len(plan), PLAN_WORDS * 8 + PLAN_OFFSETS * 4, "size of a plan")
        for word in range(PLAN_WORDS):
            if plan[word * 8:word * 8 + 8] != bytes(8):
                for wrong in wrong_words(plan[word * 8:word * 8 + 8]):
                    refuse(target, plan[:word * 8] + wrong + plan[word * 8 + 8:])
        for offset in range(PLAN_WORDS * 8, len(plan), 4):
            for wrong in (b"\xff\xff\xff\xff", b"\xff\xff\x00\x00"):
                refuse(target, plan[:offset] + wrong + plan[offset + 4:])


def wrong_words(word):
    value = int.from_bytes(word, "little")
    for wrong in (value + 1, value + 4096, value ^ 1 << 63, 1, 2 ** 64 - 1):
        yield wrong.to_bytes(8, "little")


def refuse(target, plan):
    """Not every wrong plan shows: of two functions of one name one is not needed."""
    done = subprocess.run([program("tests/support/snapshot_tool"), "take", str(target.pid),
                           plan.hex(), "1"], stdout=subprocess.PIPE, check=False)
    answer = json.loads(done.stdout)
    check(done.returncode == 0 or answer["error"] == "unsupported", f"{answer}")
    if done.returncode == 0:
        check_equal(leftovers(target.pid), [], "children of our making")


suite.run()
