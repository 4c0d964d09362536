#!/usr/bin/env python3
"""Targets that cannot be scanned, or hardly: the right answer or the right error, and in every case
a target that is left as it was."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import (Daemon, Fixture, build_fixture, need_root, processes_of, repeat_count)
from procfs import children, eventually, is_kernel_thread, is_running, status, unharmed
from tap import Skip, Suite, check, check_equal, note

GO = "1.26"

suite = Suite()
daemon = None


def check_error(pid, http_status, code, endpoint="memusage"):
    answer = daemon.get(f"/pid/{pid}/{endpoint}?format=json&max_pause=10")
    check_equal((answer.status, answer.error_code()), (http_status, code),
                f"answer {answer.text()}")
    error = answer.json()["error"]
    check_equal(error["pid"], pid, "pid in the error")
    check(len(error["message"]) > 10, f"message {error['message']!r} helps nobody")
    return error["message"]


@contextlib.contextmanager
def running(*command, **keywords):
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **keywords)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def settle_sleep(pid):
    """Waits until sleep has begun to sleep: before, it opens and closes files."""
    eventually(lambda: os.readlink(f"/proc/{pid}/exe").endswith("sleep")
               and "nanosleep" in pathlib.Path(f"/proc/{pid}/wchan").read_text(), "no sleep")


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


@suite.test("a process that does not exist is no_such_process")
def _():
    with running("sleep", "1000") as process:
        pid = process.pid
    check_error(pid, 404, "no_such_process")


@suite.test("a program that is not Go is not_go")
def _():
    with running("sleep", "1000") as process:
        settle_sleep(process.pid)
        with unharmed(process.pid):
            check_error(process.pid, 422, "not_go")


@suite.test("a kernel thread is not_go")
def _():
    need_root()
    threads = [int(name) for name in os.listdir("/proc")
               if name.isdigit() and is_kernel_thread(int(name))]
    if not threads:
        raise Skip("this machine shows no kernel threads")
    check_error(threads[0], 422, "not_go")


@suite.test("pid 1 of a namespace that is not Go is not_go, and its namespace lives on")
def _():
    need_root()
    need("unshare")
    command = ("unshare", "--pid", "--fork", "--kill-child", "sleep", "1000")
    with running(*command) as process:
        inner = eventually(lambda: children(process.pid), "no child").pop()
        settle_sleep(inner)
        with unharmed(inner):
            check_error(inner, 422, "not_go")


@suite.test("a zombie is no_such_process")
def _():
    process = subprocess.Popen(["true"])
    try:
        eventually(lambda: status(process.pid)["State"][0] == "Z", "it does not end")
        check("zombie" in check_error(process.pid, 404, "no_such_process"), "why?")
        check_equal(status(process.pid)["State"][0], "Z", "state")
    finally:
        process.wait()


def scan_and_end(program, delay, mode):
    """One scan during which the target is killed; the answer's status and code."""
    with Fixture([program]) as target:
        killer = threading.Timer(delay, os.kill, (target.pid, signal.SIGKILL))
        killer.start()
        answer = daemon.get(f"/pid/{target.pid}/memusage?mode={mode}&max_pause=10")
        killer.join()
        # Reaped: nothing of ours keeps it.
        check_equal(target.process.wait(5), -signal.SIGKILL, "exit status of the target")
    return answer.status, answer.error_code() if answer.status != 200 else ""


@suite.test("a target that ends during the scan is answered, and no snapshot outlives it")
def _():
    program = build_fixture("demo", GO)
    seen = {}
    for turn in range(repeat_count(20, 400)):
        # A scan takes some hundredths of a second: the end falls before, into and after it.
        outcome = scan_and_end(program, (turn % 20) * 0.004, ("fork", "stop")[turn % 2])
        seen[outcome] = seen.get(outcome, 0) + 1
        # On a machine with too much to do, a thread may not come to its stop in time.
        check(outcome[1] in ("", "process_exited", "no_such_process", "not_stoppable"),
              f"answer {outcome}")
        eventually(lambda: not processes_of(program), "a snapshot is left")
    note(seen)
    check((410, "process_exited") in seen, f"no target ended during its scan: {seen}")


def check_traced(target, tracer):
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(running(*tracer))
        eventually(lambda: status(target.pid)["TracerPid"] == str(process.pid), "not traced", 20)
        for mode in ("auto", "fork", "stop"):
            answer = daemon.get(f"/pid/{target.pid}/memusage?mode={mode}&max_pause=10")
            check_equal((answer.status, answer.error_code()), (409, "already_traced"), mode)
            check(str(process.pid) in answer.json()["error"]["message"],
                  f"no pid of the tracer: {answer.text()}")
        check(process.poll() is None, "the tracer has ended")
        check_equal(status(target.pid)["TracerPid"], str(process.pid), "tracer")


@suite.test("a target under strace or gdb is already_traced, and stays with its tracer")
def _():
    for name in ("strace", "gdb"):
        need(name)
    with Fixture([build_fixture("demo", GO)]) as target:
        with unharmed(target.pid):
            check_traced(target, ("strace", "-f", "-o", "/dev/null", "-p", target.pid))
        with unharmed(target.pid):
            check_traced(target, ("gdb", "-nx", "-q", "-batch", "-p", target.pid,
                                  "-ex", "shell sleep 1000"))
        daemon.scan(target.pid)


@suite.test("a Go program for another architecture is unsupported_arch")
def _():
    program = build_fixture("demo", GO, env={"GOARCH": "386"})
    try:
        target = Fixture([program])
    except OSError as error:
        raise Skip("this kernel runs no 386 programs") from error
    with target, unharmed(target.pid):
        check("386" in check_error(target.pid, 422, "unsupported_arch"), "which architecture?")


def copy_program(program, folder, name="demo"):
    copy = pathlib.Path(folder, name)
    shutil.copy(program, copy)
    return copy


@suite.test("a program whose executable is deleted or replaced is scanned like any other")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-deleted-") as folder:
        program = copy_program(build_fixture("demo", GO), folder)
        with Fixture([program]) as target, unharmed(target.pid):
            expected = daemon.scan(target.pid)["heap"]["live_objects"]
            program.unlink()
            check_equal(daemon.scan(target.pid)["heap"]["live_objects"], expected, "deleted")
            program.write_text("#!/bin/sh\necho something else\n")
            check_equal(daemon.scan(target.pid)["heap"]["live_objects"], expected, "replaced")


@suite.test("a program whose build info is damaged is scanned, its version unknown")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-damaged-") as folder:
        program = copy_program(build_fixture("demo", GO), folder)
        content = bytearray(program.read_bytes())
        length = content.index(b"\xff Go buildinf:") + 32
        content[length:length + 10] = b"\xff" * 10
        program.write_bytes(content)
        with Fixture([program]) as target, unharmed(target.pid):
            answer = daemon.scan(target.pid)
            check_equal(answer["go_version"], "", "version")
            check(answer["heap"]["live_objects"] > 0, "no heap")
            check(target.pid in [row["pid"] for row in daemon.get("/pids").json()["processes"]],
                  "not listed")


@suite.test("a target that somebody has stopped stays stopped")
def _():
    with Fixture([build_fixture("demo", GO)]) as target:
        os.kill(target.pid, signal.SIGSTOP)
        eventually(lambda: status(target.pid)["State"][0] == "T", "it does not stop")
        for mode in ("fork", "stop"):
            daemon.scan(target.pid, mode=mode)
            time.sleep(0.1)
            check_equal(status(target.pid)["State"][0], "T", f"state after mode={mode}")
        with unharmed_after_continue(target.pid):
            os.kill(target.pid, signal.SIGCONT)


@contextlib.contextmanager
def unharmed_after_continue(pid):
    yield
    eventually(lambda: status(pid)["State"][0] in "SR", "it does not go on")
    check(is_running(pid), "it is gone")
    check_equal(children(pid), set(), "children")


@suite.test("a start time of another process is process_changed")
def _():
    with Fixture([build_fixture("demo", GO)]) as target, unharmed(target.pid):
        start = daemon.scan(target.pid)["start_time"]
        daemon.scan(target.pid, start=start)
        answer = daemon.get(f"/pid/{target.pid}/memusage?start=2001-01-01T00:00:00Z")
        check_equal((answer.status, answer.error_code()), (409, "process_changed"), "answer")


with Daemon() as daemon:
    suite.run()
