"""Programs to stop and to take snapshots of, and how to see that nothing happened to them."""

import contextlib
import json
import os
import signal
import subprocess

import procfs
from harness import Fixture, build_fixture, need_root, program
from tap import check, check_equal

COUNTS = ["allocations", "hashes", "sums", "requests", "signals", "children", "sleeps"]


def tool(*arguments, status=0):
    """Runs one command of tests/support/snapshot_tool."""
    done = subprocess.run([program("tests/support/snapshot_tool"), *map(str, arguments)],
                          stdout=subprocess.PIPE, check=False)
    check_equal(done.returncode, status, f"exit status; {done.stdout.decode()}")
    return json.loads(done.stdout) if done.stdout.startswith(b"{") else done.stdout.decode().strip()


@contextlib.contextmanager
def busy(version, wrapper=(), launcher=(), **build):
    """The program with its plan; checked at the end to have gone on well. A wrapper starts it as
    its child, a launcher becomes it; other keywords are gobuild.build's."""
    need_root()
    with Fixture([*launcher, build_fixture("busy", version, **build)], wrapper=wrapper) as target:
        if wrapper:  # the harness looks for the innermost process, and this program has children
            target.pid, = procfs.children(target.process.pid)
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
    procfs.eventually(lambda: procfs.none_stopped(pid), "a thread is stopped")
    procfs.eventually(lambda: signals_unblocked(pid), "a thread blocks signals")


def check_collected(target):
    """A clone that we died before may only come now."""
    def collected():
        tool("collect", target.pid, target.plan, 0)
        return not leftovers(target.pid)

    procfs.eventually(collected, f"left: {leftovers(target.pid)}")


class StopTarget:
    """A mode of tests/support/stop_target, with its count of what it does."""

    def __init__(self, *arguments):
        need_root()
        self.process = subprocess.Popen(
            [program("tests/support/stop_target"), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        check_equal(self.process.stdout.readline(), "ready\n", "first line of the target")

    def count(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def check_goes_on(self):
        before = self.count()
        procfs.eventually(lambda: self.count() > before, "the target does not go on")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
