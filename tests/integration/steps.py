#!/usr/bin/env python3
"""The steps by which a program's layouts and names are known (scan.detail): every endpoint answers
at each of them, in the same form, and what is counted is the same to the object."""

import tempfile

import gobuild
from harness import Daemon, Fixture, build_fixture
from procfs import unharmed
from tap import Suite, check, check_equal, note

WAYS = {
    "DWARF": {},
    "without DWARF": {"flags": ("-ldflags=-w",)},
    "stripped by the linker": {"flags": ("-ldflags=-s -w",)},
    "stripped": {"form": gobuild.STRIPPED},
    "pie, stripped": {"flags": ("-buildmode=pie", "-ldflags=-s -w")},
}
LAYOUTS = {"DWARF": "dwarf"}  # else from the table
ENDPOINTS = {
    "": ("json", "text"),
    "/memusage": ("json", "text", "prometheus", "openmetrics"),
    "/memusage?depth=census": ("json", "text"),
    "/memusage?mode=stop": ("json", "text"),
    "/memusage?label=tenant=acme&by=job&detail=1": ("json", "text"),
    "/memusage?by=@entry": ("json", "text"),
    "/goroutines": ("json", "text"),
    "/goroutines?retained=1": ("json", "text"),
    "/histogram?retained=1&garbage=1": ("json", "text"),
    "/profile": ("pprof",),
    "/objects?limit=10": ("json", "text"),
    "/dominators?limit=10": ("json", "text"),
    "/mappings": ("json", "text"),
}
# Between two runs of one program: what its runtime allocates for threads of its own.
RUN_SLACK = 64
# Objects whose names are no form, and lists of what has types, which may be empty.
DYNAMIC = {"holds", "top_types"}

suite = Suite()


def shape(value):
    """What a JSON answer has, whatever it says: types, and the names in objects."""
    if isinstance(value, dict):
        return {name: {} if name in DYNAMIC else shape(part) for name, part in value.items()}
    if isinstance(value, list):
        parts = [shape(part) for part in value]
        return [part for i, part in enumerate(parts) if part not in parts[:i]]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def names(value, path=""):
    """All paths of names in a shape."""
    if isinstance(value, dict):
        return {path}.union(*(names(part, f"{path}.{name}") for name, part in value.items()))
    if isinstance(value, list):
        return set().union(*(names(part, path + "[]") for part in value))
    return {path}


def ask_all(daemon, pid):
    """The names in every JSON answer; every other form must have something to say."""
    found = {}
    for path, forms in ENDPOINTS.items():
        for form in forms:
            answer = daemon.get(f"/pid/{pid}{path}{'&' if '?' in path else '?'}format={form}"
                                + ("&max_pause=10" if path else ""))
            check_equal(answer.status, 200, f"{path} as {form}: {answer.body[:500]!r}")
            if form == "json":
                found[path] = names(shape(answer.json()))
            else:
                check(len(answer.body) > 100, f"{path} as {form}: {answer.body}")
    return found


def figures(scan):
    """Of each label set, to the object."""
    return sorted((sorted(entry["labels"].items()), entry["reachable_objects"],
                   entry["reachable_bytes"], entry["exclusive_objects"], entry["exclusive_bytes"],
                   entry["goroutines"]) for entry in scan["labels"]["sets"])


def check_frames(scan):
    """Functions, files, lines: of the program's own as of the runtime's."""
    frames = [frame for goroutine in scan["goroutines"] for frame in goroutine["frames"]]
    check(any(frame["function"].startswith("main.") for frame in frames), "no function of main")
    for frame in frames:
        check(frame["function"] and frame["file"] and frame["line"] > 0, f"{frame}")


def look(version, way, config):
    with Daemon("--config", config) as daemon, \
            Fixture([build_fixture("demo", version, **WAYS[way])], env={"GOGC": "off"}) as target, \
            unharmed(target.pid):
        scan = daemon.scan(target.pid)
        check_equal(scan["scan"]["detail"]["layouts"], LAYOUTS.get(way, "table"), way)
        check_equal((scan["scan"]["trust"]["self_check"], scan["scan"]["trust"]["free_slot_hits"]),
                    ("ok", 0), way)
        check_frames(daemon.get(f"/pid/{target.pid}/goroutines?max_pause=10").json())
        return ask_all(daemon, target.pid), figures(scan), scan["heap"]["live_objects"]


for go in ("1.15", "1.22", "1.27"):
    @suite.test(f"go{go}: every endpoint answers alike, with or without debug information")
    def _(go=go):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
            config.write("min_stop_interval = 0\n")
            config.flush()
            known = {way: look(go, way, config.name) for way in WAYS}
        whole = known["DWARF"]
        note(f"live objects {[live for _, _, live in known.values()]}")
        for way, (answers, sets, live) in known.items():
            for path, found in answers.items():
                check_equal(found ^ whole[0][path], set(), f"{way}: names in {path or 'overview'}")
            check_equal(sets, whole[1], f"{way}: label sets")
            check(abs(live - whole[2]) <= RUN_SLACK, f"{way}: {live} live, {whole[2]} with DWARF")


suite.run()
