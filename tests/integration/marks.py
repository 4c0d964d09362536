#!/usr/bin/env python3
"""Stops programs in the middle of their collections, under load, and compares what is live with what
the collector has marked, object by object."""

import collections
import json
import subprocess

import gobuild
import harness
from harness import Daemon, Fixture, build_fixture
from tap import Suite, check, check_equal, note

STOPS = harness.repeat_count(8, 500)  # straight after mark termination
OTHER_STOPS = harness.repeat_count(4, 100)  # in each other phase
SCANS = harness.repeat_count(6, 60)  # over HTTP

MORE_SCANS = 100  # to meet both phases that last long enough

# Objects of those sizes that are the runtime's own, or were in a thread's hands.
OTHERS = 16

suite = Suite()


def stops(target, count, moment):
    command = [harness.program("tests/support/mark_facts"), target.pid, count, moment,
               ",".join(target.hello)]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=False)
    check_equal(done.returncode, 0, "exit status of mark_facts")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_stop(stop, lasting):
    for what, text in {
            "missed": "objects that exact pointers lead to, but not live",
            "invented": "live, though nothing leads to them",
            "unmarked_exact": "reachable, older than the cycle and not marked",
            "refused": "marked, but no target of conservative words",
            "free_live": "live, in a slot that is free",
            "strays": "exact pointers to slots that are not allocated",
            "free_slot_hits": "exact pointers to free slots",
            "skipped": "stacks that could not be read",
    }.items():
        check_equal(stop[what], 0, text)
    # A word that only may be a pointer can keep alive what died before the cycle.
    check(stop["unmarked_live"] <= OTHERS,
          f"live by conservative words alone, and not marked: {stop['unmarked_live']}")
    check_equal(stop["self_check"], "ok", "self check")
    for size, count in lasting.items():
        live, marked_dead, _ = stop["sizes"][size]
        check(count <= live <= count + OTHERS, f"{size} bytes: {live} live of {count} that last")
        check(marked_dead <= OTHERS, f"{size} bytes: {marked_dead} marked and last, but not live")


def check_moment(target, count, moment):
    """What was counted of the stops that were in time for it."""
    seen = stops(target, count, moment)
    for stop in seen:
        check_stop(stop, target.hello)
    met = [stop for stop in seen if stop["in_time"]]
    check_equal(len(met), count, f"stops that were in time: {moment}")
    note(f"{moment}: {len(met)} of {len(seen)} stops in time, "
         f"{sum(s['unswept'] > 0 and s['swept'] > 0 for s in met)} with spans of either kind, "
         f"{sum(s['cached'] > 0 for s in met)} with spans in use by a P, "
         f"{sum(s['unswept_cached'] > 0 for s in met)} with such to be swept, "
         f"{sum(s['sweeping'] for s in met)} spans being swept, "
         f"{max(s['marked_live'] for s in met)} objects live and marked, "
         f"{max(s['marked_dead'] for s in met)} marked and dead")
    return met


def start(version, experiment=""):
    """Of lower priority than we are, or its sweep is over before a busy machine lets us stop it."""
    return Fixture([build_fixture("cycles", version, experiment)], wrapper=["nice", "-n", "10"],
                   env={"GOGC": "30", "GOMAXPROCS": "4"})


def check_variant(version, experiment):
    with start(version, experiment) as target:
        lasting = sum(target.hello.values())
        ended = check_moment(target, STOPS, "ended")
        check(sum(stop["marked_live"] for stop in ended) > lasting // 2,
              "all stops came when nearly everything had been swept")
        check(any(stop["cached"] or stop["unswept_cached"] for stop in ended),
              "no span was in use by a P")
        check_moment(target, OTHER_STOPS, "sweeping")
        marking = check_moment(target, OTHER_STOPS, "marking")
        check_equal({stop["phase"] for stop in marking}, {"mark"}, "phase")
        check_equal(sum(stop["unswept"] for stop in marking), 0, "spans to be swept while marking")


for variant in gobuild.VARIANTS:
    if harness.STRESS or variant in [("1.19", ""), ("1.24", ""), ("1.27", "")]:
        suite.test(f"{gobuild.variant_name(*variant)}: what is live is marked")(
            lambda variant=variant: check_variant(*variant))


@suite.test("scans of a program that collects say in which phase, and find what lasts")
def _():
    phases = collections.Counter()
    with start("1.27") as target, Daemon() as daemon:
        lasting = {int(size): count for size, count in target.hello.items()}
        while sum(phases.values()) < SCANS or not (phases["mark"] and phases["off"]):
            check(sum(phases.values()) < SCANS + MORE_SCANS, f"phases met: {dict(phases)}")
            answer = daemon.scan(target.pid)
            scan, heap = answer["scan"], answer["heap"]
            phases[scan["gc_phase"]] += 1
            check_equal(scan["trust"]["free_slot_hits"], 0, "exact pointers to free slots")
            check_equal(scan["trust"]["skipped_stacks"], 0, "stacks that could not be read")
            check_equal(scan["trust"]["self_check"], "ok", "self check")
            check(heap["live_objects"] >= sum(lasting.values()), "objects that last are not live")
            check(heap["live_bytes"] >= sum(size * count for size, count in lasting.items()),
                  "bytes that last are not live")
    note(f"phases: {dict(phases)}")

suite.run()
