"""Scans of a program over and over, as a client of the daemon asks for them, where keeper or decoder
is killed at a random instant of every tenth. Whatever the answer, the program must be as it was."""

import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import tempfile
import threading
import time

import procfs
from harness import Daemon, build_fixture, check_sums, find_node, need_root, processes_of
from tap import check, check_equal, note
from victim import leftovers

SEED = os.environ.get("GOHEAPD_SEED", "goheapd")
KILL_EVERY = 10
HOLD_EVERY = 25

# The contract's codes with their status.
STATUS_OF = {
    "bad_request": 400, "too_many_labels": 400, "empty_label_key": 400, "label_too_long": 400,
    "forbidden": 403, "attach_denied": 403, "no_such_process": 404, "not_found": 404,
    "already_traced": 409, "ambiguous": 409, "process_changed": 409, "not_stoppable": 409,
    "fork_unsafe": 409, "process_exited": 410, "not_go": 422, "unsupported_arch": 422,
    "unsupported_runtime": 422, "no_debug_info": 422, "corrupt_target": 422,
    "label_recovery_failed": 422, "string_missing": 422, "busy": 429, "agent_unavailable": 503,
    "out_of_memory": 503, "timeout": 504, "pause_exceeded": 504, "internal": 500,
}

# What a machine with too much to do may answer, of a program that is alive and well.
CROWDED = {"not_stoppable", "pause_exceeded", "fork_unsafe"}

# What our death in the middle may answer besides.
KILLED = {"internal", "out_of_memory", "agent_unavailable"}

ENDPOINTS = ["memusage"] * 5 + ["goroutines", "mappings"]
MODES = ["auto", "fork", "fork", "stop"]
DEPTHS = ["full", "full", "census"]
EXTRAS = ["", "", "&by=tenant", "&by=@entry", "&label=tenant=none", "&detail=1"]

# When to kill: at any instant, or soon after something was seen.
MOMENTS = ["any", "any", "threads stopped", "snapshot lives"]


@contextlib.contextmanager
def process_handle(pid):
    """For signals that reach that process or none: pids come around quickly here."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def free_low_port(chosen):
    """A port that no client is given, so that a program can have it again and again."""
    while True:
        port = chosen.randrange(10000, 30000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def role_of(pid):
    """keeper or decoder, or None for any other process."""
    with contextlib.suppress(OSError):
        for argument in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            if argument.startswith(b"--role="):
                return argument.removeprefix(b"--role=").decode()
    return None


def is_traced(pid):
    with contextlib.suppress(OSError):
        return procfs.status(pid)["TracerPid"] != "0"
    return False


def has_snapshot(pid):
    with contextlib.suppress(OSError):
        return bool(leftovers(pid))
    return False


def check_apart(pid):
    """A snapshot has none of the program's descriptors."""
    def apart():
        return all(state == "Z" or not os.listdir(f"/proc/{child}/fd")
                   for child, state in leftovers(pid))

    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end any time
        procfs.eventually(apart, "the snapshot holds descriptors")


def check_answer(found, young):
    """What holds for every complete answer, whatever the program was doing. A young one may have
    been stopped before its runtime had made its first goroutine, which the self check notices."""
    trust = found["scan"]["trust"]
    text = json.dumps(found["scan"])
    check_equal(trust["free_slot_hits"], None if found["scan"]["depth"] == "census" else 0,
                f"exact pointers to free slots; {text}")
    if not young or trust["goroutines"]:
        check_equal(trust["self_check"], "ok", f"self check; {text}")
    stacks = trust["exact_stacks"] + trust["conservative_stacks"] + trust["skipped_stacks"]
    check_equal(stacks, trust["goroutines"], f"stacks; {text}")
    if "memory" in found:
        check_memusage(found)


def check_memusage(found):
    check_sums(found["memory"])
    if found["scan"]["depth"] == "census":
        check_equal([found["heap"][key] for key in ("live_bytes", "garbage_bytes")], [None, None],
                    "live and garbage of a census")
        return
    heap, labels = found["heap"], found["labels"]
    for kind in ("live", "finalizable", "garbage"):
        check_equal(find_node(found["memory"], kind)["bytes"], heap[f"{kind}_bytes"], kind)
    shares = [party["share_bytes"] for party in
              [*labels["sets"], labels["unlabelled"], labels["system"], labels["global"]]]
    check_equal(sum(shares), heap["live_bytes"], "sum of the shares")


class Siege:
    """One daemon, and what came of all that was asked of it."""

    def __init__(self, name, count, roles=("keeper", "decoder"), young=False):
        need_root()
        self.name, self.count, self.roles, self.young = name, count, roles, young
        self.random = random.Random(f"{SEED} {name}")
        self.asked, self.kills_due, self.holds_due, self.length = 0, 0, 0, 0.1
        self.answers, self.kills = collections.Counter(), collections.Counter()
        self.after_kills, self.warnings = collections.Counter(), collections.Counter()
        self.held = 0
        self.folder = tempfile.TemporaryDirectory(prefix="goheapd-siege-")
        root = pathlib.Path(self.folder.name)
        root.chmod(0o755)
        (root / "config").write_text("min_stop_interval = 0\n")
        self.daemon = Daemon("--config", root / "config")

    def __enter__(self):
        self.agent = self.find_agent()
        self.descriptors = None
        return self

    def __exit__(self, kind, error, traceback):
        note(f"{self.name}, seed {SEED}: {self.asked} scans: {dict(self.answers)}")
        note(f"killed: {dict(self.kills)}, answers then: {dict(self.after_kills)}; "
             f"held: {self.held}; warnings: {dict(self.warnings)}")
        try:
            if not kind:
                self.check_ourselves()
        finally:
            self.daemon.__exit__(kind, error, traceback)
            self.folder.cleanup()

    def find_agent(self):
        for pid in self.daemon.descendants():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").endswith("/goheap-agent"):
                    return pid
        raise AssertionError("there is no agent")

    def turns(self):
        """Numbers of the scans, and of some more for kills and holds that are still due."""
        yield from range(self.count)
        for extra in range(self.count):
            if self.kills_due or self.holds_due:
                yield self.count + extra

    def program(self, version, **build):
        """The fixture as a file of this siege's own: nobody else runs it."""
        return shutil.copy(build_fixture("busy", version, **build), self.folder.name)

    # ---- one scan ----

    def path(self, pid, **fixed):
        endpoint = self.random.choice(ENDPOINTS)
        query = {"mode": self.random.choice(MODES), "depth": self.random.choice(DEPTHS), **fixed}
        extra = self.random.choice(EXTRAS) if endpoint == "memusage" else ""
        parameters = "&".join(f"{key}={value}" for key, value in query.items())
        return f"/pid/{pid}/{endpoint}?format=json&max_pause=10&{parameters}{extra}"

    def take(self, path, accepted, into):
        """Asks and judges what comes."""
        began = time.monotonic()
        answer = self.daemon.get(path)
        if answer.status == 200:
            found = answer.json()
            check_answer(found, self.young)
            for warning in found["scan"]["warnings"]:
                self.warnings[warning["code"]] += 1
            self.length += 0.1 * (time.monotonic() - began - self.length)
            into["200"] += 1
            return
        code = answer.error_code()
        into[code] += 1
        check_equal(answer.status, STATUS_OF.get(code), f"status of {answer.text()}")
        check(code in accepted, f"{path}: {answer.text()}")

    def scan(self, pid, accepted, while_held=None):
        """One scan of a program: as it comes, or with one of us killed, or with the snapshot held
        for as long as while_held takes. What was missed is tried again at the next scan."""
        self.asked += 1
        if self.asked % 200 == 0:
            note(f"{self.name}: {self.asked} scans: {dict(self.answers)}")
        if self.asked <= self.count:
            self.kills_due += self.asked % KILL_EVERY == 0
            self.holds_due += while_held is not None and self.asked % HOLD_EVERY == 1
        if self.kills_due:
            self.scan_and_kill(pid, accepted)
        elif self.holds_due:
            self.disturb(self.path(pid, mode="fork", depth="full"), accepted, self.answers,
                         lambda done: self.hold(pid, done, while_held))
        else:
            self.take(self.path(pid), accepted, self.answers)

    def scan_and_kill(self, pid, accepted):
        role, moment = self.random.choice(self.roles), self.random.choice(MOMENTS)
        mode = {"mode": "fork"} if moment == "snapshot lives" else {}
        self.disturb(self.path(pid, **mode), accepted | KILLED, self.after_kills,
                     lambda done: self.kill(pid, done, role, moment))

    def disturb(self, path, accepted, into, act):
        """Does something while a scan is under way in another thread."""
        errors = []

        def ask():
            try:
                self.take(path, accepted, into)
            except BaseException as error:  # it is this thread's to report
                errors.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            act(lambda: not asking.is_alive())
        finally:
            asking.join()
        if errors:
            raise errors[0]

    def find_role(self, role, done):
        """A process of that role, which is there soon after the question."""
        children = pathlib.Path(f"/proc/{self.agent}/task/{self.agent}/children")
        while not done():
            for pid in map(int, children.read_text().split()):
                if role_of(pid) == role:
                    return pid
            time.sleep(0.0005)
        return None

    def kill(self, target, done, role, moment):
        delay = self.random.random() * (self.length if moment == "any" else 0.003)
        pid = self.find_role(role, done)
        seen = {"threads stopped": False, "snapshot lives": False}
        now, deadline = dict(seen), None
        while pid and not done():
            now = {"threads stopped": is_traced(target), "snapshot lives": has_snapshot(target)}
            seen = {key: seen[key] or now[key] for key in now}
            if deadline is None and (moment == "any" or now[moment]):
                deadline = time.monotonic() + delay
            if deadline is not None and time.monotonic() >= deadline:
                break
        if not pid:
            return
        with contextlib.suppress(ProcessLookupError), process_handle(pid) as handle:
            if role_of(pid) == role:
                self.kills_due -= 1
                self.count_kill(role, now, seen)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return
        self.kills[f"{role}: had ended"] += 1

    def count_kill(self, role, now, seen):
        where = [key for key, is_now in now.items() if is_now] or \
            ["after the stop" if any(seen.values()) else "before the stop"]
        self.kills[f"{role}: {where[0]}"] += 1

    def hold(self, target, done, while_held):
        """The decoder stands still while the snapshot lives, and the program must not notice."""
        decoder = self.find_role("decoder", done)
        while decoder and not done() and not has_snapshot(target):
            pass
        if not decoder or done():
            return
        with contextlib.suppress(ProcessLookupError), process_handle(decoder) as handle:
            if role_of(decoder) == "decoder":
                self.hold_still(target, handle, while_held)

    def hold_still(self, target, handle, while_held):
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        try:
            if has_snapshot(target) and not is_traced(target):
                self.held += 1
                self.holds_due -= 1
                check_apart(target)
                while_held()
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGCONT)

    def instant_deaths(self):
        """How many keepers may have died between a clone and their next step."""
        return self.kills["keeper: threads stopped"]

    # ---- afterwards ----

    def check_untouched(self, pid):
        """Right after an answer: no tracer, nothing stopped, no child of ours, dead or alive."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end any time
            check_equal(leftovers(pid), [], "children of our making")
            for fields in procfs.thread_statuses(pid):
                check_equal(fields["TracerPid"], "0", f"tracer of {fields['Name']}")
                check(fields["State"][0] not in "tT", f"thread {fields['Pid']}: {fields['State']}")

    def count_descriptors(self):
        return {pid: len(os.listdir(f"/proc/{pid}/fd"))
                for pid in (self.agent, self.daemon.process.pid)}

    def remember_ourselves(self):
        """Once all that is made once is there."""
        self.descriptors = self.settled_descriptors()

    def settled_descriptors(self):
        procfs.eventually(lambda: not procfs.children(self.agent), "a helper does not end", 30)
        counts = [self.count_descriptors()]
        while len(counts) < 2 or counts[-1] != counts[-2]:
            time.sleep(0.3)
            counts.append(self.count_descriptors())
        return counts[-1]

    def check_ourselves(self):
        """The same agent, nothing below it, nothing open that was not before, no bad word, and no
        process of the program's."""
        check_equal(processes_of(pathlib.Path(self.folder.name, "busy")), set(), "processes left")
        check_equal(self.find_agent(), self.agent, "agent")
        if self.descriptors:
            check_equal(self.settled_descriptors(), self.descriptors, "descriptors of ours")
        for line in self.daemon.log().splitlines():
            check("could not be collected" not in line and "died of signal" not in line, line)
