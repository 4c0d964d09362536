#!/usr/bin/env python3
"""The memory limit of a scan: what does not fit is refused with a figure that is enough, and what fits is
scanned, for a heap of nothing but pointers as for ordinary ones."""

import re

from harness import Daemon, Fixture, build_fixture
from procfs import unharmed
from tap import Suite, check, check_equal, note

MIB = 1 << 20
GO = "1.26"
HEAP_MIB = 96
FIGURES = re.compile(r"needs at least (\d+) bytes of memory, and (\d+) are enough in any case; "
                     r"max_scan_memory is (\d+)")

suite = Suite()


def ask(target, limit=None, **parameters):
    """The answer to one scan of a daemon of its own with that limit, and what it logged."""
    options = ["--max-scan-memory", str(limit)] if limit else []
    query = "&".join(f"{key}={value}" for key, value in parameters.items())
    with Daemon(*options) as daemon:
        answer = daemon.get(f"/pid/{target.pid}/memusage?format=json&max_pause=10&{query}")
        return answer, daemon.log()


def refused(target, limit, **parameters):
    answer, log = ask(target, limit, **parameters)
    check_equal((answer.status, answer.json().get("error", {}).get("code")),
                (503, "out_of_memory"), f"answer {answer.body[:300]!r} with a limit of {limit}")
    message = answer.json()["error"]["message"]
    found = FIGURES.search(message)
    check(found, f"the message has no figures: {message}")
    least, enough, told = map(int, found.groups())
    check_equal(told, limit, "the limit that the message names")
    check(least <= enough and enough > limit, f"{message}")
    return least, enough, log


def scanned(target, limit=None, **parameters):
    answer, _ = ask(target, limit, **parameters)
    check_equal(answer.status, 200, f"{answer.body[:300]!r} with a limit of {limit}")
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


suite.run()
