#!/usr/bin/env python3
"""Takes threads through the parts of the runtime in which nothing is where it should be, one
instruction at a time, and scans at each: whatever a goroutine holds is live, and no more."""

import json
import subprocess

import gobuild
import harness
from harness import Fixture, build_fixture
from tap import Suite, check, check_equal, note

ENTRIES = harness.repeat_count(1, 2)
STEPS = harness.repeat_count(1500, 2500)  # from one entry, at most
ROUNDS = 8  # a signal or an assist may fill a passage that should have shown something else
EVERY = harness.repeat_count(20, 1)  # instruction of what is called on the way

# What must be gone through: functions that do it, of which a runtime has one or another, with
# their caller where it matters, and a star where goroutines of the runtime's own may be who does it;
# and how many different instructions of them must have been met.
STACKS = {
    "gogo": (["runtime.gogo", "gogo"], 10),
    "mcall": (["runtime.mcall"], 15),
    "morestack": (["runtime.morestack"], 15),
    "stack growth": (["runtime.newstack", "runtime.copystack<runtime.newstack"], 60),
    "stack shrink": (["*runtime.copystack<runtime.shrinkstack"], 40),
    "write barrier": (["runtime.gcWriteBarrier", "gcWriteBarrier"], 10),
    "flush of write barriers": (["runtime.wbBufFlush"], 10),
    "copy of pointers": (["runtime.wbMove", "runtime.typedmemmove"], 6),
    "clearing of pointers": (["runtime.wbZero", "runtime.typedmemclr"], 6),
    "growth of a map": (["runtime.hashGrow", "runtime.evacuate_fast64",
                         "internal/runtime/maps.(*table).rehash",
                         "internal/runtime/maps.(*Map).growToTable"], 10),
    "allocation": (["runtime.mallocgc"], 20),
    "allocation of small objects": (["runtime.mallocgcSmallScanHeader", "runtime.nextFreeFast",
                                     "runtime.mallocgcSmallScanNoHeader",
                                     "runtime.mallocgcSmallScanNoHeaderSC4",
                                     "runtime.(*mcache).nextFree"], 15),
    "allocation of large objects": (["runtime.mallocgcLarge", "runtime.largeAlloc",
                                     "runtime.(*mcache).allocLarge"], 15),
}

# Parts of a collection, with the phase that it is in at their first instruction.
COLLECTION = {
    "marking": (["*runtime.gcDrain"], 10, "mark"),
    "an assist": (["*runtime.gcAssistAlloc1"], 10, "mark"),
    "mark termination": (["*runtime.gcMark"], 10, "mark termination"),
    "the beginning of a sweep": (["*runtime.gcSweep"], 10, "off"),
    "the sweep of a span": (["*runtime.(*mspan).sweep", "*runtime.(*sweepLocked).sweep"], 30, "off"),
}

suite = Suite()


class Passage:
    """What was seen from entries of one function on."""

    def __init__(self, quest):
        self.quest, self.function = quest, quest.lstrip("*").partition("<")[0]
        self.entries, self.scans, self.walkable = 0, 0, 0
        self.places, self.first_phases = set(), set()

    def add(self, scan):
        self.scans += 1
        self.walkable += scan["walkable"]
        if scan["in"] == self.function:
            self.places.add(scan["pc"])
        if scan["step"] == 0:
            self.entries += 1
            check(scan["of_program"] or self.quest[0] == "*", f"{self.quest}: not the program's")
            self.first_phases.add(scan["phase"])


def check_scan(scan, sizes, watched):
    """One scan, at one instruction."""
    where = f"{scan['in']} at {scan['pc']:#x}, phase {scan['phase']}"
    for size, live in zip(sizes, scan["live"]):
        limits = watched[size]
        check(live >= limits["least"], f"{where}: {limits['what']} is lost: {live} are live")
        # A stack that is taken whole, word by word, has what was left over, too.
        check(live <= limits["most"] or scan["conservative"],
              f"{where}: {limits['what']} stays: {live} are live")
    check_equal(scan["free_slot_hits"], 0, f"{where}: exact pointers to free slots")
    check_equal(scan["skipped"], 0, f"{where}: stacks that could not be read")
    check_equal(scan["self_check"], "ok", f"{where}: self check")


def walk(target, entries, quests):
    """Every scan on the way through these functions is checked; the Passages of all."""
    watched = target.hello
    command = [harness.program("tests/support/instruction_facts"), target.pid, entries, STEPS,
               EVERY, ",".join(watched), *quests]
    passages = []
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            fact = json.loads(line)
            if "quest" in fact:
                passages.append(Passage(fact["quest"]))
            elif "step" in fact:
                check_scan(fact, list(watched), watched)
                passages[-1].add(fact)
    check_equal(process.returncode, 0, "exit status of instruction_facts")
    return passages


def start(version, experiment=""):
    return Fixture([build_fixture("instructions", version, experiment)], env={"GOGC": "5"})


class Way:
    """All passages through what must be gone through."""

    def __init__(self, functions, least, *phase):
        self.functions, self.least, self.phase = functions, least, set(phase)
        self.met = []

    def places(self):
        return len(set().union(*(passage.places for passage in self.met)))

    def describe(self):
        scans, walkable = (sum(getattr(passage, what) for passage in self.met)
                           for what in ("scans", "walkable"))
        return (f"{sum(p.entries for p in self.met)} entries, {self.places()} instructions of its "
                f"own, {scans} scans, {walkable} where the keeper stops")


def check_ways(version, experiment, wanted):
    ways = {what: Way(*how) for what, how in wanted.items()}
    with start(version, experiment) as target:
        for _ in range(ROUNDS):
            missing = [way for way in ways.values() if way.places() < way.least]
            quests = {quest: way for way in missing for quest in way.functions}
            for passage in walk(target, ENTRIES, quests) if missing else []:
                quests[passage.quest].met.append(passage)
    for what, way in ways.items():
        note(f"{what}: {way.describe()}")
        check(way.places() >= way.least, f"{what}: too few instructions were met")
        if way.phase:
            check_equal(set().union(*(p.first_phases for p in way.met)), way.phase,
                        f"{what}: phase at its first instruction")


def add_tests(version, experiment):
    name = gobuild.variant_name(version, experiment)

    @suite.test(f"{name}: nothing is lost at any instruction that moves or switches a stack")
    def _():
        check_ways(version, experiment, STACKS)

    @suite.test(f"{name}: nothing is lost at any instruction of a collection")
    def _():
        check_ways(version, experiment, COLLECTION)


for variant in gobuild.VARIANTS:
    if harness.STRESS or variant in [("1.19", ""), ("1.24", ""), ("1.27", "")]:
        add_tests(*variant)

suite.run()
