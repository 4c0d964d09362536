#!/usr/bin/env python3
"""Programs that are another all the time, under one pid or many, scanned over and over with our own
processes killed in every tenth scan: what begins finds ports, locks and descriptors as if nobody
were there, what ends does so as it would have, and nothing of ours is left."""

import ctypes
import fcntl
import json
import os
import pathlib
import struct
import tempfile
import threading

import procfs
from harness import STRESS, Fixture, repeat_count
from siege import CROWDED, Siege, free_low_port
from tap import Suite, check, check_equal, note
from victim import leftovers

SCANS = repeat_count(20, 1000)
LATER_SCANS = 200  # until one comes too late
STRESS_VERSIONS = ["1.19", "1.24", "1.27"]
PR_SET_CHILD_SUBREAPER = 36

# What may be said of a program that is no longer what it was.
CHANGED = {"process_exited", "process_changed", "no_such_process"}

suite = Suite()


# ---- a program that runs itself again ----

class Generations:
    """Reads what every generation has to say, each in a line. A conflict is a port or a lock that
    it does not get; it could be had by nobody but a snapshot."""

    def __init__(self, target):
        self.target, self.last, self.problems, self.conflicts = target, -1, [], []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        expected = 0
        for line in self.target.process.stdout:
            said = json.loads(line)
            if any(error.startswith(("flock:", "listen:")) for error in said["errors"]):
                self.conflicts.append(said)
            elif said["errors"]:
                self.problems.append(said)
            if said["generation"] != expected:
                self.problems.append(f"{said} where {expected} was expected")
            expected = said["generation"] + 1
            self.last = said["generation"]

    def check(self, instant_deaths):
        """A keeper that dies in the very call of a snapshot leaves a child that ends by itself: an
        exec before that meets it."""
        check_equal(self.problems[:5], [], "what went wrong in the target")
        check(len(self.conflicts) <= instant_deaths, f"conflicts: {self.conflicts}")
        check_equal(self.target.process.poll(), None, "exit status of the target")

    def check_goes_on(self):
        before = self.last
        procfs.eventually(lambda: self.last > before + 1, f"no generation after {before}", 60)


def lock_owner(path):
    """The process that holds a record lock on the file, 0 for none."""
    with open(path, "rb+") as file:
        asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked)[:28])
        return 0 if kind == fcntl.F_UNLCK else pid


def besiege_exec(version, every_ms, roles, flags):
    """Scans it as it runs on, some with the snapshot held until another has taken its place."""
    with Siege(f"exec {version} {every_ms} ms {roles} {flags}", SCANS // 2, roles, young=True) \
            as siege, tempfile.TemporaryDirectory(prefix="goheapd-torn-") as folder, \
            Fixture([siege.program(version, flags=flags), "exec", folder], ready=False,
                    env={"BUSY_PORT": str(free_low_port(siege.random)),
                         "BUSY_EVERY_MS": str(every_ms)}) as target:
        generations = Generations(target)
        while_held = generations.check_goes_on if every_ms > 50 else None
        for turn in siege.turns():
            siege.scan(target.pid, CROWDED | CHANGED, while_held)
            siege.check_untouched(target.pid)
            generations.check(siege.instant_deaths())
            if turn == 5:
                siege.remember_ourselves()
        # Of few scans all may be in time, where the machine gives the program little of itself.
        for _ in range(LATER_SCANS):
            if siege.answers["process_exited"]:
                break
            siege.scan(target.pid, CROWDED | CHANGED, while_held)
            siege.check_untouched(target.pid)
        generations.check_goes_on()
        generations.check(siege.instant_deaths())
        note(f"{generations.last} generations, {len(generations.conflicts)} with a conflict")
        if not siege.instant_deaths():
            check_equal(lock_owner(pathlib.Path(folder, "kept-lock")), target.pid,
                        "owner of the lock")
        check(siege.answers["process_exited"] > 0, siege.answers)


def add_exec_test(version, every_ms, roles, name="", flags=()):
    @suite.test(f"go{version}{name}: a program that runs itself again every {every_ms} ms, "
                f"{' and '.join(roles)} killed")
    def _():
        besiege_exec(version, every_ms, roles, flags)


# The one seldom lives to see a snapshot of itself, the other does.
for go in STRESS_VERSIONS if STRESS else ["1.24"]:
    add_exec_test(go, 50, ("keeper", "decoder"))
    add_exec_test(go, 400, ("decoder",))
add_exec_test("1.26", 400, ("keeper", "decoder"), ", position independent", ("-buildmode=pie",))


# ---- a program that ends ----

def adopt():
    """What a target leaves behind becomes ours, as it would init's."""
    check_equal(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0, "prctl")


def bury_orphans(known):
    """Snapshots whose program has ended: dead already, or very soon."""
    orphans = procfs.children(os.getpid()) - known
    for pid in orphans:
        procfs.eventually(lambda pid=pid: os.waitpid(pid, os.WNOHANG)[0] == pid,
                          f"process {pid} lives on")
    return len(orphans)


def live(siege, turns, target):
    """Scans the program until it has ended or no turns are left; how it ends is its own affair."""
    for _ in turns:
        siege.scan(target.pid, CROWDED | CHANGED)
        if target.process.poll() is not None:
            break
        siege.check_untouched(target.pid)
    check_equal(target.process.wait(30), target.hello["status"], "exit status")


def besiege_exit(version):
    adopt()
    orphans = lives = conflicts = 0
    with Siege(f"exit {version}", SCANS, young=True) as siege, \
            tempfile.TemporaryDirectory(prefix="goheapd-torn-") as folder:
        program, turns = siege.program(version), siege.turns()
        port = free_low_port(siege.random)
        while siege.asked < SCANS or siege.kills_due:
            seed = siege.random.randrange(1 << 31)
            life_ms = int(2000 * siege.length)  # so that some scans are in time and some are not
            with Fixture([program, "exit", folder],
                         env={"BUSY_PORT": str(port), "BUSY_SEED": str(seed),
                              "BUSY_LIFE_MS": str(life_ms)}) as target:
                live(siege, turns, target)
            conflicts += bool(target.hello["errors"])
            check(conflicts <= siege.instant_deaths(), target.hello["errors"])
            orphans += bury_orphans({siege.daemon.process.pid})
            lives += 1
            if lives == 2:
                siege.remember_ourselves()
        note(f"{lives} lives, {orphans} orphans, {conflicts} conflicts")
        check(siege.answers["200"] > 0, siege.answers)
        check(siege.answers["process_exited"] > 0, siege.answers)


def add_exit_test(version):
    @suite.test(f"go{version}: a program that ends at random")
    def _():
        besiege_exit(version)


for go in STRESS_VERSIONS if STRESS else ["1.27"]:
    add_exit_test(go)


suite.run()
