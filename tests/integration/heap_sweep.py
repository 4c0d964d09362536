#!/usr/bin/env python3
"""Stops programs while they collect, and sweep, and looks whether their slots add up."""

import time

import gobuild
import harness
from heapfacts import heap_facts, resume, stop
from tap import Suite, check, check_equal, note

STOPS = harness.repeat_count(40, 400)
STOPS_MAX = 20 * STOPS  # to meet a program that sweeps
SETTLE_SECONDS = 0.002

# The runtime's own objects of these sizes, and what the program's stack still holds; garbage comes
# in tens of thousands.
OTHERS = 16

suite = Suite()


def check_stop(facts, kept):
    """Whether the program was sweeping: then what it keeps is all that is present."""
    totals = facts.totals
    check_equal(totals["skipped_spans"], 0, "skipped spans")
    sweeping = totals["gcphase"] == 0 and totals["unswept_spans"] > 0
    for size, count in kept.items():
        slots = facts.ask("size", size)
        check(slots["present"] >= count, f"{size} bytes: {slots['present']} of {count} present")
        check(slots["allocated"] >= slots["present"], "present, but not allocated")
        check(slots["present"] >= slots["conservative"], "conservative, but not present")
        if sweeping:
            # Of a span in a thread's hands it may be unknown which slots survive.
            check(slots["present"] <= count + OTHERS + slots["sweeping"],
                  f"{size} bytes: {slots['present']} present, {count} kept")
    return sweeping


def check_variant(version, experiment):
    fixture = harness.Fixture([harness.build_fixture("sweep", version, experiment)])
    met, marking, in_hands, stops = 0, 0, 0, 0
    try:
        while stops < STOPS or (not met and stops < STOPS_MAX):
            time.sleep(SETTLE_SECONDS)
            stop(fixture.pid)
            with heap_facts(fixture.pid) as facts:
                met += check_stop(facts, fixture.hello)
                marking += facts.totals["gcphase"] != 0
                in_hands += facts.totals["sweeping_spans"] > 0
            resume(fixture.pid)
            stops += 1
        check(met, "the program was never met sweeping")
        note(f"{stops} stops: {met} while sweeping, {in_hands} of them in the middle of a span, "
             f"{marking} while marking")
    finally:
        resume(fixture.pid)
        fixture.close()


for variant in gobuild.VARIANTS:
    suite.test(f"slots of {gobuild.variant_name(*variant)} while it collects")(
        lambda variant=variant: check_variant(*variant))

suite.run()
