#!/usr/bin/env python3
"""Snapshots of a busy program that checks itself: taken over and over, and with us dying at every
phase of the injection. The program must not notice, and nothing of ours may stay behind."""

import contextlib
import json
import random
import subprocess
import time

import procfs
from harness import Fixture, build_fixture, need_root, program, repeat_count
from tap import Suite, check, check_equal, note

VERSIONS = ["1.15", "1.19", "1.22", "1.24", "1.26", "1.27"]

PHASES = ["frame written", "registers set", "signals blocked", "resumed", "at entry", "in the call",
          "at the clone event", "at exit", "signals restored", "restored"]
CALLS = ["clone", "wait4"]
AT_CLONE = PHASES.index("at the clone event")

DIED = 77  # exit status of a tool that died where it was told to
COUNTS = ["allocations", "hashes", "sums", "requests", "signals", "children", "sleeps"]

suite = Suite()


def tool(*arguments, status=0):
    """Runs one command of tests/support/snapshot_tool."""
    done = subprocess.run([program("tests/support/snapshot_tool"), *map(str, arguments)],
                          stdout=subprocess.PIPE, check=False)
    check_equal(done.returncode, status, f"exit status; {done.stdout.decode()}")
    return json.loads(done.stdout) if done.stdout.startswith(b"{") else done.stdout.decode().strip()


@contextlib.contextmanager
def busy(version, wrapper=()):
    """The program with its plan; checked at the end to have gone on well."""
    need_root()
    with Fixture([build_fixture("busy", version)], wrapper=wrapper) as target:
        target.plan = tool("plan", target.pid)
        yield target
        check_alive(target)


def check_alive(target):
    """Everything it does goes on, and nothing went wrong."""
    before = target.command("")

    def goes_on():
        now = target.command("")
        check_equal(now["errors"], [], "what went wrong in the target")
        return all(now[key] > before[key] for key in COUNTS)

    procfs.eventually(goes_on, f"the target does not go on: {before}, {target.command('')}", 30)


def leftovers(pid):
    """Children of our making, alive or dead: only they send nothing at their end."""
    found = []
    for child in procfs.children(pid):
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{child}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if fields[35] == "0":
                found.append((child, fields[0]))
    return found


def signals_unblocked(pid):
    """One thread of os/signal's blocks signals for good (runtime.ensureSigM), others only in passing."""
    return sum(state["SigBlk"] != "0" * 16 for state in procfs.signal_state(pid).values()) <= 1


def check_left_alone(target):
    """No tracer, nothing stopped, no signal blocked for good."""
    pid = target.pid
    procfs.eventually(lambda: procfs.has_no_tracer(pid), "it is still traced")
    procfs.eventually(lambda: all(procfs.status(pid, tid)["State"][0] not in "tT"
                                  for tid in procfs.threads(pid)), "a thread is stopped")
    procfs.eventually(lambda: signals_unblocked(pid), "a thread blocks signals")


def check_collected(target):
    """A clone that we died before may only come now."""
    def collected():
        tool("collect", target.pid, target.plan, 0)
        return not leftovers(target.pid)

    procfs.eventually(collected, f"left: {leftovers(target.pid)}")


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
