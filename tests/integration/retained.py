#!/usr/bin/env python3
"""What would be freed with what, to the byte, against a program that knows it."""

import json
import pathlib
import re
import subprocess
import tempfile

import gobuild
from harness import Daemon, Fixture, build_fixture, program
from procfs import unharmed
from profile_rules import CheckedProfile
from tap import Suite, check, check_equal

STRIPPED = ("-ldflags=-s -w",)
LINK, NODE, BLOCK, PAIR, CORNER, SHELL, CORE = 48, 32, 64, 16, 32, 64, 80

suite = Suite()
daemon = None


def scan(target, endpoint, **parameters):
    answer = daemon.scan(target.pid, endpoint=endpoint, **parameters)
    check_equal(answer["scan"]["warnings"], [], "warnings")
    return answer


# ---- goroutines ----

def holders(target):
    """What each goroutine of the fixture's retains, by what it says that it holds."""
    found = scan(target, "goroutines", retained=1)["goroutines"]
    check(all(g["retained_bytes"] is not None for g in found), "a goroutine retains null")
    return {g["labels"]["holder"]: g["retained_bytes"] for g in found if "holder" in g["labels"]}


def check_goroutines(target):
    found = holders(target)
    tree = target.hello["nodes"] * NODE
    check_equal(found["a tree of its own"] - found["nothing"], tree, "a tree of its own")
    check_equal(found["the tree of all"], found["nothing"], "a tree that a global holds, too")
    # a label set of one goroutine holds alone what this retains
    for entry in scan(target, "memusage")["labels"]["sets"]:
        check_equal(found[entry["labels"]["holder"]], entry["exclusive_bytes"], "exclusive_bytes")
    plain = scan(target, "goroutines")["goroutines"]
    check(all(g["retained_bytes"] is None for g in plain), "retained sizes that nobody asked for")


# ---- globals and types ----

def check_globals(found, hello):
    expected = {
        "main.chain": hello["links"] * LINK,
        "main.left": PAIR + BLOCK,
        "main.right": PAIR + BLOCK,
        "main.diamond": 4 * CORNER,
        "main.nested": 5 * (SHELL + CORE),
    }
    check_equal({name: found.get(name) for name in expected}, expected, "globals")
    check("main.sharedTree" not in found, "a tree that a goroutine holds, too")
    check_equal(found["main.few"] - found["main.mirror"], 8 * BLOCK, "a map with values of its own")


def live_bytes(target):
    return scan(target, "memusage")["heap"]["live_bytes"]


def at_rest(target, ask):
    """What ask finds of a heap, and how large that is: the runtime may start a thread meanwhile."""
    for _ in range(10):
        before, found = live_bytes(target), ask()
        if live_bytes(target) == before:
            return found, before
    raise AssertionError("the heap is another one each time")


def bytes_of_program(target):
    """All but what the runtime allocates for itself."""
    found = scan(target, "histogram")
    return found["unknown"]["bytes"] + sum(row["bytes"] for row in found["types"]
                                           if "runtime." not in row["type"])


def check_dropped(target):
    """What a map of strings retains is what its end frees."""
    rows = scan(target, "histogram", retained=1)["globals"]
    found = {row["name"]: row["retained_bytes"] for row in rows}["main.many"]
    before = bytes_of_program(target)
    target.command("drop")
    check_equal(before - bytes_of_program(target), found, "what is freed with a map")
    check(found > target.hello["items"] * 64, f"a large map retains {found}")


def check_types(rows, hello):
    found = {row["type"]: (row["objects"], row["retained_bytes"]) for row in rows}
    nodes = 2 * hello["nodes"]
    expected = {
        "main.link": (hello["links"], hello["links"] * LINK),
        "main.pair": (2, 2 * (PAIR + BLOCK)),
        "main.block": (12, 12 * BLOCK),
        "main.corner": (4, 4 * CORNER),
        "main.shell": (5, 5 * (SHELL + CORE)),
        "main.core": (5, 5 * CORE + 4 * SHELL),
        "main.node": (nodes, nodes * NODE),
    }
    check_equal({name: found.get(name) for name in expected}, expected, "types")


def check_histogram(target, stripped):
    answer = scan(target, "histogram", retained=1)
    for row in answer["types"]:
        check(row["retained_bytes"] >= row["bytes"] or row["objects"] > 1, f"{row} retains less")
    if not stripped:
        check_globals({row["name"]: row["retained_bytes"] for row in answer["globals"]},
                      target.hello)
        check_types(answer["types"], target.hello)


# ---- objects and the tree ----

def retained_of(target, address):
    return scan(target, f"object/{address}")["object"]["retained_bytes"]


def check_objects(target):
    hello = target.hello
    expected = {"chain": hello["links"] * LINK, "middle": hello["links"] // 2 * LINK,
                "diamond": 4 * CORNER, "left": PAIR + BLOCK, "shared": BLOCK}
    check_equal({name: retained_of(target, hello[name]) for name in expected}, expected, "objects")


def check_tree(target):
    children = scan(target, "dominators", object=target.hello["diamond"])["nodes"]
    check_equal([(n["bytes"], n["retained_bytes"], n["children"]) for n in children],
                [(CORNER, CORNER, 0)] * 3, "what dominates the corners of a diamond")
    one = scan(target, "dominators", object=target.hello["middle"])["nodes"]
    check_equal([(n["retained_bytes"], n["children"]) for n in one],
                [((target.hello["links"] // 2 - 1) * LINK, 1)], "what follows in the chain")
    top, live = at_rest(target, lambda: scan(target, "dominators", limit=10000))
    check_equal(sum(n["retained_bytes"] for n in top["nodes"]), live,
                "all that hangs from the top")


# ---- the profile ----

def get_profile(target, **parameters):
    query = "&".join(f"{key}={value}" for key, value in {"max_pause": 10, **parameters}.items())
    answer = daemon.get(f"/pid/{target.pid}/profile?{query}")
    check_equal(answer.status, 200, f"answer {answer.body[:300]!r} has the status")
    return CheckedProfile(answer.body)


def check_profile(target):
    """Below each frame is what would be freed with it."""
    profile, live = at_rest(target, lambda: get_profile(target, sample="retained",
                                                        max_depth=1024))
    profile.check_limits()
    check_equal(profile.types, [("retained_objects", "count"), ("retained_space", "bytes")], "types")
    below = {}
    for sample in profile.samples:
        below[sample.frames[0]] = below.get(sample.frames[0], 0) + sample.values["retained_space"]
    check_equal(sum(below.values()), live, "all samples")
    check_globals(below, target.hello)
    for row in scan(target, "histogram", retained=1)["globals"]:
        check_equal(below.get(row["name"]), row["retained_bytes"], row["name"])
    tree = [below[name] for name in below if name.startswith("main.hold.tree")]
    check_equal(tree, [target.hello["nodes"] * NODE], "a goroutine's variable")
    shared = [list(sample.values.values()) for sample in profile.samples if sample.frames[0] == "$shared" and
              sample.frames[-1] in ("(main.block)", "(*main.block)")]
    check_equal(shared, [[1, BLOCK]], "a block that two globals lead to")
    corners = sorted(sample.values["retained_space"] for sample in profile.samples
                     if sample.frames[0] == "main.diamond")
    check_equal(corners, [CORNER] * 4, "corners of a diamond")


def test_version(version, experiment=""):
    name = gobuild.variant_name(version, experiment)

    @suite.test(f"{name}: what goroutines retain")
    def _():
        with Fixture([build_fixture("retained", version, experiment)]) as target, \
                unharmed(target.pid):
            check_goroutines(target)

    @suite.test(f"{name}: what globals, types and objects retain")
    def _():
        with Fixture([build_fixture("retained", version, experiment)]) as target, \
                unharmed(target.pid):
            check_histogram(target, False)
            check_objects(target)
            check_tree(target)
            check_profile(target)
            check_dropped(target)

    @suite.test(f"{name}: a stripped program retains as much")
    def _():
        path = build_fixture("retained", version, experiment, flags=STRIPPED)
        with Fixture([path]) as target, unharmed(target.pid):
            check_goroutines(target)
            check_histogram(target, True)
            check_objects(target)


for runtime in gobuild.VERSIONS:
    test_version(runtime)


# ---- the line of memusage's text ----

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def keeps(page):
    """Names and figures of the line, as they stand there, and the page's unit."""
    lines = {line.split()[0]: line for line in page.splitlines() if line.strip()}
    words = lines.get("KEEPS", "KEEPS").split()[1:]
    return list(zip(words[::2], words[1::2])), UNITS[lines["RSS"].split()[2]]


def check_keeps(page, rows):
    found, unit = keeps(page)
    check_equal(found, [(row["name"], f"{row['retained_bytes'] / unit:.2f}")
                        for row in rows[:len(found)]], page)
    check(len(found) >= 3, page)


@suite.test("memusage's text names the globals that retain most, with detail=1 and of what is kept")
def _():
    with Fixture([build_fixture("retained", gobuild.VERSIONS[-1])]) as target:
        path = f"/pid/{target.pid}/memusage?format=text&max_pause=10"
        with unharmed(target.pid):
            rows = scan(target, "histogram", retained=1)["globals"]
            page = daemon.get(f"{path}&detail=1").text()
            check_equal(rows[0]["name"], "main.many", "the largest")
            check_keeps(page, rows)
            check_equal(keeps(daemon.get(path).text())[0], [], "a plain page")
            check_equal(keeps(daemon.get(f"{path}&detail=1&depth=census").text())[0], [],
                        "a census")
            plain = scan(target, "memusage", keep=300)["scan"]["id"]
            histogram = scan(target, "histogram", keep=300, retained=1)["scan"]["id"]
            direct = subprocess.check_output(
                [program("goheap"), "memusage", str(target.pid), "--direct", "--detail",
                 "--max-pause", "10"], timeout=60).decode()
            check_keeps(direct, rows)
        target.close()
        page = daemon.get(f"{path}&scan={plain}&detail=1").text()
        check_keeps(page, rows)
        check_keeps(daemon.get(f"{path}&scan={histogram}").text(), rows)
        check_equal(keeps(daemon.get(f"{path}&scan={plain}").text())[0], [], "kept, without detail")


@suite.test("goheap says the same of goroutines, with a daemon and without")
def _():
    with Fixture([build_fixture("retained", gobuild.VERSIONS[-1])]) as target:
        expected = holders(target)
        for how in ["--socket", str(daemon.socket)], ["--direct"]:
            command = [program("goheap"), "goroutines", str(target.pid), "--retained", *how,
                       "--max-pause", "10"]
            found = json.loads(subprocess.check_output([*command, "--format", "json"], timeout=60))
            check_equal({g["labels"]["holder"]: g["retained_bytes"]
                         for g in found["goroutines"] if "holder" in g["labels"]}, expected, how)
            text = subprocess.check_output(command, timeout=60).decode()
            check(re.search(r"^goroutine \d+ \[chan receive, retains 3\d\.\d KiB\]", text, re.M), text)


@suite.test("what does not fit is refused before the stop, with what it would need")
def _():
    with Fixture([build_fixture("retained", gobuild.VERSIONS[-1])]) as target:
        with Daemon("--max-scan-memory", str(4 << 20)) as small:
            answer = small.get(f"/pid/{target.pid}/goroutines?format=json&retained=1")
            check_equal((answer.status, answer.error_code()), (503, "out_of_memory"), "answer")
            check(" audit: " not in small.log(), "it was stopped")

with tempfile.TemporaryDirectory(prefix="goheapd-retained-") as folder:
    config = pathlib.Path(folder, "goheapd.conf")
    config.write_text("min_stop_interval = 0\n")
    with Daemon("--config", config) as daemon:
        suite.run()
