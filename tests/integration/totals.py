#!/usr/bin/env python3
"""The memory tree against what programs are known to hold, and against the kernel's own smaps."""

import tempfile

from harness import Daemon, Fixture, build_fixture, check_sums, find_node
from procfs import rss_bytes, smaps, unharmed
from tap import Suite, check, check_equal, check_within, note

MIB = 1 << 20
GIB = 1 << 30
SPAN = 8192  # bytes of a small one

suite = Suite()
daemon = None


def totals_of(target, **parameters):
    scan = daemon.scan(target.pid, **parameters)
    tree, rss = scan["memory"], rss_bytes(target.pid)
    note([(node["id"], node["bytes"], node["resident_bytes"]) for node in tree["children"]])
    check_sums(tree)
    check_within(tree["resident_bytes"], rss, rss / 100, "resident size of the process")
    unexplained = find_node(tree, "unexplained")["resident_bytes"]
    check(unexplained <= rss / 100, f"{unexplained} of {rss} resident bytes are unexplained")
    return scan


def child_named(node, name):
    for child in node["children"]:
        if child["id"] == name or child["title"] == name:
            return child
    raise AssertionError(f"{node['id']} has no child {name}: {[c['id'] for c in node['children']]}")


def resident(target, address, size):
    """What smaps says is resident of one known range."""
    return sum(fields["Rss"] for start, end, _, _, fields in smaps(target.pid)
               if start < address + size and address < end)


def resident_around(target, address):
    """What is resident of the mappings side by side with the one that holds an address."""
    runs = []  # [start, end, resident]
    for start, end, _, _, fields in smaps(target.pid):
        if not runs or runs[-1][1] != start:
            runs.append([start, start, 0])
        runs[-1][1] = end
        runs[-1][2] += fields["Rss"]
    return next(size for start, end, size in runs if start <= address < end)


def check_dropped(version, mode):
    program = build_fixture("totals", version)
    with Fixture([program, "dropped"]) as target, unharmed(target.pid):
        scan = totals_of(target, mode=mode)
        free = find_node(scan["memory"], "free_spans")
        # The runtime counts what it has reserved and never touched as idle too. After it said so,
        # its background workers may have freed a span or two.
        check(GIB <= free["bytes"] <= target.hello["heap_idle"] + 4 * SPAN,
              f"free spans: {free['bytes']}, 1 GiB was dropped, {target.hello['heap_idle']} idle")
        heap = find_node(scan["memory"], "heap")
        arena = resident_around(target, target.hello["heap_at"])
        check_within(heap["resident_bytes"], arena, arena / 100, "resident heap")


def check_maps(version, mode):
    program = build_fixture("totals", version)
    with tempfile.TemporaryDirectory(prefix="goheapd-totals-") as folder, \
            Fixture([program, "maps", folder]) as target, unharmed(target.pid):
        tree = totals_of(target, mode=mode)["memory"]
        piece = target.hello["piece"]
        files = find_node(tree, "file_maps")
        for name in ("shared", "private"):
            node = child_named(files, f"{folder}/{name}")
            check_equal(node["bytes"], piece, f"bytes of the {name} file")
            check_equal(node["resident_bytes"], resident(target, target.hello[name], piece),
                        f"resident bytes of the {name} file")
        shared = find_node(tree, "shared")
        check_equal(shared["bytes"], 2 * piece, "memory file and SysV segment")
        check_equal(shared["resident_bytes"], 2 * piece, "resident part of both")
        anonymous = find_node(tree, "c_memory")
        check_equal(anonymous["bytes"], 2 * piece, "anonymous memory that is not Go's")
        check_equal(anonymous["resident_bytes"], 2 * piece, "resident part of it")
        text = find_node(tree, "text")
        check(0 < text["resident_bytes"] <= text["bytes"], f"text: {text}")


def check_c(version, mode):
    program = build_fixture("cgo", version, env={"CGO_ENABLED": "1"})
    with Fixture([program]) as target, unharmed(target.pid):
        node = find_node(totals_of(target, mode=mode)["memory"], "c_memory")
        # malloc's own headers and what it keeps in reserve come on top.
        check_within(node["resident_bytes"], target.hello["c_bytes"], 4 * MIB, "memory of C")


def add_tests(version, mode):
    @suite.test(f"go{version}, {mode}: 1 GiB that was dropped is in free spans")
    def _():
        check_dropped(version, mode)

    @suite.test(f"go{version}, {mode}: every kind of mapping is in its node")
    def _():
        check_maps(version, mode)

    @suite.test(f"go{version}, {mode}: what C holds is in its node")
    def _():
        check_c(version, mode)


for one in (("1.15", "fork"), ("1.23", "stop"), ("1.26", "fork"), ("1.27", "stop")):
    add_tests(*one)

with Daemon() as daemon:
    suite.run()
