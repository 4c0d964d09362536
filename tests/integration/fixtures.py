#!/usr/bin/env python3
"""What other tests rely on: the oracle fixture builds with every toolchain, allocates nothing by itself while
a scan looks at it, and makes exactly the garbage it is asked for."""

import gobuild
from harness import Fixture, build_fixture
from tap import Suite, check

GARBAGE_BYTES = 64
FINALIZABLE_BYTES = 48
# The runtime may need a thread in between, and with it an m and its stacks' descriptions.
BOUND_OBJECTS, BOUND_BYTES = 16, 16 << 10
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


def check_growth(target, command, objects, size):
    found = growth(target, command)
    check(objects <= found[0] <= objects + BOUND_OBJECTS
          and size <= found[1] <= size + BOUND_BYTES,
          f"{command!r} made {found}, expected {(objects, size)}")


def check_fixture(version, experiment):
    program = build_fixture("oracle", version, experiment)
    with Fixture([program]) as target:
        check(target.hello["go"].startswith(f"go{version}"), target.hello["go"])
        check(experiment in target.hello["go"], target.hello["go"])
        check(target.hello["heap_objects"] > 2000000, "the heap is small")
        check_growth(target, "garbage 0", 0, 0)
        check_growth(target, "garbage 1000", 1000, 1000 * GARBAGE_BYTES)
        check_growth(target, "finalizable 100", 100, 100 * FINALIZABLE_BYTES)


def add_test(version, experiment):
    @suite.test(f"the oracle of {gobuild.variant_name(version, experiment)} is exact")
    def _():
        check_fixture(version, experiment)


for variant in gobuild.VARIANTS:
    add_test(*variant)

suite.run()
