#!/usr/bin/env python3
"""Reference chains as profiles: what a reader of the format finds in them, and what go tool pprof
makes of them. The chains are canned; whether they are the target's is for references.py."""

import os
import pathlib
import subprocess
import tempfile

import gobuild
from harness import STRESS, Daemon, Fixture, build_fixture, need_root, program
from profile_rules import CheckedProfile
from tap import Skip, Suite, check, check_equal

PID, BARE, FAILURES, HUGE, GROWS = 4242, 4293, 4250, 4294, 4295
LIVE_BYTES, LIVE_OBJECTS = 5599395840, 41000000
SESSIONS = ("main.sessions", "$mapval. (*main.Session)")

suite = Suite()
daemon = None
folder = None


def get(path, pid=PID):
    answer = daemon.get(f"/pid/{pid}/{path}")
    check_equal(answer.status, 200, f"{path}: {answer.body[:300]}")
    return answer


def profile(query="", pid=PID):
    return CheckedProfile(get(f"profile?{query}", pid).body)


@suite.test("the format's rules are kept, and every sum")
def _():
    found = profile()
    found.check_limits()
    check_equal(found.types, [("inuse_objects", "count"), ("inuse_space", "bytes")], "types")
    check_equal(found.default_type, "inuse_space", "default type")
    check_equal((found.period_type, found.period), (("space", "bytes"), 1), "period")
    check_equal(found.totals(), [LIVE_OBJECTS, LIVE_BYTES], "totals")
    check_equal((found.mapping_file, found.build_id), ("/usr/bin/checkout", "abcdef0123"),
                "mapping")
    check_equal(found.duration, 0, "duration")
    check_equal(found.time, 1770087491250000000, "time")
    head = "\n".join(found.comments)
    for part in ("goheapd ", "checkout pid 4242", "go1.26.11", "mode fork", "stopped 11.300 ms",
                 "self-check ok"):
        check(part in head, f"{part!r} is in {head}")


@suite.test("chains have their frames, files and lines, and hostile names their signs")
def _():
    found = profile()
    check_equal(found.values_of(*SESSIONS), [2000000, 2 << 30], "sessions")
    sample = next(s for s in found.samples if s.frames[-1] == "[10+]. (main.Item)")
    check_equal(found.place_of(sample.frames[0]), ("/src/main.go", 12), "root")
    check_equal(sample.frames, (*SESSIONS, "cart. ([]main.Item)", "[10+]. (main.Item)"), "chain")
    check_equal(found.values_of('main.\\x1b[31m�"\\x0a'), [1, 16], "escaped, U+FFFD")
    check(not any(sign < " " for text in found.strings for sign in text), "control characters")
    used = next(s for s in found.samples if s.frames[-1] == "cart. ([]main.Item)")
    check_equal(used.numbers, {"used_bytes": [1 << 26]}, "used bytes")
    check_equal(found.units(), {"used_bytes": "bytes"}, "units")
    check_equal([s.labels for s in found.samples], [{}] * len(found.samples), "labels")


@suite.test("labels=1 has legal keys, and says what they were")
def _():
    found = profile("labels=1")
    found.check_limits()
    labelled = [(s.frames, s.labels) for s in found.samples if s.labels]
    check_equal(labelled, [
        (("main.fetch.buf",), {"job_id": ["42"], "tenant": ["acme"]}),
        (("main.fetch.buf", "$sub_objects$"), {"job_id": ["42"], "tenant": ["acme"]}),
        (("main.fetch.buf",), {"job_id": ["43"], "tenant": ["�"]})], "labels")
    check("label job_id is job.id" in found.comments, str(found.comments))
    check_equal(found.totals(), [LIVE_OBJECTS, LIVE_BYTES], "totals")


@suite.test("by=@module begins with the modules")
def _():
    found = profile("by=@module")
    check_equal({s.frames[0] for s in found.samples}, {"shop/checkout", "example.com/lru"},
                "roots")
    check_equal(found.totals(), [LIVE_OBJECTS, LIVE_BYTES], "totals")


@suite.test("sample=retained is a type of its own")
def _():
    found = profile("sample=retained")
    check_equal(found.types, [("retained_objects", "count"), ("retained_space", "bytes")], "types")
    check_equal(found.default_type, "retained_space", "default type")


@suite.test("depth and samples are limited as asked for, sums kept")
def _():
    for query, samples, depth in (("max_depth=1", 16000, 1), ("max_depth=2", 16000, 2),
                                  ("max_samples=1", 1, 5), ("max_samples=5", 5, 5)):
        found = profile(query)
        found.check_limits(samples)
        check(max(len(s.frames) for s in found.samples) <= depth, f"{query}: frames")
        check_equal(found.totals(), [LIVE_OBJECTS, LIVE_BYTES], query)
        check_equal("other" in [s.frames[-1] for s in found.samples], "samples" in query, query)


@suite.test("a profile that would be too large is folded, its sums kept")
def _():
    for query, samples in ("", 16000), ("max_samples=200000", 200000), ("max_samples=77", 77):
        found = profile(query, HUGE)
        found.check_limits(samples)
        check(len(found.samples) > samples // 3 or found.size > 2 << 20,
              f"{query}: only {len(found.samples)} samples, {found.size} bytes")
        check_equal(found.totals()[0], 80000, query)
        check_equal(found.totals()[1], sum(16 + i * 7919 % 4096 for i in range(80000)), query)


@suite.test("parameters may stand in the path")
def _():
    found = CheckedProfile(get("profile/max_depth=1/labels=1").body)
    check_equal(max(len(s.frames) for s in found.samples), 1, "frames")
    check(any(s.labels for s in found.samples), "labels")
    check(CheckedProfile(get("debug/pprof/heap/max_depth=1").body).samples, "samples")


@suite.test("the answer is a file, and its bytes are the payload")
def _():
    for path in "profile", "debug/pprof/heap?debug=0&gc=1":
        answer = get(path)
        name = path.partition("?")[0].rpartition("/")[2]
        check_equal(answer.headers["Content-Type"], "application/octet-stream", path)
        check_equal(answer.headers["Content-Disposition"],
                    f'attachment; filename="checkout-{PID}-{name}.pb.gz"', path)
        check_equal(answer.headers["Content-Encoding"], None, path)
        check_equal(answer.headers["X-Content-Type-Options"], "nosniff", path)
    check_equal(get("profile").body, get("debug/pprof/heap").body, "the same by both names")


@suite.test("HEAD has the headers and stops nobody")
def _():
    scans = daemon.log().count("fake: scan")
    answer = daemon.request("HEAD", f"/pid/{PID}/profile")
    check_equal((answer.status, answer.body), (200, b""), "HEAD")
    check("filename=" in answer.headers["Content-Disposition"], "disposition")
    check_equal(daemon.log().count("fake: scan"), scans, "scans")


def check_refused(path, status, *parts):
    answer = daemon.get(path)
    check_equal(answer.status, status, f"{path}: {answer.body[:200]}")
    check(answer.headers["Content-Type"].startswith("text/plain"), path)
    check_equal(answer.headers["X-Go-Pprof"], "1", path)
    check_equal(answer.headers["Content-Disposition"], None, path)
    check_equal(answer.text().count("\n"), 1, f"{path}: {answer.text()}")
    for part in parts:
        check(part in answer.text(), f"{path}: {answer.text()}")


@suite.test("errors are one line of plain text, which go tool pprof shows")
def _():
    for query, name in (("max_depth=0", "max_depth"), ("max_depth=1025", "max_depth"),
                        ("max_samples=0", "max_samples"), ("min_bytes=x", "min_bytes"),
                        ("sample=all", "sample"), ("labels=2", "labels"), ("by=tenant", "by"),
                        ("by=@entry", "by"), ("depth=census", "depth"), ("nosuch=1", "nosuch"),
                        ("debug=1", "debug"), ("format=json", "json"), ("label=a=b", "label")):
        check_refused(f"/pid/{PID}/profile?{query}", 400, "bad_request", name)
    for query in "seconds=0", "seconds=x", "seconds=1&debug=1", "debug=3", "gc=x":
        check_refused(f"/pid/{PID}/debug/pprof/heap?{query}", 400, query.partition("=")[0])
    check_refused(f"/pid/{FAILURES + 5}/profile", 409, "already_traced", "the target said no")
    check_refused(f"/pid/{FAILURES + 16}/debug/pprof/heap", 429, "busy")
    check_refused("/pid/4000/profile", 404, "no_such_process")
    check_refused("/comm/checkout/profile", 409, "ambiguous")


@suite.test("Go's other names are refused in plain words")
def _():
    for name in ("allocs", "block", "mutex", "profile", "trace", "threadcreate", "cmdline",
                 "symbol", "heap/x", "nosuch"):
        check_refused(f"/pid/{PID}/debug/pprof/{name}", 404, "heap and goroutine")
    for path in "/debug/pprof", "/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap":
        check_refused(path, 404, "/pid/N/debug/pprof/heap")


@suite.test("goroutines answer what there is, and say what there is not")
def _():
    path = "debug/pprof/goroutine"
    check_equal(get(f"{path}?debug=2").body, get("goroutines?format=text").body, "debug=2")
    check_equal(get(f"{path}?format=json").json()["goroutines"],
                get("goroutines").json()["goroutines"], "json")
    for query in "", "?debug=0", "?debug=1", "?seconds=1":
        check_refused(f"/pid/{PID}/{path}{query}", 404, "not_found", "in this version", "debug=2")


@suite.test("the index is a page, or lines")
def _():
    page = get("debug/pprof/")
    check_equal(page.headers["Content-Type"], "text/html; charset=utf-8", "type")
    check(f'href="/pid/{PID}/debug/pprof/heap"' in page.text(), page.text())
    lines = get("debug/pprof?format=text").text().splitlines()
    for line in lines:
        path = line.partition("\t")[0]
        check_equal(daemon.get(path).status, 200, path)


@suite.test("heap?debug=1 is a table of the largest")
def _():
    text = get("debug/pprof/heap?debug=1").text()
    rows = [line.split(maxsplit=3) for line in text.splitlines()]
    check(["2.25", "43%", "2,001,101", "main.sessions"] in rows, text)
    check(["2.00", "38%", "2,000,000", "*main.Session"] in rows, text)
    check(["0.68", "13%", "4,000", "main.cache > (*lru.Cache)"] in rows, text)
    check("\x1b" not in text, text)
    check_equal(text, get("debug/pprof/heap?format=text").text(), "format=text")


# ---- go tool pprof ----

def pprof(*arguments):
    """The tool itself, which takes addresses, too."""
    try:
        tool = gobuild.build_command("pprof", "1.27")
    except gobuild.ToolchainMissing as error:
        raise Skip(str(error)) from error
    environment = {**os.environ, "HOME": folder, "PPROF_TMPDIR": folder, "no_proxy": "*",
                   "TZ": "UTC"}
    done = subprocess.run([tool, *map(str, arguments)], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


def read(*arguments):
    status, out, err = pprof(*arguments)
    check_equal(status, 0, f"{arguments}: {err}")
    return out


def url(path, pid=PID):
    return f"http://127.0.0.1:{daemon.port}/pid/{pid}/{path}"


def saved(name, query="", pid=PID):
    path = pathlib.Path(folder, name)
    path.write_bytes(get(f"profile?{query}", pid).body)
    return path


def check_rows(text, *rows):
    found = [line.split() for line in text.splitlines()]
    for row in rows:
        check(row.split() in found, f"{row!r} in {text}")


@suite.test("go tool pprof reads it from its address")
def _():
    raw = read("-raw", url("debug/pprof/heap"))
    check("inuse_objects/count inuse_space/bytes[dflt]" in raw, raw)
    check_rows(raw, "2000000 2147483648: 2 1", "PeriodType: space bytes", "Period: 1",
               "1: 0x0/0x0/0x0 /usr/bin/checkout abcdef0123 [FN][FL][LN][IN]")
    check("cart. ([]main.Item)" in raw, raw)
    top = read("-top", "-unit=B", "-nodecount=3", url("profile"))
    check_rows(top, "2147483648B 38.35% 82.09% 2415983104B 43.15% $mapval. (*main.Session)")


@suite.test("go tool pprof shows chains, labels and objects")
def _():
    path = saved("labels.pb.gz", "labels=1")
    traces = read("-traces", "-unit=B", path)
    check_rows(traces, "used_bytes: 64MB", "268435456B cart. ([]main.Item)",
               "job_id: 42", "tenant: acme")
    objects = read("-top", "-sample_index=inuse_objects", path)
    check("2000000" in objects, objects)
    tree = read("-tree", "-unit=B", "-nodefraction=0", "-edgefraction=0", path)
    check("finalizer of (*os.File)" in tree, tree)
    focus = read("-top", "-unit=B", "-tagfocus=tenant=acme", "-nodefraction=0", path)
    check_rows(focus, "65536B 0.0012% 0.0012% 72536B 0.0013% main.fetch.buf")


@suite.test("go tool pprof finds what has grown between two of them")
def _():
    first, second = saved("first.pb.gz", pid=GROWS), saved("second.pb.gz", pid=GROWS)
    same = read("-top", "-unit=B", f"-diff_base={first}", first)
    check("Showing nodes accounting for 0" in same, same)
    grown = read("-top", "-unit=B", f"-diff_base={first}", second)
    check("Showing nodes accounting for 11520B" in grown, grown)
    check("$mapval. (*main.Session)" in grown, grown)


@suite.test("go tool pprof shows our errors")
def _():
    for path, words in (("debug/pprof/allocs", "heap and goroutine"),
                        ("debug/pprof/heap?debug=3", "debug=3")):
        status, _, err = pprof("-raw", url(path))
        check(status != 0, "status")
        check(words in err, err)


# ---- real programs ----

def check_real(version):
    need_root()
    with Daemon() as real, Fixture([build_fixture("demo", version)]) as target:
        memusage = real.scan(target.pid, keep=300)
        scan, live = memusage["scan"]["id"], memusage["heap"]
        for query in "", "labels=1", "by=@module", "max_samples=20", "max_depth=2", "min_bytes=4096":
            answer = real.get(f"/pid/{target.pid}/profile?scan={scan}&{query}")
            check_equal(answer.status, 200, f"{query}: {answer.body[:300]}")
            found = CheckedProfile(answer.body)
            found.check_limits()
            check_equal(found.totals(), [live["live_objects"], live["live_bytes"]], query)
            if query == "labels=1":
                check({"tenant", "job"} <= {key for s in found.samples for key in s.labels},
                      "labels")
            if query == "by=@module":
                check("goheapd/demo" in {s.frames[0] for s in found.samples}, "modules")
        found = CheckedProfile(real.get(f"/pid/{target.pid}/profile?scan={scan}").body)
        session = ("main.sessions", "$mapval. (*main.Session)")
        check_equal(found.values_of(*session)[0], 20000, "sessions")
        check_equal(found.mapping_file, os.path.realpath(f"/proc/{target.pid}/exe"), "mapping")
        again = real.get(f"/pid/{target.pid}/diff?since={scan}&max_pause=10")
        check_equal(again.status, 200, again.text()[:300])
        check(again.json()["diff"]["seconds"] > 0, "seconds")
        check("main.Session" not in [row["type"] for row in again.json()["diff"]["types"]],
              "sessions have not changed")
        pathlib.Path(folder, "real.pb.gz").write_bytes(
            real.get(f"/pid/{target.pid}/profile?scan={scan}").body)
        top = read("-top", "-unit=B", pathlib.Path(folder, "real.pb.gz"))
        check(f"of {live['live_bytes']}B total" in top, top[:1500])


for real_version in gobuild.VERSIONS if STRESS else ("1.19", "1.24", "1.27"):
    @suite.test(f"go{real_version}: a program's chains hold all that is live")
    def _(version=real_version):
        check_real(version)


with tempfile.TemporaryDirectory(prefix="goheapd-profile-") as folder:
    settings = pathlib.Path(folder, "goheapd.conf")
    settings.write_text("min_stop_interval = 0\n")
    os.chmod(folder, 0o755)
    with Daemon("--agent", program("tests/support/fake_agent"), "--config", settings) as daemon:
        suite.run()
