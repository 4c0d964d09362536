"""Tests that speak TAP, the protocol of automake's driver.

    from tap import Suite

    suite = Suite()

    @suite.test("a process is left as it was")
    def _():
        ...

    suite.run()

A test fails by raising, most simply by check_equal and its like; it is skipped by raising Skip,
with a reason that tests/expected-skips must list for CI to pass.
"""

import sys
import traceback


class Skip(Exception):
    """The test cannot run on this machine."""


class Suite:
    def __init__(self):
        self.tests = []

    def test(self, name):
        def add(function):
            self.tests.append((name, function))
            return function
        return add

    def run(self):
        """Runs all, prints TAP and exits. Arguments choose tests by a part of their name."""
        chosen = [(name, function) for name, function in self.tests
                  if len(sys.argv) < 2 or any(part in name for part in sys.argv[1:])]
        print(f"1..{len(chosen)}", flush=True)
        failed = 0
        for number, (name, function) in enumerate(chosen, 1):
            failed += not run_test(number, name, function)
        sys.exit(1 if failed else 0)


def run_test(number, name, function):
    try:
        function()
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
    except KeyboardInterrupt:
        raise
    except BaseException:
        for line in traceback.format_exc().splitlines():
            print(f"# {line}")
        print(f"not ok {number} - {name}", flush=True)
        return False
    else:
        print(f"ok {number} - {name}", flush=True)
    return True


def note(text):
    """A line for the log, such as a measured figure."""
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def check_equal(actual, expected, what):
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")


def check_within(actual, expected, tolerance, what):
    if abs(actual - expected) > tolerance:
        raise AssertionError(f"{what}: {actual}, expected {expected} within {tolerance} "
                             f"(differs by {actual - expected})")
