#!/usr/bin/env python3
"""Programs that do everything at once, scanned over and over with our own processes killed in every
tenth scan: they check themselves, and must not notice. What is open or locked is theirs alone, also
while a snapshot lives, and a system call ends as it does after SIGSTOP and SIGCONT."""

import os
import signal
import tempfile
import time

import procfs
from harness import STRESS, Fixture, need_root, repeat_count
from siege import CROWDED, Siege, free_low_port
from tap import Suite, check, check_equal, note
from victim import signals_unblocked

SCANS = repeat_count(20, 1000)
STRESS_VERSIONS = ["1.19", "1.24", "1.27"]

# What each program counts.
COUNTS = {
    "storm": ["allocations", "hashes", "sums", "requests", "signals", "children", "sleeps", "maps",
              "goroutines_ended", "threads_ended"],
    "large": ["large_objects"],
    "network": ["tcp_rounds", "unix_rounds", "lock_rounds", "pipe_rounds"],
}
ROUNDS = 3  # of everything that must go by with a snapshot held

suite = Suite()


def check_goes_on(target, counts):
    """Everything it does goes on, and nothing went wrong."""
    before = target.command("")

    def goes_on():
        now = target.command("")
        check_equal(now["errors"], [], "what went wrong in the target")
        return all(now[key] >= before[key] + ROUNDS for key in counts)

    procfs.eventually(goes_on, f"the target does not go on: {before}", 60)


def ignored_signals(pid):
    return {state["SigIgn"] for state in procfs.signal_state(pid).values()}


def check_counts(siege):
    """Nearly all scans succeed: only a crowded machine excuses one that does not."""
    note(f"{siege.answers['200']} of {sum(siege.answers.values())} complete")
    check(siege.answers["200"] > 0.8 * sum(siege.answers.values()), siege.answers)


def besiege(what, version):
    counts = COUNTS[what]
    with Siege(f"{what} {version}", SCANS) as siege, \
            tempfile.TemporaryDirectory(prefix="goheapd-busy-") as folder, \
            Fixture([siege.program(version), what, folder],
                    env={"BUSY_PORT": str(free_low_port(siege.random))}) as target:
        ignored = ignored_signals(target.pid)
        for turn in siege.turns():
            siege.scan(target.pid, CROWDED, lambda: check_goes_on(target, counts))
            siege.check_untouched(target.pid)
            if turn == 5:
                siege.remember_ourselves()
            if turn % 50 == 49:
                check_equal(target.command("")["errors"], [], f"after {turn + 1} scans")
        check_goes_on(target, counts)
        procfs.eventually(lambda: signals_unblocked(target.pid), "a thread blocks signals")
        check_equal(ignored_signals(target.pid), ignored, "ignored signals")
        check_counts(siege)
        note({key: target.command("")[key] for key in counts})


def add_test(what, version):
    @suite.test(f"{what}, go{version}: scans, whole or torn, do no harm")
    def _():
        besiege(what, version)


for each, short in (("storm", "1.26"), ("large", "1.27"), ("network", "1.24")):
    for go in STRESS_VERSIONS if STRESS else [short]:
        add_test(each, go)


# ---- system calls ----

def interruptions(target):
    """The kinds of calls that came back with EINTR so far, with how often."""
    line = target.command("")
    check_equal(line["errors"], [], "what went wrong in the target")
    return {key: count for key, count in line.items() if key.endswith("_interrupted") and count}


def stop_and_continue(target):
    os.kill(target.pid, signal.SIGSTOP)
    procfs.eventually(lambda: {fields["State"][0] for fields in procfs.thread_statuses(target.pid)}
                      == {"T"}, "it does not stop")
    os.kill(target.pid, signal.SIGCONT)
    time.sleep(0.01)


def compare_calls(version):
    turns = repeat_count(10, 200)
    # Go's own signals, by which it preempts goroutines, interrupt calls, too.
    quiet = {"GODEBUG": "asyncpreemptoff=1"}
    with Siege(f"calls {version}", turns) as siege, \
            Fixture([siege.program(version), "calls"], env=quiet) as target:
        target.command("wake")
        for _ in range(turns):
            stop_and_continue(target)
        usual = interruptions(target)
        target.command("wake")
        for _ in range(turns):
            siege.take(siege.path(target.pid), CROWDED, siege.answers)
            siege.check_untouched(target.pid)
        found = interruptions(target)
        note(f"EINTR after SIGSTOP: {usual}; and after scans: {found}")
        check(usual, "no call shows a stop at all")
        check_equal(set(found), set(usual), "calls that a scan interrupts for good")
        last = target.command("wake")
        check_equal(last["errors"], [], "what went wrong in the target")
        for key in last:
            if key.endswith("_done") and key != "nanosleep_done":
                check_equal(last[key], 3, key)


def add_calls_test(version):
    @suite.test(f"go{version}: system calls end as after SIGSTOP and SIGCONT")
    def _():
        need_root()
        compare_calls(version)


for go in STRESS_VERSIONS if STRESS else ["1.26"]:
    add_calls_test(go)


suite.run()
