#!/usr/bin/env python3
"""What goes by before a scan stops its target, for a binary seen before and for the first time.

The targets are Go's own go command, of 20 MB, which waits for a program that it runs, and the
program of the other benchmarks. The figure is `prepare_seconds`, from the request's admission to
the stop.
"""

import contextlib
import statistics
import tempfile

from harness import Fixture
import gobuild
import measure


@contextlib.contextmanager
def go_command(version):
    """The go command, running a program that waits."""
    program = gobuild.build_command("go", version)
    environment = gobuild.go_environment(version, "", {"GOFLAGS": ""})
    with tempfile.TemporaryDirectory(prefix="goheapd-bench-") as folder:
        command = [program, "run", measure.BENCH / "wait" / "main.go"]
        with Fixture(command, env={**environment, "TMPDIR": folder}) as target:
            yield program, target


@contextlib.contextmanager
def small_program(version):
    program = gobuild.build("heap", version, root=measure.BENCH)
    with Fixture([program, "goroutines", 10]) as target:
        yield program, target


def prepare_seconds(server, target, index_used):
    info = server.scan(target.pid)["scan"]
    assert info["index_used"] == index_used, info
    return info["prepare_seconds"]


def first_time(target):
    with measure.daemon() as server:
        return prepare_seconds(server, target, False)


def seen_before(target, count):
    with measure.daemon() as server:
        prepare_seconds(server, target, False)
        return [prepare_seconds(server, target, True) for _ in range(count)]


def main():
    options = measure.options(__doc__, 9)
    table = measure.Table(__doc__, "Go", "program", "size", "for the first time", "seen before",
                          "slowest of them")
    for version in options.go:
        for start in (go_command, small_program):
            with start(version) as (program, target):
                first = statistics.median(first_time(target) for _ in range(3))
                later = seen_before(target, 3 * options.count)
            table.row(version, program.name, f"{program.stat().st_size / 1e6:.1f} MB",
                      measure.milliseconds(first), measure.milliseconds(statistics.median(later)),
                      measure.milliseconds(max(later)))


if __name__ == "__main__":
    main()
