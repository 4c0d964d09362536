#!/usr/bin/env python3
"""What other tests rely on: the oracle fixture builds with every toolchain, allocates nothing while a
scan looks at it, and makes exactly the garbage it is asked for."""

import gobuild
from harness import Fixture, build_fixture
from tap import Suite, check, check_equal

GARBAGE_BYTES = 64
ATTEMPTS = 5

suite = Suite()


def growth(target, command):
    """
    Change in objects and bytes of the heap by one command: the least of some, since the runtime may
    make a thread meanwhile, with objects of its own.
    """
    def once():
        before = target.command("garbage 0")
        after = target.command(command)
        return tuple(after[key] - before[key] for key in ("heap_objects", "heap_alloc"))

    return min(once() for _ in range(ATTEMPTS))


def check_fixture(version, experiment):
    program = build_fixture("oracle", version, experiment)
    with Fixture([program]) as target:
        check(target.hello["go"].startswith(f"go{version}"), target.hello["go"])
        check(experiment in target.hello["go"], target.hello["go"])
        check(target.hello["heap_objects"] > 2000000, "the heap is small")
        check_equal(growth(target, "garbage 0"), (0, 0), "growth by nothing")
        check_equal(growth(target, "garbage 1000"), (1000, 1000 * GARBAGE_BYTES), "growth")
        check_equal(growth(target, "finalizable 100")[0], 100, "growth by finalizable objects")


def add_test(version, experiment):
    @suite.test(f"the oracle of {gobuild.variant_name(version, experiment)} is exact")
    def _():
        check_fixture(version, experiment)


for variant in gobuild.VARIANTS:
    add_test(*variant)

suite.run()
