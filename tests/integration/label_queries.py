#!/usr/bin/env python3
"""label=, by= and detail=: what requests and goheap may ask of labels, with an agent that answers from
a can and with a real program."""

import json
import os
import pathlib
import subprocess
import tempfile
import urllib.parse

from harness import Daemon, Fixture, build_fixture, need_root, program
from tap import Suite, check, check_equal

PID, FAILURES = 4242, 4250
PATH = f"/pid/{PID}/memusage"
FAKE = program("tests/support/fake_agent")
KEY_MAX, VALUE_MAX = 1024, 1 << 20

suite = Suite()
daemon = None


def check_error(answer, status, code):
    check_equal((answer.status, answer.error_code()), (status, code), answer.text()[:300])


def goheap(*arguments):
    return subprocess.run([program("goheap"), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                          timeout=60, text=True)


def ways():
    """How to reach the fake agent: through the daemon, and without one."""
    return ("--socket", daemon.socket), ("--direct", "--agent", FAKE)


def asked():
    """What the agent was last asked of labels."""
    return [line for line in daemon.log().splitlines() if line.startswith("fake: labels")][-1]


# ---- what is answered ----

@suite.test("labels are there without being asked for, the rest only when it is")
def _():
    found = daemon.get(PATH).json()
    check_equal(set(found["labels"]), {"status", "sets", "unlabelled", "system", "global"},
                "labels")
    check(not {"selection", "groups"} & set(found), found.keys())
    check("parked_goroutines" not in found["labels"]["sets"][0], "detail")
    shares = [found["labels"][key]["share_bytes"] for key in ("unlabelled", "system", "global")]
    shares += [row["share_bytes"] for row in found["labels"]["sets"]]
    check_equal(sum(shares), found["heap"]["live_bytes"], "shares")
    check_equal(found["labels"]["unlabelled"]["labels"], {}, "labels of unlabelled")


@suite.test("a selection says what matched, and none is no error")
def _():
    found = daemon.get(f"{PATH}?label=tenant=acme").json()["selection"]
    check_equal((found["labels"], found["matched_goroutines"], found["exclusive_bytes"]),
                ({"tenant": "acme"}, 212, 2400 << 20), "acme")
    answer = daemon.get(f"{PATH}?label=tenant=acme&label=tenant=nobody")
    found = answer.json()["selection"]
    check_equal((answer.status, found["matched_goroutines"], found["exclusive_bytes"]),
                (200, 0, 0), "nobody")


@suite.test("groups have values, and null for those without")
def _():
    found = daemon.get(f"{PATH}?by=job&detail=1").json()["groups"]
    check_equal([group["value"] for group in found], ["41", 'a,"b"=\n\\', None], "values")
    for group in found:
        check_equal(group["top_types"], None, "top_types")
        check_equal(group["parked_goroutines"], group["goroutines"] // 2, "parked")


@suite.test("goroutines have their labels, none, or the reason why they could not be read")
def _():
    found = daemon.get(f"/pid/{PID}/goroutines?dead=1").json()["goroutines"]
    check_equal([(g["labels"], g["label_error"]) for g in found],
                [({"job": 'a,"b"=\n\\', "tenant": "\ufffd\x1b[31m"}, None),
                 (None, "the string of a value is not in memory"), ({}, None)], "labels")


# ---- how it is asked ----

@suite.test("labels are decoded from query and path alike")
def _():
    for path in (f"{PATH}?label=tenant=a%20b&label=x=%3D&by=@entry",
                 f"{PATH}?label=x%3D%3D&label=tenant%3Da+b&by=%40entry",
                 f"{PATH}/label=tenant=a%20b/label=x==/by=@entry",
                 f"{PATH}/label=x%3D%3D?label=tenant=a+b&by=@entry"):
        check_equal(daemon.get(path).status, 200, path)
        check_equal(asked(), "fake: labels want=1 detail=0 by=@entry tenant=3 bytes x=1 bytes",
                    path)
    daemon.get(f"{PATH}?label=k={urllib.parse.quote(bytes(range(256)))}")
    check_equal(asked(), "fake: labels want=1 detail=0 by= k=256 bytes", "every byte")
    found = daemon.get(f"{PATH}?label=k=%ff%00").json()["selection"]["labels"]
    check_equal(found, {"k": "\ufffd\0"}, "labels of the selection")


@suite.test("limits are the contract's, to the byte")
def _():
    def ask(query):
        return daemon.get(f"{PATH}?max_age=60&{query}")
    for query in (f"label={'k' * KEY_MAX}=v", f"label=k={'v' * VALUE_MAX}",
                  f"label=k={'%76' * VALUE_MAX}", f"by={'k' * KEY_MAX}",
                  "&".join(f"label=k={i}" for i in range(64))):
        check_equal(ask(query).status, 200, query[:40])
    for query, code in ((f"label={'k' * (KEY_MAX + 1)}=v", "label_too_long"),
                        (f"label=k={'v' * (VALUE_MAX + 1)}", "label_too_long"),
                        (f"label=k={'%76' * (VALUE_MAX + 1)}", "label_too_long"),
                        (f"by={'k' * (KEY_MAX + 1)}", "label_too_long"),
                        ("&".join(f"label=k={i}" for i in range(65)), "too_many_labels"),
                        ("&".join(f"label=k={i}" for i in range(500)), "too_many_labels"),
                        ("label==v", "empty_label_key"), ("label=", "empty_label_key"),
                        ("by=", "empty_label_key"), ("label=k", "bad_request"),
                        ("by=@", "bad_request"), ("by=@created", "bad_request"),
                        ("by=a&by=b", "bad_request"), ("detail=yes", "bad_request"),
                        ("label=k=%zz", "bad_request")):
        check_error(ask(query), 400, code)


@suite.test("a request line that is larger than any label is refused, and harms nothing")
def _():
    check_equal(daemon.get(f"{PATH}?label=k={'v' * (6 << 20)}").status, 414, "status")
    check_equal(daemon.get("/healthz").status, 200, "afterwards")


@suite.test("a selection that could have missed somebody is refused")
def _():
    for number, code in (21, "label_recovery_failed"), (22, "string_missing"):
        check_error(daemon.get(f"/pid/{FAILURES + number}/memusage?label=a=b"), 422, code)


@suite.test("values that were asked for are not in the log")
def _():
    daemon.get(f"{PATH}?label=tenant=topsecret&mode=stop")
    daemon.get(f"{PATH}/label=tenant=topsecret?mode=wrong")
    daemon.get(f"/pid/{FAILURES + 21}/memusage?%6cabel=tenant=topsecret")
    check("topsecret" not in daemon.log(), "the log has it")
    check(f"path={PATH}?label=&mode=stop" in daemon.log(), "the rest of the path")


@suite.test("a kept scan answers what it was asked, and less")
def _():
    def scan(query):
        found = daemon.get(f"/pid/4244/memusage?{query}").json()
        return found["scan"]["id"], found["scan"]["cached"]
    first, _ = scan("label=a=1&label=b=2")
    check_equal(scan("max_age=60&label=b=2&label=a=1"), (first, True), "the same, other order")
    check_equal(scan("max_age=60"), (first, True), "less")
    for query in "label=a=1", "label=a=1&label=b=2&by=x", "label=a=1&label=b=2&detail=1":
        check(not scan(f"max_age=60&{query}")[1], query)


# ---- goheap ----

@suite.test("goheap asks for labels through the daemon and without one alike")
def _():
    options = ("--label", "tenant=acme", "--label", "x=a b&c=d/%", "--by", "job", "--detail")
    pages = [goheap("memusage", PID, *options, *how) for how in ways()]
    check_equal({page.returncode for page in pages}, {0}, pages[0].stderr)
    check_equal(pages[0].stdout, pages[1].stdout, "text")
    check('  tenant=acme,x="a b&c=d/%"' in pages[0].stdout, pages[0].stdout)
    check_equal(asked(), "fake: labels want=1 detail=1 by=job tenant=4 bytes x=9 bytes", "asked")
    check("fake: labels want=1 detail=1 by=job tenant=4 bytes x=9 bytes" in pages[1].stderr,
          pages[1].stderr)
    found = json.loads(goheap("memusage", PID, *options, *ways()[0], "--format", "json").stdout)
    check(found["selection"] and found["groups"], found.keys())


@suite.test("goheap labels counts goroutines by a census")
def _():
    pages = [goheap("labels", PID, *how) for how in ways()]
    check_equal({page.returncode for page in pages}, {0}, pages[0].stderr)
    check_equal(pages[0].stdout, pages[1].stdout, "text")
    lines = pages[0].stdout.splitlines()
    check_equal(lines[2:4], ["GOROUTINES      STACKS  LABELS",
                             "       201    30.0 MiB  job=41,tenant=acme"], "table")
    check_equal(lines[-2:], ["    17,895     130 MiB  no label",
                             "         5    2.00 MiB  system"], "table")
    check("depth=1" in [line for line in daemon.log().splitlines()
                        if line.startswith("fake: scan")][-1], "census")
    for how in ways():
        found = json.loads(goheap("labels", PID, *how, "--format", "json").stdout)
        check("memory" not in found and len(found["labels"]["sets"]) == 6, found.keys())


@suite.test("goheap says what is wrong with a label")
def _():
    for how in ways():
        for label in "tenant", "=acme", f"{'k' * (KEY_MAX + 1)}=v":
            done = goheap("memusage", PID, "--label", label, *how)
            check_equal((done.returncode, done.stdout), (2, ""), done.stderr)
            check("label" in done.stderr, done.stderr)


# ---- a real program ----

@suite.test("of a real program tenants and jobs are told apart")
def _():
    need_root()
    with Daemon() as real, Fixture([build_fixture("demo", "1.26")]) as target:
        found = real.scan(target.pid, label="tenant=acme", by="job", detail=1)
        check_equal((found["selection"]["matched_goroutines"],
                     found["selection"]["parked_goroutines"]), (40, 40), "selection")
        jobs = [group for group in found["groups"] if group["value"] is not None]
        check_equal({group["value"] for group in jobs}, {str(i) for i in range(40)}, "jobs")
        check_equal({group["goroutines"] for group in jobs}, {1}, "goroutines of each")
        labels = found["labels"]
        shares = [row["share_bytes"] for row in
                  [*labels["sets"], labels["unlabelled"], labels["system"], labels["global"]]]
        check_equal(sum(shares), found["heap"]["live_bytes"], "shares")
        census = goheap("labels", target.pid, "--socket", real.socket)
        check_equal(census.returncode, 0, census.stderr)
        check("job=39,tenant=acme" in census.stdout and "68 label sets" in census.stdout,
              census.stdout)


with tempfile.TemporaryDirectory(prefix="goheapd-labels-") as folder:
    os.chmod(folder, 0o755)
    config = pathlib.Path(folder, "goheapd.conf")
    config.write_text("min_stop_interval = 0\n")
    with Daemon("--agent", FAKE, "--config", config) as daemon:
        suite.run()
