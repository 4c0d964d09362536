#!/usr/bin/env python3
"""goheap-agent alone, spoken to as the daemon does: its protocol, its floor, and that everything is
let go whenever nobody wants it any more."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
import procfs
from harness import Fixture, build_fixture, need_root, processes_of, repeat_count
from procfs import eventually, unharmed
from tap import Suite, check, check_equal, note
from wire import Client, Closed

GO = "1.26"

suite = Suite()
random.seed(os.environ.get("GOHEAPD_SEED", "goheapd"))


PROGRAMS = tempfile.TemporaryDirectory(prefix="goheapd-agent-programs-")


def demo(version=GO):
    """The demonstration, as a file of this run's own: its processes are known by their file."""
    program = pathlib.Path(PROGRAMS.name, f"demo-{version}")
    if not program.exists():
        shutil.copy(build_fixture("demo", version), program)
    return program


class Agent:
    """An agent that listens on a socket of its own, with one session open to it."""

    def __init__(self, config="min_stop_interval = 0\n"):
        self.folder = tempfile.TemporaryDirectory(prefix="goheapd-agent-")
        root = pathlib.Path(self.folder.name)
        self.path, self.log_path, self.cache_dir = root / "socket", root / "log", root / "cache"
        (root / "config").write_text(config)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [harness.program("goheap-agent"), "--listen", self.path, "--config",
                 root / "config", "--cache-dir", self.cache_dir],
                stdin=subprocess.DEVNULL, stderr=log)
        try:
            self.client = eventually(self.first_session, "the agent does not listen", 20)
        except BaseException:
            self.process.kill()
            raise

    def first_session(self):
        check(self.process.poll() is None, f"the agent ended: {self.log()}")
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return self.session()

    def session(self):
        client = Client.connect(self.path)
        client.hello()
        return client

    def send_scan(self, pid, client=None, **values):
        request = {"pid": pid, "start_ticks": procfs.start_ticks(pid), "mode": "MODE_AUTO",
                   "depth": "DEPTH_FULL", "max_pause_us": 10000000, "timeout_ms": 60000,
                   "caller_uid": 4711, "path": "/a/path", "want_memory": True, **values}
        return (client or self.client).send("scan", **request)

    def scan(self, pid, **values):
        return self.client.answer(self.send_scan(pid, **values))

    def helpers(self, role=""):
        """Pids of keepers and decoders."""
        return {pid for pid in procfs.children(self.process.pid)
                if f"--role={role}".encode() in command_line(pid)}

    def freeze(self, role):
        """Stops a helper of that role as soon as there is one, so that its scan hangs."""
        pid = eventually(lambda: self.helpers(role), f"no {role} comes").pop()
        os.kill(pid, signal.SIGSTOP)
        return pid

    def check_idle(self):
        eventually(lambda: not self.helpers(), "a helper outlives its task", 10)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def close(self):
        self.client.close()
        self.process.terminate()
        try:
            check_equal(self.process.wait(20), 0, "exit status of the agent")
            # of the helpers, whose exit status nobody sees
            check("Sanitizer" not in self.log() and "runtime error" not in self.log(), "a fault")
        except BaseException:
            note(self.log())
            raise
        finally:
            self.process.kill()
            self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exception):
        if kind:
            note(self.log())
        self.close()


def command_line(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def check_failure(answer, code, words=""):
    failure = answer.get("failure")
    check(failure, f"no failure: {list(answer)}")
    check_equal(failure["code"], "FAILURE_" + code, f"failure {failure}")
    check(words in failure["message"].decode(), f"no {words!r} in {failure}")
    return failure


def check_scanned(answer):
    check("scan" in answer, f"no scan: {answer}")


def ends(client):
    """Whether the agent has closed that session."""
    try:
        client.receive()
    except Closed:
        return True
    return False


# ---- the session ----

@suite.test("a session begins with hello, once, and in a protocol that both know")
def _():
    with Agent() as agent:
        client = Client.connect(agent.path)
        answer = client.hello()
        check_equal(answer["hello"]["protocol"], 2, "protocol")
        client.send("hello", protocol=2)
        check(ends(client), "a second hello is taken")
        for body, values in (("list_processes", {}), ("look_process", {"pid": 1}),
                             ("cancel", {"request": 1}), ("hello", {"protocol": 1})):
            client = Client.connect(agent.path)
            client.send(body, **values)
            check(ends(client), f"{body} {values} is taken before hello")
        check("process" in agent.client.ask("look_process", pid=1), "other sessions went, too")


@suite.test("what is no request ends its session, and no other")
def _():
    bad = {
        "an unknown field": b"\x08\x01\x7a\x00",
        "no body": b"\x08\x01",
        "trailing bytes": b"\x08\x01\x1a\x00\x00",
        "half a request": b"\x08",
        "an unknown mode": Client.schema.encode("Request", {"id": 7, "scan": {
            "pid": 1, "start_ticks": 1, "mode": 9, "depth": 0, "max_pause_us": 1,
            "timeout_ms": 1, "caller_uid": 0, "path": b""}}),
    }
    with Agent() as agent:
        for name, data in bad.items():
            client = agent.session()
            client.send_frame(data)
            check(ends(client), f"{name} is taken")
        client = agent.session()
        client.connection.sendall(struct.pack("<I", (4 << 20) + 1))
        check(ends(client), "a length beyond 4 MiB is waited for")
        client = agent.session()
        socket.send_fds(client.connection, [struct.pack("<I", 4) + b"\x08\x01\x1a\x00"], [0])
        check(ends(client), "a descriptor is taken")
        check("process" in agent.client.ask("look_process", pid=1), "other sessions went, too")


@suite.test("only root, the agent's own user and the daemon's may connect")
def _():
    need_root()
    with Agent() as agent:
        os.chmod(agent.path, 0o777)
        os.chmod(agent.path.parent, 0o755)
        pid = os.fork()
        if pid == 0:
            status = 1
            with contextlib.suppress(BaseException):
                os.setuid(54321)
                client = Client.connect(agent.path)
                with contextlib.suppress(OSError):
                    client.send("hello", protocol=2)
                status = 0 if ends(client) else 1
            os._exit(status)
        check_equal(os.waitpid(pid, 0)[1], 0, "exit status of the stranger")
        eventually(lambda: "uid 54321 may not" in agent.log(), "no word in the log")


@suite.test("descriptors and processes of the agent do not grow with use")
def _():
    with Agent() as agent, Fixture([demo()]) as target:
        def use():
            client = agent.session()
            check_scanned(client.answer(agent.send_scan(target.pid, client)))
            check("process_list" in client.ask("list_processes"), "no list")
            check("overview" in client.ask("overview", pid=target.pid,
                                           start_ticks=procfs.start_ticks(target.pid)),
                  "no overview")
            client.close()
            agent.check_idle()
        use()
        count = eventually(lambda: len(procfs.descriptors(agent.process.pid)), "none")
        for _ in range(5):
            use()
        eventually(lambda: len(procfs.descriptors(agent.process.pid)) <= count,
                   f"from {count} to {procfs.descriptors(agent.process.pid)}")


# ---- processes ----

@suite.test("a listing has every Go process, with its version, and nothing else")
def _():
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent())
        expected = {stack.enter_context(Fixture([demo(version)])).pid:
                    version for version in ("1.15", "1.26")}
        for _ in range(2):  # once from the executables, once from what is known of them
            processes = {process["pid"]: process for process in
                         agent.client.ask("list_processes")["process_list"]["processes"]}
            for pid, version in expected.items():
                check(processes[pid]["go_version"].decode().startswith("go" + version),
                      f"{processes[pid]}")
                check_equal(processes[pid]["start_ticks"], procfs.start_ticks(pid), "start")
                check(processes[pid]["inspectable"], f"{processes[pid]}")
            check(os.getpid() not in processes, "Python is listed")
            check(agent.process.pid not in processes, "the agent is listed")


@suite.test("a snapshot is in no listing and cannot be asked about")
def _():
    program = demo()
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        asker = agent.session()
        request = agent.send_scan(target.pid, asker, mode="MODE_FORK", timeout_ms=20000)
        decoder = agent.freeze("decoder")
        # it may have been frozen before the stop: thaw it for moments until there is a snapshot
        def snapshot():
            found = processes_of(program) - {target.pid}
            if not found:
                os.kill(decoder, signal.SIGCONT)
                time.sleep(0.0005)
                os.kill(decoder, signal.SIGSTOP)
            return found
        found = eventually(snapshot, "no snapshot is taken", 10).pop()
        processes = agent.client.ask("list_processes")["process_list"]["processes"]
        check_equal([process["pid"] for process in processes if process["pid"] == found], [],
                    "snapshots in the listing")
        check(target.pid in {process["pid"] for process in processes}, "no target in the listing")
        check_failure(agent.client.ask("look_process", pid=found), "NO_SUCH_PROCESS")
        check_failure(agent.scan(found), "NO_SUCH_PROCESS")
        os.kill(decoder, signal.SIGCONT)
        check_scanned(asker.answer(request))


@suite.test("what cannot be scanned is answered with the right failure")
def _():
    with Agent() as agent, Fixture([demo()]) as target, \
            subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL) as other:
        try:
            eventually(lambda: command_line(other.pid).startswith(b"sleep"), "no exec")
            check_failure(agent.scan(other.pid), "NOT_GO")
            check_failure(agent.scan(target.pid, start_ticks=1), "PROCESS_CHANGED")
            check_failure(agent.client.ask("overview", pid=target.pid, start_ticks=1),
                          "PROCESS_CHANGED")
            thread = max(procfs.threads(target.pid))
            check(thread != target.pid, "the fixture has one thread")
            for pid in (0, 2 ** 31, 2 ** 32 - 1, thread):
                check_failure(agent.client.ask("look_process", pid=pid), "NO_SUCH_PROCESS")
        finally:
            other.kill()
    with Agent() as agent:
        zombie = subprocess.Popen(["true"])
        eventually(lambda: procfs.status(zombie.pid)["State"][0] == "Z", "it does not end")
        check_failure(agent.client.ask("look_process", pid=zombie.pid), "NO_SUCH_PROCESS", "zombie")
        check_failure(agent.scan(zombie.pid), "NO_SUCH_PROCESS", "zombie")
        zombie.wait()
        check_failure(agent.client.ask("look_process", pid=zombie.pid), "NO_SUCH_PROCESS")


@suite.test("a scan that would take more than max_scan_memory is out_of_memory")
def _():
    with Agent("min_stop_interval = 0\nmax_scan_memory = 10000\n") as agent, \
            Fixture([demo()]) as target, unharmed(target.pid):
        check_failure(agent.scan(target.pid), "OUT_OF_MEMORY")
        agent.check_idle()
        check_scanned(agent.scan(target.pid, depth="DEPTH_CENSUS"))


# ---- the floor ----

@suite.test("between two stops of one target passes min_stop_interval")
def _():
    with Agent("min_stop_interval = 30\n") as agent, \
            Fixture([demo()]) as target, \
            Fixture([demo()]) as other:
        check_scanned(agent.scan(target.pid))
        agent.check_idle()
        failure = check_failure(agent.scan(target.pid), "BUSY", "min_stop_interval")
        check(0 < failure["retry_after_ms"] <= 30000, f"{failure}")
        check_scanned(agent.scan(other.pid))


@suite.test("one target is scanned once at a time, and no more than max_scans are")
def _():
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent("min_stop_interval = 0\nmax_scans = 2\n"))
        targets = [stack.enter_context(Fixture([demo()])) for _ in range(3)]
        request = agent.send_scan(targets[0].pid)
        frozen = [agent.freeze("decoder")]
        failure = check_failure(agent.scan(targets[0].pid), "BUSY", "being scanned")
        check(failure["retry_after_ms"] > 0, f"{failure}")
        second = agent.send_scan(targets[1].pid)
        frozen += eventually(lambda: agent.helpers("decoder") - set(frozen), "no second decoder")
        os.kill(frozen[1], signal.SIGSTOP)
        check_failure(agent.scan(targets[2].pid), "BUSY", "max_scans")
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        check_scanned(agent.client.answer(request))
        check_scanned(agent.client.answer(second))
        agent.check_idle()
        check_scanned(agent.scan(targets[2].pid))


@suite.test("every stop is one line of audit")
def _():
    with Agent() as agent, Fixture([demo()]) as target:
        for mode in ("fork", "stop"):
            check_scanned(agent.scan(target.pid, mode="MODE_" + mode.upper()))
            agent.check_idle()
        agent.client.ask("overview", pid=target.pid,
                         start_ticks=procfs.start_ticks(target.pid))
        lines = [line for line in agent.log().splitlines() if "audit" in line]
        check_equal(len(lines), 2, f"lines {lines}")
        for line, mode in zip(lines, ("fork", "stop")):
            for word in (f"pid={target.pid} ", "uid=4711 ", 'path="/a/path"', f"mode={mode} ",
                         "pause_us=", 'outcome="ok"'):
                check(word in line, f"no {word!r} in {line}")


# ---- letting go ----

def check_let_go(agent, program, target):
    agent.check_idle()
    eventually(lambda: processes_of(program) == {target.pid}, "a snapshot is left")


@suite.test("a scan that takes longer than its timeout is let go")
def _():
    program = demo()
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        check_failure(agent.scan(target.pid, timeout_ms=0), "TIMEOUT")
        for mode in ("MODE_FORK", "MODE_STOP"):
            request = agent.send_scan(target.pid, mode=mode, timeout_ms=700)
            agent.freeze("decoder")
            check_failure(agent.client.answer(request), "TIMEOUT")
            check_let_go(agent, program, target)
        check_scanned(agent.scan(target.pid))


@suite.test("a target in mode stop is let go when max_pause has passed")
def _():
    program = demo()
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        def stopped():
            if not procfs.none_stopped(target.pid):
                return True
            os.kill(decoder, signal.SIGCONT)
            time.sleep(0.0005)
            os.kill(decoder, signal.SIGSTOP)
            return False
        request = agent.send_scan(target.pid, mode="MODE_STOP", max_pause_us=500000)
        decoder = agent.freeze("decoder")
        eventually(stopped, "the target is not stopped")
        os.kill(decoder, signal.SIGSTOP)
        check_failure(agent.client.answer(request), "PAUSE_EXCEEDED", "max_pause")
        check_let_go(agent, program, target)
        check_failure(agent.scan(target.pid, mode="MODE_STOP", max_pause_us=1), "PAUSE_EXCEEDED")


@suite.test("a scan that is cancelled is let go, and answered as such")
def _():
    program = demo()
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        request = agent.send_scan(target.pid)
        agent.freeze("decoder")
        agent.client.send("cancel", request=request)
        check_failure(agent.client.answer(request), "TIMEOUT", "cancelled")
        check_let_go(agent, program, target)
        agent.client.send("cancel", request=request)  # answered long ago: no mistake
        # the helpers are gone, which the agent may not have seen yet
        eventually(lambda: "scan" in agent.scan(target.pid), "the target stays busy")


@suite.test("whatever an asker that goes away had asked for is let go")
def _():
    program = demo()
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        for turn in range(repeat_count(20, 300)):
            client = agent.session()
            agent.send_scan(target.pid, client, mode=("MODE_FORK", "MODE_STOP")[turn % 2])
            time.sleep(random.random() * 0.05)
            client.close()
            check_let_go(agent, program, target)
        # The last of them may have been read only now, and be on its way out.
        eventually(lambda: "scan" in agent.scan(target.pid), "the target stays busy")


@suite.test("an agent that is told to end lets everything go first")
def _():
    program = demo()
    with Fixture([program]) as target, unharmed(target.pid):
        for turn in range(repeat_count(10, 100)):
            with Agent() as agent:
                agent.send_scan(target.pid, mode=("MODE_FORK", "MODE_STOP")[turn % 2])
                time.sleep(random.random() * 0.05)
            eventually(lambda: processes_of(program) == {target.pid}, "a snapshot is left")


# ---- deaths ----

def kill_during_scan(agent, target, role, mode):
    request = agent.send_scan(target.pid, mode=mode)
    with contextlib.suppress(AssertionError):
        pid = eventually(lambda: agent.helpers(role), "none", 0.5).pop()
        time.sleep(random.random() * 0.03)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    answer = agent.client.answer(request)
    return answer["failure"]["code"] if "failure" in answer else "ok"


def check_deaths(role, codes):
    program = demo()
    seen = {}
    with Agent() as agent, Fixture([program]) as target, unharmed(target.pid):
        for turn in range(repeat_count(40, 1000)):
            code = kill_during_scan(agent, target, role, ("MODE_FORK", "MODE_STOP")[turn % 2])
            seen[code] = seen.get(code, 0) + 1
            # the answer says that the target is as it was: nothing is waited for
            check_equal(processes_of(program), {target.pid}, "processes")
            check_equal(procfs.children(target.pid), set(), "children of the target")
            check(procfs.has_no_tracer(target.pid), "the target is traced")
            agent.check_idle()
        note(seen)
        check(set(seen) <= {"ok", *codes}, f"failures {seen}")
        check(set(seen) - {"ok"}, "no scan was hit")
        check_scanned(agent.scan(target.pid))


@suite.test("a keeper that is killed is followed by one that collects, before the answer comes")
def _():
    check_deaths("keeper", {"FAILURE_INTERNAL"})


@suite.test("a decoder that is killed takes nothing along but its result")
def _():
    check_deaths("decoder", {"FAILURE_OUT_OF_MEMORY"})


@suite.test("an internal failure has an id that is in the log")
def _():
    with Agent() as agent, Fixture([demo()]) as target:
        request = agent.send_scan(target.pid)
        pid = agent.freeze("decoder")
        os.kill(pid, signal.SIGUSR1)
        os.kill(pid, signal.SIGCONT)
        failure = check_failure(agent.client.answer(request), "INTERNAL", "under id ")
        identifier = failure["message"].decode().split("under id ")[1]
        check(f"id={identifier} " in agent.log(), f"no {identifier} in the log")


@suite.test("a target that ends during its scan is answered, and nothing of ours outlives it")
def _():
    program = demo()
    seen = {}
    with Agent() as agent:
        for turn in range(repeat_count(20, 300)):
            with Fixture([program]) as target:
                request = agent.send_scan(target.pid, mode=("MODE_FORK", "MODE_STOP")[turn % 2])
                time.sleep(random.random() * 0.03)
                os.kill(target.pid, signal.SIGKILL)
                check_equal(target.process.wait(5), -signal.SIGKILL, "exit status")
                answer = agent.client.answer(request)
            code = answer["failure"]["code"] if "failure" in answer else "ok"
            seen[code] = seen.get(code, 0) + 1
            eventually(lambda: not processes_of(program), "a snapshot is left")
            agent.check_idle()
        note(seen)
        check(set(seen) <= {"ok", "FAILURE_PROCESS_EXITED", "FAILURE_NO_SUCH_PROCESS"},
              f"failures {seen}")


@suite.test("many askers at once get their own answers")
def _():
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent("min_stop_interval = 0\nmax_scans = 8\n"))
        targets = [stack.enter_context(Fixture([demo()])) for _ in range(3)]
        wrong = []

        def ask(target):
            client = agent.session()
            for _ in range(5):
                answer = client.answer(agent.send_scan(target.pid, client))
                if answer.get("scan", {}).get("identity", {}).get("pid") != target.pid:
                    wrong.append(answer)
                if "process_list" not in client.ask("list_processes"):
                    wrong.append("no list")
            client.close()

        askers = [threading.Thread(target=ask, args=(target,)) for target in targets]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        # under load a thread may take longer to stop than it is waited for
        check_equal([answer for answer in wrong if "failure" not in answer or
                     answer["failure"]["code"] not in ("FAILURE_BUSY", "FAILURE_NOT_STOPPABLE")],
                    [], "answers")


suite.run()
