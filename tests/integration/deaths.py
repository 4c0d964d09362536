#!/usr/bin/env python3
"""Our own processes killed at random moments of a scan: the target lives on unharmed, what is left of
the scan is collected, and the next scan works."""

import contextlib
import os
import pathlib
import random
import signal
import tempfile
import threading
import time

from harness import Daemon, Fixture, build_fixture, processes_of, repeat_count
from procfs import eventually, unharmed
from tap import Suite, check, check_equal, note

GO = "1.26"

suite = Suite()
random.seed(os.environ.get("GOHEAPD_SEED", "goheapd"))


def role_of(pid):
    """keeper or decoder, or None for any other process."""
    with contextlib.suppress(OSError):
        for argument in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            if argument.startswith(b"--role="):
                return argument.removeprefix(b"--role=").decode()
    return None


def kill_role(daemon, role, delay):
    """Waits for a process of that role, then a moment more, and kills it; whether one was there."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        for pid in daemon.descendants():
            if role_of(pid) == role:
                time.sleep(delay)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return True
    return False


def scan_and_kill(daemon, target, role, mode):
    answers = []
    asking = threading.Thread(target=lambda: answers.append(
        daemon.get(f"/pid/{target.pid}/memusage?mode={mode}&max_pause=10")))
    asking.start()
    kill_role(daemon, role, random.random() * 0.06)
    asking.join()
    check_equal(len(answers), 1, "answers")
    return answers[0].status


def check_deaths(role, turns):
    program = build_fixture("demo", GO)
    statuses = {}
    with tempfile.TemporaryDirectory(prefix="goheapd-deaths-") as folder:
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("min_stop_interval = 0\n")
        pathlib.Path(folder).chmod(0o755)
        with Daemon("--config", config) as daemon, Fixture([program]) as target:
            live = daemon.scan(target.pid)["heap"]["live_objects"]
            with unharmed(target.pid):
                for turn in range(turns):
                    status = scan_and_kill(daemon, target, role, ("fork", "stop")[turn % 2])
                    statuses[status] = statuses.get(status, 0) + 1
                    eventually(lambda: processes_of(program) == {target.pid}, "a snapshot is left")
                found = daemon.scan(target.pid)["heap"]["live_objects"]
            check_equal(found, live, "live objects after all that")
    note(statuses)
    check(set(statuses) <= {200, 500, 503}, f"answers {statuses}")
    check(statuses.keys() - {200}, "no scan was hit")


@suite.test("the keeper killed at random: the target is unharmed, its snapshot collected")
def _():
    check_deaths("keeper", repeat_count(30, 500))


@suite.test("the decoder killed at random: the target is unharmed, its snapshot collected")
def _():
    check_deaths("decoder", repeat_count(30, 500))


@suite.test("the agent killed during a scan: the target is unharmed, nothing of ours is left")
def _():
    program = build_fixture("demo", GO)
    with Fixture([program]) as target, unharmed(target.pid):
        for turn in range(repeat_count(5, 100)):
            with Daemon() as daemon:
                agent = [pid for pid in daemon.descendants() if role_of(pid) is None][0]
                answers = []
                asking = threading.Thread(target=lambda: answers.append(
                    daemon.get(f"/pid/{target.pid}/memusage").status))
                asking.start()
                time.sleep(turn % 5 * 0.01)
                os.kill(agent, signal.SIGKILL)
                asking.join()
                check(answers[0] in (200, 500, 503), f"answer {answers}")
            eventually(lambda: processes_of(program) == {target.pid}, "a snapshot is left")


suite.run()
