#!/usr/bin/env python3
"""Objects by type, one by one and by what they keep alive, against a program that knows them."""

import json
import pathlib
import subprocess
import tempfile

import gobuild
from harness import STRESS, Daemon, Fixture, build_fixture, program
from procfs import unharmed
from tap import Suite, check, check_equal

STRIPPED = ("-ldflags=-s -w",)
# What the allocator gives out for them: a chest is an array of ten pointers, a thing is 56 bytes.
CHEST_BYTES, THING_BYTES = 80, 64
HEADERS_SINCE = "1.22"
STRIPPED_VERSIONS = ("1.15", "1.22", "1.27")

suite = Suite()
daemon = None


def has_headers(version):
    return gobuild.VERSIONS.index(version) >= gobuild.VERSIONS.index(HEADERS_SINCE)


def scan(target, endpoint, **parameters):
    return daemon.scan(target.pid, endpoint=endpoint, **parameters)


def show(target, address, **parameters):
    return scan(target, f"object/{address}", **parameters)


# ---- the histogram ----

def check_sums(answer, totals):
    """Rows and what is unknown are what memusage calls by the same word."""
    for part, word in ((answer, "live"), (answer["garbage"], "garbage"),
                       (answer["finalizable"], "finalizable")):
        rows = [*part["types"], part["unknown"]]
        check_equal(sum(row["bytes"] for row in rows), totals[f"{word}_bytes"], f"{word} bytes")
        check_equal(sum(row["objects"] for row in rows), totals[f"{word}_objects"],
                    f"{word} objects")
        sizes = [row["bytes"] for row in part["types"]]
        check_equal(sizes, sorted(sizes, reverse=True), "order of rows")
        names = [row["type"] for row in part["types"]]
        check_equal(len(names), len(set(names)), "names of rows")
    check_equal(sum(row["bytes"] for row in answer["types"]), answer["typed_bytes"], "typed_bytes")


def objects_of(rows, name):
    return sum(row["objects"] for row in rows if row["type"] == name)


def check_histogram(target, version, stripped):
    first = scan(target, "memusage", keep=60)
    answer = scan(target, "histogram", garbage=1, retained=1, scan=first["scan"]["id"])
    check_sums(answer, first["heap"])
    hello, rows = target.hello, answer["types"]
    if has_headers(version):
        check_equal(objects_of(answer["garbage"]["types"], "main.big"), 50, "garbage")
    if stripped:
        return
    for name, count in (("main.order", len(hello["chain"]) + 2), ("main.big", 1),
                        ("main.plain", 1), ("main.coin", len(hello["coins"])),
                        ("main.thing", len(hello["things"]) + 1), ("main.chest", 1),
                        ("[]main.shelf", 1), ("[]main.item", len(hello["chain"]) + 2)):
        check_equal(objects_of(rows, name), count, name)
    row = next(row for row in rows if row["type"] == "main.chest")
    check_equal(row["retained_bytes"], CHEST_BYTES + 10 * THING_BYTES, "chests retain")
    found = {row["name"]: row["retained_bytes"] for row in answer["globals"]}
    check_equal(found["main.vault"], CHEST_BYTES + 10 * THING_BYTES, "main.vault retains")
    few = scan(target, "histogram", top=3, scan=first["scan"]["id"])
    check_equal([row["type"] for row in few["types"]], [row["type"] for row in rows[:3]], "top=3")
    check_equal((few["unknown"], few["typed_bytes"], few["type_count"]),
                (answer["unknown"], answer["typed_bytes"], len(rows)), "sums with top=3")


# ---- one object ----

def wanted_value(field, contents):
    value = field["value"]
    if contents and field["text"] is not None:
        value = {**value, "text": field["text"]}
    return value


def check_fields(object, wanted, contents):
    check_equal((object["address"], object["type"]), (wanted["address"], wanted["type"]), "object")
    check_equal([(f["name"], f["offset"], f["type"]) for f in object["fields"]],
                [(f["name"], f["offset"], f["type"]) for f in wanted["fields"]], "fields")
    for found, field in zip(object["fields"], wanted["fields"]):
        check_equal(found["value"], wanted_value(field, contents), f"{wanted['type']}.{field['name']}")
        check_equal(found["missing"] is None, contents or field["text"] is None, field["name"])


def check_objects(target):
    for wanted in target.hello["objects"]:
        inside = hex(int(wanted["address"], 16) + 9)
        for contents in 0, 1:
            found = show(target, inside, contents=contents)
            check_fields(found["object"], wanted, contents)
            check_equal(found["object"]["state"], "live", "state")
            check_equal(found["scan"]["warnings"], [], "warnings")


def check_kept(target):
    """What is kept of a process is what has pointers, and so is what is copied of a stopped one."""
    figures, order = (next(wanted for wanted in target.hello["objects"] if wanted["type"] == name)
                      for name in ("main.plain", "main.order"))
    kept = scan(target, "memusage", keep=60)["scan"]["id"]
    for asked in {"scan": kept}, {"mode": "stop"}:
        found = show(target, figures["address"], **asked)
        check_equal([(f["name"], f["value"], f["missing"]) for f in found["object"]["fields"]],
                    [(f["name"], None, "not kept") for f in figures["fields"]], asked)
        check("fields_not_kept" in [w["code"] for w in found["scan"]["warnings"]], asked)
        found = show(target, order["address"], **asked)
        for field, wanted in zip(found["object"]["fields"], order["fields"]):
            value = wanted["value"]
            if wanted["type"] == "chan int":  # without pointers in it
                value = value["pointer"]
            check_equal(field["value"], value, f"{asked}: {wanted['name']}")


def pairs(referrers):
    return sorted((row["address"] or "", row["field"] or "") for row in referrers)


def check_referrers(target):
    hello = target.hello
    shared = show(target, hello["shared"])["object"]
    # the function in it captures it, too: what captures nothing more is the variable's name
    hook = next(field["value"] for field in shared["fields"] if field["name"] == "Hook")
    named = [row for row in shared["referrers"] if row["address"] != hook]
    check_equal(pairs(named), pairs(hello["referrers"]), "referrers")
    check_equal(len(shared["referrers"]), len(named) + 1, "referrers with the closure")
    check_equal(shared["referrers_cut"], False, "referrers_cut")
    local = show(target, hello["local"])["object"]
    roots = [row["field"] for row in local["referrers"] if row["address"] is None]
    check(any(root.startswith("main.hold.mine") for root in roots), f"roots of a local: {roots}")


def check_paths(target):
    hello = target.hello
    last = show(target, hello["chain"][-1])["object"]
    frames = [step["frame"] for step in last["path"]]
    check_equal([step["address"] for step in last["path"] if step["address"]], hello["chain"],
                "addresses of the path")
    check_equal(frames[0], "main.orders", "root")
    check(all("Next" in frame for frame in frames[1:]), f"path {frames}")
    check_equal(last["path_cut"], False, "path_cut")
    far = show(target, hello["last"])["object"]
    check_equal((far["path_cut"], far["path"][0]["frame"], far["path"][-1]["address"]),
                (True, "main.links", hello["last"]), "a path that is cut")
    check_equal(far["retained_bytes"], far["bytes"], "the last of a list retains")
    first = show(target, far["path"][0]["address"])["object"]
    check_equal(first["retained_bytes"], 2000 * first["bytes"], "the first of a list retains")
    kept = show(target, hello["kept"])["object"]
    check_equal([row["field"] for row in kept["referrers"]], ["main.record.kept"], "a global's field")
    check_equal(kept["retained_bytes"], THING_BYTES, "retained")


def check_nowhere(target):
    for address in "0x0", "0x10", "0xffffffffffffffff":
        answer = daemon.get(f"/pid/{target.pid}/object/{address}?max_pause=10")
        check_equal((answer.status, answer.error_code()), (404, "not_found"), address)


# ---- pages ----

def pages(target, endpoint, rows, **parameters):
    """All rows, page by page, the scan of the first page being asked for the others."""
    answer = scan(target, endpoint, **parameters)
    first, found = answer["scan"]["id"], list(answer[rows])
    while answer["next_cursor"]:
        check_equal(len(answer[rows]), parameters["limit"], "rows of a page")
        answer = scan(target, endpoint, cursor=answer["next_cursor"], **parameters)
        check_equal(answer["scan"]["id"], first, "scan")
        found += answer[rows]
    check_equal(answer["more"], False, "more")
    return found


def check_pages(target, stripped):
    hello = target.hello
    # Of one scan: the runtime may start a thread between two.
    kept = scan(target, "memusage", keep=60)
    everything = pages(target, "objects", "objects", limit=1000, scan=kept["scan"]["id"])
    addresses = [int(row["address"], 16) for row in everything]
    check_equal(addresses, sorted(set(addresses)), "addresses")
    totals = kept["heap"]
    check_equal((len(everything), sum(row["bytes"] for row in everything)),
                (totals["live_objects"], totals["live_bytes"]), "objects and bytes on all pages")
    if stripped:
        return
    coins = pages(target, "objects", "objects", limit=500, type="main.coin")
    check_equal([row["address"] for row in coins], sorted(hello["coins"], key=lambda a: int(a, 16)),
                "coins")
    large = pages(target, "objects", "objects", limit=100, min_bytes=4096, retained=1)
    check_equal([row["address"] for row in large],
                [row["address"] for row in everything if row["bytes"] >= 4096], "large objects")
    check(all(row["retained_bytes"] >= row["bytes"] for row in large), "retained_bytes")


def check_dominators(target, stripped):
    hello = target.hello
    top = pages(target, "dominators", "nodes", limit=50)
    keys = [(row["address"], row["name"]) for row in top]
    sizes = [row["retained_bytes"] for row in top]
    check_equal(sizes, sorted(sizes, reverse=True), "order of nodes")
    check_equal(len(keys), len(set(keys)), "nodes that are listed twice")
    check_equal(sum(sizes), scan(target, "memusage")["heap"]["live_bytes"], "what the top retains")
    things = pages(target, "dominators", "nodes", limit=3, object=hello["chest"])
    check_equal(sorted(row["address"] for row in things), sorted(hello["things"]), "things")
    check_equal({(row["bytes"], row["retained_bytes"], row["children"]) for row in things},
                {(THING_BYTES, THING_BYTES, 0)}, "figures of things")
    if not stripped:
        vault = next(row for row in top if row["name"] == "main.vault")
        check_equal((vault["retained_bytes"], vault["children"]), (CHEST_BYTES + 10 * THING_BYTES, 1),
                    "main.vault")


# ---- tests ----

def test_version(version, experiment=""):
    name = gobuild.variant_name(version, experiment)

    @suite.test(f"{name}: objects are what the program says of them")
    def _():
        path = build_fixture("objects", version, experiment)
        with Fixture([path]) as target, unharmed(target.pid):
            check_histogram(target, version, False)
            check_objects(target)
            check_referrers(target)
            check_paths(target)
            check_kept(target)
            check_nowhere(target)

    @suite.test(f"{name}: pages are complete, and have nothing twice")
    def _():
        path = build_fixture("objects", version, experiment)
        with Fixture([path]) as target, unharmed(target.pid):
            check_pages(target, False)
            check_dominators(target, False)

    if version not in STRIPPED_VERSIONS and not STRESS:
        return

    @suite.test(f"{name}: a stripped program's objects sum up as well")
    def _():
        path = build_fixture("objects", version, experiment, flags=STRIPPED)
        with Fixture([path]) as target, unharmed(target.pid):
            check_histogram(target, version, True)
            check_pages(target, True)
            check_dominators(target, True)


for runtime in gobuild.VARIANTS if STRESS else [(version,) for version in gobuild.VERSIONS]:
    test_version(*runtime)


@suite.test("label sets say of what types it is what they hold alone")
def _():
    with Fixture([build_fixture("tenants", "1.26"), "shares"]) as target:
        found = scan(target, "memusage", detail=1)["labels"]
        hello, last = target.hello, f"tenant-number-{target.hello['tenants']:012}"
        rings = hello["shards"] * hello["ring_bytes"]
        for row in found["sets"]:
            types = [(entry["type"], entry["bytes"]) for entry in row["top_types"]]
            check(len(types) <= 5, types)
            check_equal(types, sorted(types, key=lambda pair: -pair[1]), "order")
            if row["labels"]["tenant"] != last:
                check_equal(types[0], ("main.node", rings), row["labels"])
            check(sum(size for _, size in types) <= row["exclusive_bytes"], "sum")
        check("runtime.g" in [entry["type"] for entry in found["system"]["top_types"]], "system")
        census = scan(target, "memusage", detail=1, depth="census")["labels"]
        check_equal({row["top_types"] is None for row in census["sets"]}, {True}, "census")


def without_types(answer):
    """What detail=1 adds left out, and what differs between two answers from one scan."""
    if isinstance(answer, dict):
        return {key: without_types(value) for key, value in answer.items()
                if key not in ("top_types", "parked_goroutines", "scan")}
    return [without_types(value) for value in answer] if isinstance(answer, list) else answer


def check_top_types(hello, found):
    """Each tenant's streams hold so many rings of nodes, but for the last tenant, which has none."""
    rings = hello["shards"] * hello["ring_bytes"]
    last = f"tenant-number-{hello['tenants']:012}"
    node = {"type": "main.node", "objects": rings // hello["ring_bytes"] * hello["ring_nodes"],
            "bytes": rings}
    for row in found["labels"]["sets"]:
        if row["labels"]["tenant"] != last:
            check_equal(row["top_types"][0], node, row["labels"])
    whole = {**node, "objects": node["objects"] * hello["streams"],
             "bytes": node["bytes"] * hello["streams"]}
    check_equal(found["selection"]["top_types"][0], whole, "selection")
    by_value = {group["value"]: group["top_types"] for group in found["groups"]}
    check_equal(len(by_value), len(found["groups"]), "values")
    for value, types in by_value.items():
        if value == "tenant-number-" + "0" * 12:
            check_equal(types, found["selection"]["top_types"], "the group that is the selection")
        check(types is not None, value)


@suite.test("selections and groups say it of all that they hold together")
def _():
    with Fixture([build_fixture("tenants", "1.26"), "shares"]) as target:
        hello, tenant = target.hello, "tenant-number-" + "0" * 12
        found = scan(target, "memusage", detail=1, by="tenant")
        values = {group["value"]: group for group in found["groups"]}
        check_equal(len(values), hello["tenants"] + 2, "groups")
        rings = hello["shards"] * hello["ring_bytes"] * hello["streams"]
        for number in range(hello["tenants"]):
            first = values[f"tenant-number-{number:012}"]["top_types"][0]
            check_equal((first["type"], first["bytes"], first["objects"] * hello["ring_bytes"]),
                        ("main.node", rings, rings * hello["ring_nodes"]), number)
        check_equal(values[None]["top_types"], found["labels"]["unlabelled"]["top_types"],
                    "goroutines without the label")
        check_top_types(hello, scan(target, "memusage", detail=1, by="tenant",
                                    label=f"tenant={tenant}"))
        entries = scan(target, "memusage", detail=1, by="@entry")["groups"]
        check_equal({group["top_types"] is None for group in entries}, {False}, "by first function")
        census = scan(target, "memusage", detail=1, depth="census", by="tenant",
                      label=f"tenant={tenant}")
        check_equal({group["top_types"] for group in [*census["groups"], census["selection"]]},
                    {None}, "census")


@suite.test("kept scans say it, too, made with detail or without, when their target is gone")
def _():
    with Fixture([build_fixture("tenants", "1.26"), "shares"]) as target:
        question = {"by": "tenant", "label": "tenant=tenant-number-" + "0" * 12}
        plain = scan(target, "memusage", keep=300, **question)
        detailed = scan(target, "memusage", keep=300, detail=1, **question)
        by_entry = scan(target, "memusage", keep=300, by="@entry")
        census = scan(target, "memusage", keep=300, depth="census")
        hello = target.hello
        target.close()
        check_top_types(hello, detailed)
        check("top_types" not in plain["selection"], "asked for without detail")
        for first in plain, detailed:
            query = "&".join(f"{key}={value}" for key, value in question.items())
            path = f"/pid/{target.pid}/memusage?scan={first['scan']['id']}&detail=1&{query}"
            answer = daemon.get(f"{path}&format=json")
            check_equal(answer.status, 200, answer.text()[:300])
            check_top_types(hello, answer.json())
            check_equal(without_types(answer.json()), without_types(first), "the rest")
            check_equal(answer.json()["scan"]["warnings"], first["scan"]["warnings"], "warnings")
            check("parked" in daemon.get(f"{path}&format=text").text(), "text")
        kept = daemon.get(f"/pid/{target.pid}/memusage?scan={by_entry['scan']['id']}&by=@entry"
                          "&detail=1").json()
        check_equal({group["top_types"] is None for group in kept["groups"]}, {False}, "@entry")
        path = f"/pid/{target.pid}/memusage?scan="
        check_equal(daemon.get(f"{path}{census['scan']['id']}&detail=1").status, 400, "census")
        check_equal(daemon.get(f"{path}{plain['scan']['id']}&detail=1").status, 200, "no question")


@suite.test("goheap says the same")
def _():
    path = build_fixture("objects", gobuild.VERSIONS[-1])
    with Fixture([path]) as target:
        pid, address = str(target.pid), target.hello["chest"]
        for words, field in ((["histogram", pid], "types"), (["objects", pid], "objects"),
                             (["object", pid, address], "object"), (["dominators", pid], "nodes")):
            for how in ["--socket", str(daemon.socket)], ["--direct"]:
                for form in "json", "text":
                    done = subprocess.run(
                        [program("goheap"), *words, *how, "--format", form, "--max-pause", "10"],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
                    check_equal(done.returncode, 0, done.stderr)
                    if form == "json":
                        check(json.loads(done.stdout)[field], f"{words} has no {field}")


with tempfile.TemporaryDirectory(prefix="goheapd-objects-") as folder:
    config = pathlib.Path(folder, "goheapd.conf")
    config.write_text("min_stop_interval = 0\nmax_kept_scans = 64\n")
    with Daemon("--config", config) as daemon:
        suite.run()
