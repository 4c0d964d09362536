#!/usr/bin/env python3
"""What has changed between two scans, over some seconds or since one that is kept."""

import os
import pathlib
import subprocess
import tempfile
import time

from harness import Daemon, need_root, program
from profile_rules import CheckedProfile
from tap import Suite, check, check_equal

PID, MINE, GROWS, USER = 4242, 4244, 4295, 1234
SESSIONS = ["main.sessions", "$mapval. (*main.Session)"]

suite = Suite()
daemon = None


def get(path, pid=GROWS):
    answer = daemon.get(f"/pid/{pid}/{path}")
    check_equal(answer.status, 200, f"{path}: {answer.body[:300]}")
    return answer


def diff(query, pid=GROWS):
    return get(f"diff?{query}", pid).json()["diff"]


def keep(pid=GROWS, query="max_age=0"):
    """The id of a scan that is kept, and when it was made."""
    scan = get(f"memusage?keep=600&{query}", pid).json()["scan"]
    return scan["id"], scan["started_at"]


def check_growth(found, sessions):
    """By as many sessions, each in half a minute of its own."""
    grown = {"objects": sessions, "bytes": sessions * 96}
    check_equal(found["heap"], {"live_objects": sessions, "live_bytes": sessions * 96}, "heap")
    check_equal(found["types"], [{"type": "main.Session", **grown}], "types")
    check_equal(found["references"], [{"chain": SESSIONS, "labels": None, **grown}], "references")
    check_equal(found["unknown"], {"objects": 0, "bytes": 0}, "unknown")
    check_equal(found["seconds"], sessions / 4, "seconds")
    check_equal(found["slope_bytes_per_second"], 384.0, "slope")


@suite.test("two scans over some seconds say what has grown, and how long that can go on")
def _():
    begin = time.monotonic()
    found = diff("over=1.2")
    check(time.monotonic() - begin >= 1.2, "too early")
    check_growth(found, 120)
    check_equal(found["labels"], [{"labels": {"job": "41", "tenant": "acme"}, "goroutines": 120,
                                   "reachable_bytes": 122880, "exclusive_bytes": 122880}],
                "labels")
    check(found["from"] != found["to"], "ids")
    # the control group's limit is nearer than GOMEMLIMIT: 8589934592 less 8332236554
    check_equal(round(found["seconds_to_limit"]), round(257698038 / 384), "seconds to the limit")


@suite.test("since the id of a kept scan, and since a time")
def _():
    first, at = keep()
    second, _ = keep()
    check_growth(diff(f"since={first}"), 240)
    check_growth(diff(f"since={second}"), 240)
    found = diff(f"since={first}&scan={second}")
    check_growth(found, 120)
    check_equal((found["from"], found["to"]), (first, second), "ids")
    check_equal(diff(f"since={at}")["from"], first, "the newest from before then")
    refused = daemon.get(f"/pid/{GROWS}/diff?since=2001-01-01T00:00:00Z")
    check_equal((refused.status, refused.error_code()), (404, "not_found"), "too early")
    check("the oldest is of " in refused.text(), refused.text())


@suite.test("backwards, and with itself")
def _():
    first, _ = keep()
    second, _ = keep()
    found = diff(f"since={second}&scan={first}")
    check_equal(found["heap"], {"live_bytes": -11520, "live_objects": -120}, "heap")
    check_equal((found["seconds"], found["slope_bytes_per_second"], found["seconds_to_limit"]),
                (-30.0, None, None), "slope")
    check_equal(found["references"][0]["bytes"], -11520, "references")
    found = diff(f"since={first}&scan={first}")
    for part in "types", "labels", "references":
        check_equal(found[part], [], part)


@suite.test("two processes are compared by names")
def _():
    other, _ = keep(PID)
    later, _ = keep()
    found = diff(f"since={other}&scan={later}")
    check_equal(found["from_pid"], PID, "pid")
    check_equal((found["slope_bytes_per_second"], found["seconds_to_limit"]), (None, None), "slope")
    check(found["references"][0]["chain"] == SESSIONS, str(found["references"]))
    check("FROM   checkout (shop/checkout) pid 4242" in
          get(f"diff?since={other}&scan={later}&format=text").text(), "text")


@suite.test("chains carry labels and modules if that is asked for")
def _():
    found = diff("over=0.1&labels=1")
    check_equal(found["references"][0]["labels"], {}, "labels")
    found = diff("over=0.1&by=@module")
    check_equal(found["references"][0]["chain"], ["shop/checkout", *SESSIONS], "chain")


@suite.test("small changes are folded, sums kept")
def _():
    found = diff("over=0.1&max_depth=1")
    check_equal([row["chain"] for row in found["references"]], [["main.sessions"]], "depth")
    found = diff("over=0.1&min_bytes=1000000")
    check_equal([row["chain"] for row in found["references"]], [["other"]], "min_bytes")
    check_equal(found["references"][0]["bytes"], found["heap"]["live_bytes"], "sum")


@suite.test("as a profile it has signed values")
def _():
    for path in "diff?format=pprof&over=0.1", "debug/pprof/heap?seconds=1":
        answer = get(path)
        check_equal(answer.headers["Content-Type"], "application/octet-stream", path)
        found = CheckedProfile(answer.body)
        found.check_limits()
        check_equal(found.duration, 30 * 10**9, path)
        check_equal(found.types[1], ("inuse_space", "bytes"), path)
        check_equal(found.totals(), [120, 11520], path)
        check_equal(found.values_of(*SESSIONS), [120, 11520], path)
        check(any("change since scan" in text for text in found.comments), path)
    first, _ = keep()
    second, _ = keep()
    back = CheckedProfile(get(f"diff?format=pprof&since={second}&scan={first}").body)
    check_equal(back.totals(), [-120, -11520], "backwards")
    check_equal(back.duration, 0, "duration")


@suite.test("as text it is one screen")
def _():
    text = get("diff?over=0.1&format=text").text()
    lines = text.splitlines()
    check(lines[1].startswith("CHANGE in 30.0 s: live +11.2 KiB, +120 objects; +384 B/s, limit in"),
          text)
    check(any(line.split() == ["+11.25", "+120", *"main.sessions > $mapval.".split(),
                               "(*main.Session)"] for line in lines), text)
    check("job=41,tenant=acme" in text, text)
    check(len(lines) < 30 and all(len(line) <= 96 for line in lines), text)


@suite.test("what is missing or contradicts itself is named")
def _():
    kept, _ = keep()
    for query, words in (("", "over=SECONDS"), (f"over=1&since={kept}", "not both"),
                         (f"over=1&scan={kept}", "since="), ("over=0", "over=0"),
                         ("over=x", "over=x"), ("since=yesterday", "since=yesterday"),
                         ("since=", "since="), (f"since={kept}&depth=census", "depth=census"),
                         (f"since={kept}&by=tenant", "by")):
        answer = daemon.get(f"/pid/{GROWS}/diff?{query}")
        check_equal((answer.status, answer.error_code()), (400, "bad_request"), query)
        check(words in answer.json()["error"]["message"], answer.text())
    answer = daemon.get(f"/pid/{GROWS}/diff?since=0123456789abcdef")
    check_equal((answer.status, answer.error_code()), (404, "not_found"), "unknown id")
    answer = daemon.get(f"/pid/{GROWS}/diff?since=0123456789abcdef&format=pprof")
    check(answer.text().startswith("not_found: "), answer.text())


@suite.test("a user learns nothing of another user's process from its scan's id")
def _():
    need_root()
    foreign, own = keep(PID)[0], keep(MINE)[0]
    for since, status in (own, "200"), (foreign, "403"):
        done = subprocess.run(
            ["curl", "-s", "-w", "\n%{http_code}",
             f"http://127.0.0.1:{daemon.port}/pid/{MINE}/diff?since={since}"],
            stdout=subprocess.PIPE, text=True, check=True, user=USER, group=USER,
            extra_groups=[])
        body, _, code = done.stdout.rpartition("\n")
        check_equal(code, status, body)
        check(foreign not in body, body)


with tempfile.TemporaryDirectory(prefix="goheapd-diff-") as folder:
    settings = pathlib.Path(folder, "goheapd.conf")
    settings.write_text("min_stop_interval = 0\n")
    os.environ["FAKE_AGENT_UID"] = str(USER)
    with Daemon("--agent", program("tests/support/fake_agent"), "--config", settings) as daemon:
        suite.run()
