#!/usr/bin/env python3
"""Programs whose runtime structures are damaged at random: a scan answers, or says what is wrong, in the
time and memory that the undamaged program takes, and changes nothing.

A seed is the version, the program and a number; GOHEAPD_SEED chooses the numbers' beginning, and
GOHEAPD_SEEDS how many there are, so that one failure can be repeated."""

import os
import pathlib
import tempfile
import time
import zlib

import damage
import procfs
from damage import damaged, open_memory, places_of
from harness import Daemon, Fixture, build_fixture, need_root, processes_of, repeat_count
from heapfacts import resume, stop
from tap import Suite, check, check_equal, note

MIB = 1 << 20
FIRST_SEED = int(os.environ.get("GOHEAPD_SEED", "1"))
SEED_COUNT = int(os.environ.get("GOHEAPD_SEEDS", repeat_count(10, 1000)))

# Everything that a scan can be asked for, between the seeds in turn.
QUESTIONS = [
    "memusage?mode=fork&by=@module&detail=1&label=tenant=t1",
    "memusage?mode=stop&by=tenant&label=tenant=t1",
    "goroutines?mode=stop&dead=1",
    "memusage?mode=stop&depth=census",
    "goroutines?mode=fork&dead=1",
    "mappings?mode=fork",
]
OVERVIEW = ""

# What may be wrong with a process whose structures contradict each other.
CODES = {
    (422, "corrupt_target"), (422, "unsupported_runtime"), (422, "label_recovery_failed"),
    (422, "string_missing"), (409, "fork_unsafe"), (409, "not_stoppable"),
}

suite = Suite()


class Patient:
    """A quiet program, stopped, with what its undamaged scans cost."""

    def __init__(self, daemon, target):
        self.daemon, self.target, self.pid = daemon, target, target.pid
        stop(self.pid)
        self.places = places_of(self.pid)
        self.seconds, self.peak = {}, {}
        for question in [*QUESTIONS, OVERVIEW]:
            begun = time.monotonic()
            status, answer = self.ask(question)
            check_equal(status, 200, f"undamaged {question}: {answer}")
            self.seconds[question] = time.monotonic() - begun
            self.peak[question] = answer.get("scan", {}).get("peak_memory_bytes", 0)

    def ask(self, question):
        query = ("&" if "?" in question else "?") + "format=json"
        if question != OVERVIEW:
            query += "&max_pause=30&timeout=60"
        answer = self.daemon.get(f"/pid/{self.pid}/{question}{query}")
        return answer.status, answer.json()

    def contents(self, memory):
        """A number for each page that is not empty (the kernel may make some up for a huge page), but
        for those of signal stacks, of which a snapshot may use the idle part."""
        idle = [(p.address, p.address + p.size) for p in self.places.get("signal_stack", [])]
        sums = {}
        for start, end, perms, name, fields in procfs.smaps(self.pid):
            if "w" not in perms or not fields.get("Rss") or name.startswith("["):
                continue
            for page in present_pages(self.pid, start, end):
                if not any(page < stop and page + procfs.PAGE_SIZE > at for at, stop in idle):
                    memory.seek(page)
                    data = memory.read(procfs.PAGE_SIZE)
                    if any(data):
                        sums[page] = zlib.crc32(data)
        return sums


def present_pages(pid, start, end):
    """Addresses of the pages of a mapping that were ever touched."""
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        pagemap.seek(start // procfs.PAGE_SIZE * 8)
        entries = pagemap.read((end - start) // procfs.PAGE_SIZE * 8)
    for at in range(0, len(entries), 8):
        if entries[at + 7] & 0xc0:
            yield start + at // 8 * procfs.PAGE_SIZE


def check_answer(patient, question, status, answer, seconds):
    code = (status, answer.get("error", {}).get("code"))
    check(status == 200 or code in CODES, f"{question}: {answer}")
    limit = 10 * patient.seconds[question] + 2
    check(seconds <= limit, f"{question}: took {seconds:.2f} s, at most {limit:.2f} is meant")
    if status == 200 and question != OVERVIEW:
        peak, limit = answer["scan"]["peak_memory_bytes"], 2 * patient.peak[question] + 64 * MIB
        check(peak <= limit, f"{question}: {peak >> 20} MiB at the peak, at most {limit >> 20}")
    return code


def check_seed(patient, memory, seed, found):
    with damaged(memory, patient.places, seed) as done:
        questions = [QUESTIONS[done.random.randrange(len(QUESTIONS))] for _ in range(2)]
        if seed % 8 == 0:
            questions.append(OVERVIEW)
        before = patient.contents(memory) if seed % 8 == 1 else None
        for question in questions:
            begun = time.monotonic()
            try:
                status, answer = patient.ask(question)
                code = check_answer(patient, question, status, answer, time.monotonic() - begun)
            except BaseException:
                note(f"seed {seed}: " + "; ".join(done.story))
                raise
            if status == 200 and question != OVERVIEW:
                code = (200, "ok" if answer["scan"]["trust"]["self_check"] == "ok" else "noticed")
            found[code] = found.get(code, 0) + 1
        if before:
            changed = set(before.items()) ^ set(patient.contents(memory).items())
            check(not changed, "pages of the target that have changed: "
                  f"{sorted({hex(page) for page, _ in changed})}")


def check_damaged(version, fixture, *arguments):
    need_root()
    program = build_fixture(fixture, version)
    found, failures = {}, []
    with tempfile.TemporaryDirectory(prefix="goheapd-damaged-") as folder:
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("min_stop_interval = 0\n")
        pathlib.Path(folder).chmod(0o755)
        with Daemon("--config", config) as daemon, Fixture([program, *arguments]) as target:
            patient = Patient(daemon, target)
            with open_memory(target.pid) as memory:
                for seed in range(FIRST_SEED, FIRST_SEED + SEED_COUNT):
                    try:
                        check_seed(patient, memory, seed, found)
                    except AssertionError as error:
                        note(f"seed {seed}: {error}")
                        failures.append(seed)
            check_equal(processes_of(program), {target.pid}, "processes of the target")
            resume(target.pid)
            if fixture == "oracle":
                check_equal(target.command("gc")["event"], "gc", "answer of the repaired program")
    note(f"{SEED_COUNT} seeds from {FIRST_SEED} on: {found}")
    check(not failures, f"{len(failures)} seeds failed: {failures[:50]}")


for one_version in ("1.19", "1.24", "1.27"):
    for program_arguments in (("oracle",), ("tenants", "shares")):
        suite.test(f"go{one_version}, {program_arguments[0]}: damaged at random")(
            lambda v=one_version, a=program_arguments: check_damaged(v, *a))

suite.run()
