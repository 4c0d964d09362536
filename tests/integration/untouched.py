#!/usr/bin/env python3
"""A scan leaves its target's memory as it was: resident pages, page faults, huge pages. In mode fork
the target pays for each page that it writes while the snapshot lives, and for no other."""

import contextlib
import pathlib
import struct
import tempfile

import procfs
from harness import STRESS, Daemon, Fixture, build_fixture
from procfs import PAGE_SIZE
from tap import Skip, Suite, check, check_equal, note

VERSIONS = (["1.15", "1.19", "1.21", "1.22", "1.23", "1.24", "1.25", "1.26", "1.27"] if STRESS else
            ["1.15", "1.22", "1.27"])
SCANS = 10
MIB = 1 << 20

# Pages: what the runtime's own threads write or take by themselves between two looks, stacks and
# timers mostly. The fixture has 16,000 of its own that a scan could touch.
STILL = 100
WRITTEN = 500  # that the fixture writes over and over, when told to

THP = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")

suite = Suite()


@contextlib.contextmanager
def daemon(**keys):
    """One that may stop a target as often as it is asked to, with these keys in its configuration."""
    with tempfile.TemporaryDirectory(prefix="goheapd-untouched-") as folder:
        pathlib.Path(folder).chmod(0o755)  # the daemon gives up root
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("".join(f"{key} = {value}\n" for key, value in
                                  {"min_stop_interval": 0, **keys}.items()))
        with Daemon("--config", config) as running:
            yield running


def faults(pid):
    """(minor, major) of the process, and of its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    minor, child_minor, major, child_major = map(int, fields[7:11])
    return (minor, major), (child_minor, child_major)


def resident_pages(pid):
    """Exactly, which statm is not."""
    return sum(fields["Rss"] for *_, fields in procfs.smaps(pid)) // PAGE_SIZE


def huge_bytes(pid):
    return sum(fields["AnonHugePages"] for *_, fields in procfs.smaps(pid))


def present_pages(pid, address, size):
    """Those of a range that have ever been touched."""
    with open(f"/proc/{pid}/pagemap", "rb") as file:
        file.seek(address // PAGE_SIZE * 8)
        entries = struct.unpack(f"{size // PAGE_SIZE}Q", file.read(size // PAGE_SIZE * 8))
    return sum(entry >> 62 != 0 for entry in entries)


def untouched_names(version):
    """The ranges that the runtime leaves alone: go1.24 clears every large object with pointers
    (runtime/malloc.go, mallocgcLarge)."""
    return ("mapping", "bytes") if version == "1.24" else ("mapping", "bytes", "pointers")


def never_touched(target):
    """How many pages of each range are there all the same: the runtime may have used some before."""
    return {name: present_pages(target.pid, target.hello[name], target.hello[f"{name}_size"])
            for name in ("mapping", "bytes", "pointers")}


def scan_many(server, target, mode, **parameters):
    """Ten scans; the modes that were taken, and their warnings."""
    scans = [server.scan(target.pid, mode=mode, **parameters)["scan"] for _ in range(SCANS)]
    return ({scan["mode"] for scan in scans},
            [warning for scan in scans for warning in scan["warnings"]])


def add_tests(version):
    def still():
        return Fixture([build_fixture("untouched", version), "still", "100"])

    for mode in ("fork", "stop"):
        @suite.test(f"go{version}, mode {mode}: ten scans leave memory as it was")
        def _(mode=mode):
            with daemon() as server, still() as target:
                server.scan(target.pid, mode=mode)  # the first fork has page tables to make
                before = resident_pages(target.pid), faults(target.pid), never_touched(target)
                check_equal(before[2]["mapping"], 0, "pages that the fixture itself touched")
                check(max(before[2][name] for name in untouched_names(version)) < 2000,
                      f"{before[2]} of 65,536 and 16,384 pages")
                check_equal(scan_many(server, target, mode)[0], {mode}, "modes taken")
                after = resident_pages(target.pid), faults(target.pid), never_touched(target)
                note(f"resident {before[0]} and {after[0]}, faults {before[1]} and {after[1]}")
                check_equal(after[2], before[2], "pages of what nobody touches")
                check(abs(after[0] - before[0]) <= STILL, "resident pages have changed")
                check_equal(after[1][0][1], before[1][0][1], "major faults")
                check(after[1][0][0] - before[1][0][0] <= SCANS * STILL, "faults without a write")
                if mode == "stop":
                    check_equal(after[1][1], before[1][1], "faults of children")

    @suite.test(f"go{version}: each page written costs one fault in mode fork, and none in mode stop")
    def _():
        with daemon() as server, still() as target:
            target.command(str(WRITTEN))
            for mode, expected in (("stop", 0), ("fork", SCANS * WRITTEN)):
                server.scan(target.pid, mode=mode)
                before = resident_pages(target.pid), faults(target.pid)[0]
                scan_many(server, target, mode)
                after = resident_pages(target.pid), faults(target.pid)[0]
                grown = after[1][0] - before[1][0]
                note(f"mode {mode}: {grown} faults in {SCANS} scans")
                check(expected <= grown <= expected + SCANS * STILL, f"{grown} faults")
                check_equal(after[1][1], before[1][1], "major faults")
                check(abs(after[0] - before[0]) <= STILL, f"resident pages {before[0]}, {after[0]}")


for each in VERSIONS:
    add_tests(each)


def huge():
    """A program most of whose memory is in huge pages."""
    if not THP.exists() or "[never]" in THP.read_text():
        raise Skip("no transparent huge pages")
    target = Fixture([build_fixture("untouched", "1.26"), "huge"])
    if huge_bytes(target.pid) < 128 * MIB:
        target.close()
        raise Skip("no huge pages were to be had")
    return target


@suite.test("huge pages tip mode auto to a stop, which leaves them whole, and says why")
def _():
    with daemon() as server, huge() as target:
        before = huge_bytes(target.pid), resident_pages(target.pid), faults(target.pid)[0]
        modes, warnings = scan_many(server, target, "auto", max_pause=10)
        check_equal(modes, {"stop"}, "modes taken")
        check_equal(len(warnings), SCANS, "warnings")
        for warning in warnings:
            check_equal(warning["code"], "stop_mode", "code of the warning")
            check("huge_page_weight" in warning["message"], warning["message"])
            check(f"{before[0] // MIB} MiB of huge pages" in warning["message"], warning["message"])
        cost = server.get(f"/pid/{target.pid}?format=json").json()["cost"]
        note(cost)
        after = huge_bytes(target.pid), resident_pages(target.pid), faults(target.pid)[0]
        check_equal(after[0], before[0], "AnonHugePages")
        check(abs(after[1] - before[1]) <= STILL, f"resident pages {before[1]}, {after[1]}")
        check(after[2][0] - before[2][0] <= SCANS * STILL, f"faults {before[2]}, {after[2]}")


@suite.test("mode fork is taken of huge pages all the same, and leaves those whole that are not written")
def _():
    with daemon() as server, huge() as target:
        before = huge_bytes(target.pid)
        modes, warnings = scan_many(server, target, "fork")
        check_equal((modes, warnings), ({"fork"}, []), "modes and warnings")
        check_equal(huge_bytes(target.pid), before, "AnonHugePages")


@suite.test("the operator says what huge pages are worth")
def _():
    with huge() as target:
        for weight, mode in ((0, "fork"), (0.001, "fork"), (0.1, "stop"), (1, "stop")):
            with daemon(huge_page_weight=weight) as server:
                taken = server.scan(target.pid, mode="auto", max_pause=10)["scan"]["mode"]
                check_equal(taken, mode, f"mode with a weight of {weight}")


@suite.test("a stop that would take too long for its goroutines is refused before it begins")
def _():
    goroutines = 60000
    with daemon() as server, \
            Fixture([build_fixture("untouched", "1.26"), "still", str(goroutines)]) as target:
        answer = server.get(f"/pid/{target.pid}/memusage?format=json&mode=stop&max_pause=0.25")
        check_equal((answer.status, answer.error_code()), (504, "pause_exceeded"), "answer")
        check("would be stopped for about" in answer.text(), answer.text())
        check("a process was stopped" not in server.log(), "it was stopped")
        stopped = server.scan(target.pid, mode="stop", max_pause=60)["scan"]["pause_seconds"]
        note(f"a stop with {goroutines} goroutines took {stopped} s")


suite.run()
