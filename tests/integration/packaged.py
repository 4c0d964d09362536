#!/usr/bin/env python3
"""Go programs as their packagers ship them, without DWARF: started on loopback, put to work, and
scanned. What they say of their own heap is the measure."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import harness
import packages
from harness import Daemon, Fixture, build_fixture
from procfs import eventually, unharmed
from tap import Suite, check, check_equal, note

TRIES = 5  # to meet a program just after a collection with little allocated since
NEAR = 0.01  # live bytes against the program's own figure
TYPED = 0.2  # share of live bytes whose type is known, at the least

suite = Suite()


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode(errors="replace")


def answers(url):
    try:
        return get(url) is not None
    except (OSError, urllib.error.URLError):
        return False


@contextlib.contextmanager
def running(name, *arguments, ready, work):
    binary = packages.program(name)
    log = pathlib.Path(work, "log")
    with open(log, "wb") as out:
        process = subprocess.Popen([binary, *arguments], stdin=subprocess.PIPE, stdout=out,
                                   stderr=subprocess.STDOUT, cwd=work,
                                   env={**os.environ, "HOME": work})
    try:
        eventually(lambda: answers(ready) or process.poll() is not None, "it does not answer", 60)
        check_equal(process.poll(), None, f"{name} has ended: {log.read_text()[-1000:]}")
        yield process
    finally:
        process.terminate()
        process.wait()


def check_scan(scan):
    check_equal(scan["scan"]["detail"]["layouts"], "table", "layouts")
    trust = scan["scan"]["trust"]
    check_equal((trust["self_check"], trust["free_slot_hits"], trust["skipped_stacks"]),
                ("ok", 0, 0), "trust")
    heap = scan["heap"]
    check(heap["live_objects"] > 1000, f"{heap}")
    labels = scan["labels"]
    shares = [entry["share_bytes"] for entry in
              (*labels["sets"], labels["unlabelled"], labels["system"], labels["global"])]
    check_equal(sum(shares), heap["live_bytes"], "shares")


def check_goroutines(daemon, pid):
    found = daemon.get(f"/pid/{pid}/goroutines?max_pause=10").json()
    check(len(found["goroutines"]) > 3, f"{len(found['goroutines'])} goroutines")
    for goroutine in found["goroutines"]:
        check(goroutine["frames"], f"no stack: {goroutine}")
        check(all(frame["function"] for frame in goroutine["frames"]), f"{goroutine}")


def check_types(daemon, name, pid):
    """There is no DWARF: types are the runtime's own, and what follows from them."""
    histogram = daemon.scan(pid, endpoint="histogram")
    check_equal(histogram["scan"]["detail"]["types"], "runtime types", "types")
    typed, untyped = histogram["typed_bytes"], histogram["unknown"]["bytes"]
    check_equal(sum(row["bytes"] for row in histogram["types"]), typed, "typed bytes")
    note(f"{name}: {typed / (typed + untyped):.1%} of {typed + untyped} bytes typed")
    check(typed >= TYPED * (typed + untyped), f"{typed} of {typed + untyped} bytes are typed")


def own_figure(pprof):
    """HeapAlloc right after a collection that the program makes for this."""
    return int(re.search(r"^# HeapAlloc = (\d+)$", get(f"{pprof}/heap?gc=1&debug=1"), re.M)[1])


def check_live(daemon, pid, pprof):
    """The figures of one moment are hard to have: what was allocated since is in one of them."""
    tries = []
    for _ in range(TRIES):
        own = own_figure(pprof)
        live = daemon.scan(pid)["heap"]["live_bytes"]
        tries.append((live, own))
        if abs(live - own) <= NEAR * own:
            break
    note(f"live and own figure: {tries}")
    check(abs(tries[-1][0] - tries[-1][1]) <= NEAR * tries[-1][1], f"live and own: {tries}")


def check_program(name, *arguments, port, ready, load=(), pprof=None, version=None):
    with tempfile.TemporaryDirectory(prefix="goheapd-packaged-") as work:
        base = f"http://127.0.0.1:{port}"
        with Daemon() as daemon, \
                running(name, *arguments, ready=base + ready, work=work) as process, \
                unharmed(process.pid, still=False):
            for _ in range(50):
                for path in load:
                    get(base + path)
            for mode in ("fork", "stop"):
                scan = daemon.scan(process.pid, mode=mode)
                check_scan(scan)
            if version:
                check(scan["go_version"].startswith(version), scan["go_version"])
            check_goroutines(daemon, process.pid)
            check_types(daemon, name, process.pid)
            if pprof:
                check_live(daemon, process.pid, base + pprof)


@suite.test("prometheus")
def _():
    port = harness.free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: itself\n"
                     f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
        config.flush()
        check_program("prometheus", "--config.file", config.name, "--storage.tsdb.path", "data",
                      "--web.listen-address", f"127.0.0.1:{port}", port=port, ready="/-/ready",
                      load=("/metrics", "/api/v1/query?query=up"), pprof="/debug/pprof")


@suite.test("prometheus-node-exporter")
def _():
    port = harness.free_port()
    check_program("prometheus-node-exporter", "--web.listen-address", f"127.0.0.1:{port}",
                  port=port, ready="/", load=("/metrics",), pprof="/debug/pprof")


@suite.test("etcd")
def _():
    port, peer = harness.free_port(), harness.free_port()
    client, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    check_program("etcd", "--data-dir", "data", "--enable-pprof", "--listen-client-urls", client,
                  "--advertise-client-urls", client, "--listen-peer-urls", other,
                  "--initial-advertise-peer-urls", other, "--initial-cluster", f"default={other}",
                  port=port, ready="/health", load=("/metrics", "/version"), pprof="/debug/pprof")


@suite.test("caddy")
def _():
    port = harness.free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        config.write('{"admin": {"listen": "127.0.0.1:%d"}}' % port)
        config.flush()
        check_program("caddy", "run", "--config", config.name, port=port, ready="/config/",
                      load=("/config/", "/metrics"), pprof="/debug/pprof")


@suite.test("esbuild, which tells nothing of its making")
def _():
    port = harness.free_port()
    check_program("esbuild", f"--serve=127.0.0.1:{port}", "--servedir=.", port=port, ready="/",
                  load=("/",), version="go1.26")


def packed(binary, work):
    """A copy that unpacks itself when it starts."""
    copy = pathlib.Path(work, "packed")
    shutil.copy(binary, copy)
    subprocess.run([packages.program("upx-ucl"), "-q", copy], stdout=subprocess.DEVNULL, check=True)
    return copy


@suite.test("a program packed by upx is not_go, with the reason")
def _():
    for version, flags in (("1.19", ()), ("1.27", ("-ldflags=-s -w",))):
        with tempfile.TemporaryDirectory(prefix="goheapd-packed-") as work:
            copy = packed(build_fixture("demo", version, flags=flags), work)
            with Daemon() as daemon, Fixture([copy]) as target, unharmed(target.pid):
                for path in ("", "/memusage", "/memusage?depth=census", "/goroutines",
                             "/mappings"):
                    answer = daemon.get(f"/pid/{target.pid}{path}")
                    check_equal((answer.status, answer.error_code()), (422, "not_go"),
                                answer.text())
                    check("packed by UPX" in answer.json()["error"]["message"], answer.text())


suite.run()
