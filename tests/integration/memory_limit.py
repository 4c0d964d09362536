#!/usr/bin/env python3
"""The memory limit of a scan: what does not fit is refused with a figure that is enough, and what fits is
scanned, for a heap of nothing but pointers as for ordinary ones, and with questions about objects."""

import re

from harness import Daemon, Fixture, build_fixture
from procfs import unharmed
from tap import Suite, check, check_equal, note

MIB = 1 << 20
GO = "1.26"
HEAP_MIB = 96
FIGURES = re.compile(r"needs at least (\d+) bytes of memory, and (\d+) are enough in any case; "
                     r"max_scan_memory is (\d+)")
PLAIN = re.compile(r"Without its questions about objects it needs at least (\d+)")
# By endpoint and parameters: whether the copy of what holds pointers is certain.
QUESTIONS = {
    ("histogram", ""): False,
    ("histogram", "retained=1"): False,
    ("profile", ""): False,
    ("profile", "sample=retained"): False,
    ("objects", "limit=3"): True,  # a first page keeps its scan
    ("dominators", ""): True,
    ("goroutines", "retained=1"): False,
    ("memusage", "detail=1"): False,
    ("memusage", "keep=60"): True,
}

suite = Suite()


def ask(target, memory=None, endpoint="memusage", **parameters):
    """The answer to one scan of a daemon of its own with that limit, and what it logged."""
    options = ["--max-scan-memory", str(memory)] if memory else []
    form = {} if endpoint == "profile" else {"format": "json"}
    query = "&".join(f"{key}={value}" for key, value in {**form, **parameters}.items())
    with Daemon(*options) as daemon:
        answer = daemon.get(f"/pid/{target.pid}/{endpoint}?max_pause=10&{query}")
        return answer, daemon.log()


def refused(target, memory, endpoint="memusage", **parameters):
    answer, log = ask(target, memory, endpoint, **parameters)
    check_equal(answer.status, 503, f"answer {answer.body[:300]!r} with a limit of {memory}")
    message = answer.text()  # of a profile it is text
    check("out_of_memory" in message, message)
    found = FIGURES.search(message)
    check(found, f"the message has no figures: {message}")
    least, enough, told = map(int, found.groups())
    check_equal(told, memory, "the limit that the message names")
    check(least <= enough and enough > memory, f"{message}")
    return least, enough, log


def scanned(target, memory=None, **parameters):
    answer, _ = ask(target, memory, **parameters)
    check_equal(answer.status, 200, f"{answer.body[:300]!r} with a limit of {memory}")
    return answer.json()


def forecast(target):
    with Daemon() as daemon:
        return daemon.get(f"/pid/{target.pid}?format=json").json()["cost"]["memory_bytes"]


def start(kind):
    return Fixture([build_fixture("heaps", GO), kind, HEAP_MIB])


def check_refused_and_enough(target, limit, whole):
    """A limit that does not do, and then the one that the refusal names."""
    least, enough, _ = refused(target, limit)
    peak = whole["scan"]["peak_memory_bytes"]
    note(f"limit {limit >> 20} MiB: at least {least >> 20}, enough {enough >> 20} MiB; "
         f"{peak >> 20} MiB without a limit")
    scan = scanned(target, enough)
    check_equal(scan["heap"]["live_bytes"], whole["heap"]["live_bytes"], "live bytes")
    check(scan["scan"]["peak_memory_bytes"] <= enough,
          f"{scan['scan']['peak_memory_bytes']} bytes at the peak, {enough} were said to be enough")
    return enough


@suite.test("a heap of pointers alone: forecast, refused, and scanned with what is said to be enough")
def _():
    with start("pointers") as target, unharmed(target.pid):
        whole = scanned(target)
        heap, peak = target.hello["heap"], whole["scan"]["peak_memory_bytes"]
        note(f"{peak >> 20} MiB at the peak, {peak / heap:.2f} of the heap")
        cost = forecast(target)
        check(peak <= cost, f"{peak} bytes at the peak, {cost} were forecast")
        check(cost <= 3 * heap, f"{cost} forecast for a heap of {heap}")
        # An edge of 4 bytes for each word is known only while they are read.
        enough = check_refused_and_enough(target, heap * 4 // 10, whole)
        check(enough <= 3 * heap, f"{enough} are said to be enough for a heap of {heap}")
        scanned(target, heap * 4 // 10, depth="census")


@suite.test("an ordinary heap is not refused for what it might have held")
def _():
    with start("nodes") as target, unharmed(target.pid):
        whole = scanned(target)
        peak, heap = whole["scan"]["peak_memory_bytes"], target.hello["heap"]
        note(f"{peak >> 20} MiB at the peak, {peak / heap:.2f} of the heap")
        cost = forecast(target)
        check(peak <= cost <= peak * 4, f"{peak} bytes at the peak, {cost} were forecast")
        scan = scanned(target, peak + 24 * MIB)
        check_equal(scan["heap"]["live_objects"], whole["heap"]["live_objects"], "live objects")
        check(peak + 24 * MIB < cost, "the limit was no smaller than the forecast")
        check_refused_and_enough(target, peak * 6 // 10, whole)


@suite.test("what cannot be done is refused before the stop")
def _():
    with start("nodes") as target, unharmed(target.pid):
        least, enough, log = refused(target, 4 * MIB)
        check(" audit: " not in log, f"it was stopped: {log}")
        check(" audit: " in ask(target, least + 100 * MIB)[1], "stops are not logged")
        check(least > 10 * MIB, f"at least {least} of {enough}")
        check_refused_and_enough(target, least - 1, scanned(target))
        census = scanned(target, 4 * MIB, depth="census")
        check_equal(census["heap"]["live_bytes"], None, "live bytes of a census")


@suite.test("buffers without pointers cost next to nothing")
def _():
    with start("buffers") as target, unharmed(target.pid):
        cost = forecast(target)
        check(cost < 60 * MIB, f"{cost} bytes were forecast")
        scanned(target, cost)


@suite.test("what label sets share is reckoned in")
def _():
    with Fixture([build_fixture("tenants", GO), "shares"]) as target, unharmed(target.pid):
        whole = scanned(target)
        check_refused_and_enough(target, 4 * MIB, whole)


def peak_memory(answer):
    """None of a profile, which does not tell it."""
    return answer.json()["scan"]["peak_memory_bytes"] if answer.body[:1] == b"{" else None


def check_question(target, plain_least, endpoint, query, copies):
    """It is refused before the stop by what it needs at least, and answered with what is enough."""
    question = dict(part.split("=") for part in query.split("&") if part)
    least, enough, log = refused(target, 4 * MIB, endpoint, **question)
    check(" audit: " not in log, f"{endpoint}?{query} stopped it: {log}")
    heap = target.hello["heap"]
    check(least - plain_least >= heap // 60, f"{endpoint}?{query} needs {least - plain_least} more")
    check_equal(least - plain_least >= heap, copies, f"{endpoint}?{query} copies the heap")
    answer, log = ask(target, least + MIB, endpoint, **question)
    if answer.status == 503:  # known only once the heap is read
        check(" audit: " in log, f"{endpoint}?{query} is refused with {least + MIB}")
    answer, _ = ask(target, enough, endpoint, **question)
    check_equal(answer.status, 200, f"{endpoint}?{query}: {answer.body[:300]!r} with {enough}")
    peak = peak_memory(answer)
    note(f"{endpoint}?{query}: at least {least >> 20}, enough {enough >> 20} MiB; "
         f"{(peak or 0) >> 20} MiB at the peak")
    if peak:
        check(peak <= enough, f"{endpoint}?{query}: {peak} at the peak, {enough} are enough")
        check(least <= peak + 16 * MIB, f"{endpoint}?{query}: {peak} did, {least} at least")


@suite.test("questions about objects are refused before the stop by what they need themselves")
def _():
    with start("nodes") as target, unharmed(target.pid):
        plain_least, _, _ = refused(target, 4 * MIB)
        for (endpoint, query), copies in QUESTIONS.items():
            check_question(target, plain_least, endpoint, query, copies)


@suite.test("a refused question says what the scan needs without it, and that is what is needed")
def _():
    with start("nodes") as target, unharmed(target.pid):
        plain_least, _, _ = refused(target, 4 * MIB)
        address = "0xc000000000"
        for endpoint in ("histogram", f"object/{address}", "diff"):
            over = {"over": 1} if endpoint == "diff" else {}
            answer, log = ask(target, plain_least, endpoint, **over)
            check_equal((answer.status, answer.error_code()), (503, "out_of_memory"), endpoint)
            check(" audit: " not in log, f"{endpoint} stopped it: {log}")
            told = int(PLAIN.search(answer.json()["error"]["message"]).group(1))
            check(abs(told - plain_least) <= 2 * MIB, f"{told} without, {plain_least} in truth")


@suite.test("of pointers alone questions are answered with what is said to be enough")
def _():
    with start("pointers") as target, unharmed(target.pid):
        for endpoint, parameters in (("histogram", {}), ("goroutines", {"retained": 1})):
            _, enough, _ = refused(target, 4 * MIB, endpoint, **parameters)
            answer, _ = ask(target, enough, endpoint, **parameters)
            check_equal(answer.status, 200, f"{endpoint}: {answer.body[:300]!r} with {enough}")
            check(peak_memory(answer) <= enough, f"{endpoint}: {peak_memory(answer)} at the peak")


suite.run()
