#!/usr/bin/env python3
"""Which variables hold the roots of real Go programs, against what these know."""

import collections
import json
import subprocess

import gobuild
import harness
from harness import STRESS, Fixture, build_fixture
from tap import Suite, check, check_equal, note

STRIPPED, NO_DWARF = ("-ldflags=-s -w",), ("-ldflags=-w",)
GLOBAL, LOCAL, TEMPORARY, NAMELESS, RUNTIME = range(5)
KINDS = {"global": GLOBAL, "local": LOCAL, "temporary": TEMPORARY, "static": GLOBAL,
         "runtime": RUNTIME}

Root = collections.namedtuple("Root", "value name package kind type size offset file line root")

suite = Suite()


def read_roots(pid):
    out = subprocess.run([harness.program("tests/support/variable_facts"), str(pid)],
                         stdout=subprocess.PIPE, check=True)
    facts = json.loads(out.stdout)
    return facts, [Root(*root) for root in facts["roots"]]


def by_value(roots):
    found = collections.defaultdict(list)
    for root in roots:
        found[root.value].append(root)
    return found


def with_dwarf(held):
    return held["name"], KINDS[held["kind"]], held["type"] or "?"


def with_symbols(held):
    """Symbols name globals and know no types; a frame's words are its function's."""
    if held["kind"] == "local":
        return held["function"] + ".", TEMPORARY, "?"  # or of what is inlined into it
    if held["kind"] == "static":
        return "(nameless data)", NAMELESS, "?"
    known = held["type"] if held["kind"] == "runtime" else ""
    return held["name"], KINDS[held["kind"]], known or "?"


def stripped(held):
    if held["kind"] in ("global", "static"):
        return "(nameless", NAMELESS, "?"
    return with_symbols(held)


def is_type(found, wanted):
    """What a generic function handles is of a shape, whose name is the compiler's own affair."""
    return found.startswith(wanted) if wanted == "*go.shape." else found == wanted


def check_held(hello, roots, expected):
    found = by_value(roots)
    for held in hello:
        name, kind, type_name = expected(held)
        hits = [root for root in found[held["addr"]]
                if root.name.startswith(name) and root.kind == kind
                and is_type(root.type, type_name)]
        check(hits, f"{name} ({kind}, {type_name}) does not hold {held['addr']:#x}; "
                    f"what does: {found[held['addr']]}")
        check(all(hit.offset < hit.size for hit in hits), f"{name} ends before its word: {hits}")


def check_names(roots):
    for root in roots:
        check(root.name and "0x" not in root.name and "%" not in root.name, str(root))
        if root.kind in (LOCAL, TEMPORARY) and root.package == "main":
            check(root.file.endswith(".go") and root.line > 0, f"where is {root}")
        if root.kind == LOCAL:
            check(root.name.startswith(root.package + "."), str(root))


def check_descent(roots):
    """A thousand frames of one function, each with an object, under one name."""
    found = [root for root in roots if root.name == "main.descend.link"]
    check(len({root.value for root in found}) >= 1001, f"{len(found)} links")


def check_program(program, expected):
    with Fixture([program]) as target:
        facts, roots = read_roots(target.pid)
        note(f"{len(roots)} roots, {len({root.name for root in roots})} names, "
             f"{facts['bytes'] / 1024:.0f} KiB, {facts['seconds'] * 1000:.1f} ms")
        check_held(target.hello, roots, expected)
        check_names(roots)
        if expected is with_dwarf:
            check_descent(roots)
            unnamed = [root for root in roots if root.kind == NAMELESS]
            check(len(unnamed) < len(roots) / 4, f"{len(unnamed)} of {len(roots)} have no name")


# Without DWARF a few will do: what differs between versions is what DWARF says, and frames.
FEW = ("1.15", "1.21", "1.24", "1.27")

for go, experiment in gobuild.VARIANTS:
    for what, flags, expectation in (("", (), with_dwarf), (", no DWARF", NO_DWARF, with_symbols),
                                     (", stripped", STRIPPED, stripped)):
        if flags and not STRESS and (go not in FEW or experiment):
            continue

        @suite.test(f"{gobuild.variant_name(go, experiment)}{what}: variables hold what they hold")
        def _(go=go, experiment=experiment, flags=flags, expectation=expectation):
            check_program(build_fixture("variables", go, experiment, flags=flags), expectation)


suite.run()
