#!/usr/bin/env python3
"""Special records, queues and tiny blocks as read from real Go programs, against what these know."""

import collections

import gobuild
import harness
from heapfacts import heap_facts
from tap import Suite, check, check_equal, note

# Of agent/goruntime/special.h and root.h.
FINALIZER, WEAK_HANDLE, CLEANUP, PROFILE = range(4)
(ROOT_FINALIZER, ROOT_WEAK_HANDLE, ROOT_CLEANUP, ROOT_FINALIZER_QUEUE, ROOT_CLEANUP_QUEUE,
 ROOT_TINY_BLOCK) = range(4, 10)

suite = Suite()


def check_contains(have, expected, what):
    missing = collections.Counter(expected) - collections.Counter(have)
    check(not missing, f"{what}: {len(missing)} missing of {len(expected)}")


def check_variant(version, experiment):
    fixture = harness.Fixture([harness.build_fixture("specials", version, experiment)])
    try:
        with heap_facts(fixture.pid) as facts:
            answer = facts.ask("roots")
    finally:
        fixture.close()
    known = fixture.hello
    records = collections.defaultdict(list)
    for kind, obj in answer["specials"]:
        records[kind].append(obj)
    roots = collections.defaultdict(list)
    for kind, value in answer["roots"]:
        roots[kind].append(value)
    check_equal(answer["skipped"], 0, "lists that were cut")
    check_contains(records[FINALIZER], [f["object"] for f in known["finalizers"]], "finalizers")
    check_contains(roots[ROOT_FINALIZER], [f["fn"] for f in known["finalizers"]],
                   "finalizer functions")
    check_equal(len(roots[ROOT_FINALIZER]), len(records[FINALIZER]), "finalizer roots")
    check_contains(records[PROFILE], known["profiled"], "profiled objects")
    # All but the one that runs wait, each with its object.
    waiting = set(known["queued"]) & set(roots[ROOT_FINALIZER_QUEUE])
    check(len(waiting) >= len(known["queued"]) - 1, f"{len(waiting)} finalizers wait")
    check(roots[ROOT_TINY_BLOCK], "no tiny block")
    weak = known["weak"] or []
    check_contains(records[WEAK_HANDLE], [w[0] for w in weak], "objects with weak pointers")
    check_contains(roots[ROOT_WEAK_HANDLE], [w[1] for w in weak], "weak handles")
    cleanups = known["cleanups"] or []
    check_contains(records[CLEANUP], cleanups + cleanups[::2], "objects with cleanups")
    if cleanups:
        words = len(roots[ROOT_CLEANUP]) // len(records[CLEANUP])
        check_equal(len(roots[ROOT_CLEANUP]), words * len(records[CLEANUP]), "cleanup roots")
        check_equal(words, 3 if version in ("1.26", "1.27") else 1, "words of a cleanup")
    if version == "1.24":  # they wait among the finalizers
        check(len(roots[ROOT_FINALIZER_QUEUE]) // 4 >= known["queued_cleanups"],
              "cleanups are not among the finalizers")
    elif cleanups:
        check(len(roots[ROOT_CLEANUP_QUEUE]) // words >= known["queued_cleanups"] // 2,
              f"{len(roots[ROOT_CLEANUP_QUEUE])} words of cleanups that wait")
    note({kind: len(values) for kind, values in roots.items() if kind >= 0})


for variant in gobuild.VARIANTS:
    suite.test(f"specials and queues of {gobuild.variant_name(*variant)}")(
        lambda variant=variant: check_variant(*variant))

suite.run()
