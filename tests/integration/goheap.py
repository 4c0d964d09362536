#!/usr/bin/env python3
"""goheap, with a daemon and without one."""

import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import tempfile

from harness import Daemon, Fixture, build_fixture, need_root, program
from pprof import Profile
from procfs import unharmed
from tap import Suite, check, check_equal

PID, MINE, FAILURES, SLOW, GROWS = 4242, 4244, 4250, 4292, 4295
FAKE = program("tests/support/fake_agent")

suite = Suite()
daemon = None


def goheap(*arguments, **keywords):
    return subprocess.run([program("goheap"), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                          timeout=60, text=True, **keywords)


def succeed(*arguments, **keywords):
    done = goheap(*arguments, **keywords)
    check_equal(done.returncode, 0, done.stderr)
    return done.stdout


def ways():
    """How to reach the fake agent: through the daemon, and without one."""
    return ("--socket", daemon.socket), ("--direct", "--agent", FAKE)


@suite.test("every command answers, in text and JSON, with a daemon and without")
def _():
    for how in ways():
        for command, field in (("pids", "processes"), (f"show {PID}", "cost"),
                               (f"overview {PID}", "cost"), (f"memusage {PID}", "memory"), (f"labels {PID}", "labels"),
                               (f"goroutines {PID}", "goroutines"),
                               (f"mappings {PID}", "mappings"),
                               (f"histogram {PID} --retained --garbage --top 2", "types"),
                               (f"objects {PID} --type main.Order", "objects"),
                               (f"object {PID} 0xc000123000 --contents", "object"),
                               (f"dominators {PID} --limit 5", "nodes")):
            text = succeed(*command.split(), *how)
            check(text.endswith("\n") and not text.startswith("{"), text)
            check("\x1b" not in text, "colours in a pipe")
            found = json.loads(succeed(*command.split(), *how, "--format", "json"))
            check(field in found, f"{command}: {found.keys()}")


def without_scan_facts(text):
    found = json.loads(text)
    if "scan" in found:
        del found["scan"]["id"]
    return found


@suite.test("both ways give the same answers")
def _():
    for command in ("pids", f"show {PID}", f"memusage {PID}", f"goroutines {PID} --dead",
                    f"mappings {PID}"):
        through, direct = (succeed(*command.split(), *how, "--format", "json") for how in ways())
        check_equal(without_scan_facts(through), without_scan_facts(direct), command)
        if "memusage" in command or "mappings" in command:
            through, direct = (succeed(*command.split(), *how) for how in ways())
            check_equal(through, direct, command)


@suite.test("a profile goes to a file, a pipe or a new file, and never to a terminal")
def _():
    for how in ways():
        with tempfile.TemporaryDirectory(prefix="goheapd-profile-") as folder:
            path = pathlib.Path(folder, "a.pb.gz")
            check_equal(succeed("profile", PID, "-o", path, *how), "", "output")
            written = Profile(path.read_bytes())
            check_equal(written.total("inuse_space"), 5599395840, "bytes")
            piped = subprocess.run([program("goheap"), "profile", str(PID), *map(str, how)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            check_equal(piped.stdout, path.read_bytes(), "the same by a pipe")
            for name in f"goheap-{PID}.pb.gz", f"goheap-{PID}.2.pb.gz":
                shown = on_terminal("profile", PID, *how, cwd=folder)
                check(f"go tool pprof {name}" in shown, shown)
                check_equal(pathlib.Path(folder, name).read_bytes(), piped.stdout, name)
            for output in "-", "TTY":
                shown = on_terminal("profile", PID, "-o", output, *how, cwd=folder, status=2)
                check("is a terminal" in shown, shown)
            done = goheap("profile", PID, "-o", folder, *how)
            check_equal(done.returncode, 1, "a folder")
            done = goheap("profile", FAILURES + 5, "-o", pathlib.Path(folder, "b"), *how)
            check_equal((done.returncode, "the target said no" in done.stderr), (1, True),
                        done.stderr)
            check(not pathlib.Path(folder, "b").exists(), "a file without a profile")


@suite.test("top, why and diff say what holds most, what holds a type, what has grown")
def _():
    for how in ways():
        top = succeed("top", PID, "--top", 2, *how)
        rows = [line.split(maxsplit=3) for line in top.splitlines()]
        check(["2.25", "43%", "2,001,101", "main.sessions"] in rows, top)
        check("the largest of 6" in top and "main.cache" not in top, top)
        found = json.loads(succeed("top", PID, "--top", 2, "--format", "json", *how))
        check_equal(found["bytes"], 5599395840, "bytes")
        check_equal(found["roots"][1], {"name": "main.sessions", "objects": 2001101,
                                        "bytes": 2415983152}, "root")
        check_equal(found["chains"][1]["chain"], ["main.sessions", "$mapval. (*main.Session)"],
                    "chain")
        for name, size in (("main.Item", "256 MiB in 1,100"), ("lru.Cache", "700 MiB in 4,000"),
                           ("main.sessions", "2.25 GiB in 2,001,101"), ("Sess", "2.25 GiB in"),
                           ("nosuch", "no chain")):
            why = succeed("why", PID, name, *how)
            check(f"{name}: {size}" in why, why)
        found = json.loads(succeed("why", PID, "main.Item", "--format", "json", *how))
        check_equal((found["name"], found["objects"], len(found["chains"])),
                    ("main.Item", 1100, 2), "why")
        grown = succeed("diff", GROWS, "--over", "1.1s", *how)
        check("live +11.2 KiB, +120 objects" in grown, grown)
        found = json.loads(succeed("diff", GROWS, "--over", "1.1", "--format", "json", *how))
        check_equal(found["diff"]["types"], [{"type": "main.Session", "objects": 120,
                                              "bytes": 11520}], "diff")
    done = goheap("top", FAILURES + 5, "--socket", daemon.socket)
    check_equal((done.returncode, done.stdout), (1, ""), "a failure")
    check_equal(done.stderr, "goheap: the target said no (already_traced)\n", "its words")


@suite.test("a command name will do instead of a pid")
def _():
    for how in ways():
        found = json.loads(succeed("memusage", "mine", *how, "--format", "json"))
        check_equal(found["pid"], MINE, "pid")
        done = goheap("memusage", "checkout", *how)
        check_equal(done.returncode, 1, done.stdout)
        check("2 processes" in done.stderr, done.stderr)


@suite.test("options reach the agent")
def _():
    options = ("--mode", "stop", "--depth", "census", "--max-pause", "0.125")
    for how in ways():
        found = json.loads(succeed("memusage", PID, *options, *how, "--format", "json"))["scan"]
        check_equal((found["mode"], found["depth"]), ("stop", "census"), "scan")
    check(f"fake: scan pid={PID} mode=2 depth=1 pause=125000" in daemon.log(), "max_pause")


@suite.test("max_age takes the daemon's kept scan")
def _():
    how = ("--socket", daemon.socket, "--format", "json")
    first = json.loads(succeed("memusage", MINE, *how))["scan"]
    kept = json.loads(succeed("memusage", MINE, "--max-age", "60", *how))["scan"]
    check_equal((kept["id"], kept["cached"]), (first["id"], True), "kept")


@suite.test("failures are one line and status 1, wrong usage is status 2")
def _():
    for how in ways():
        done = goheap("memusage", FAILURES + 5, *how)
        check_equal(done.returncode, 1, done.stdout)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("fake")]
        check_equal(len(lines), 1, done.stderr)
        check(lines[0].startswith("goheap: ") and "the target said no" in lines[0], lines)
        check_equal(goheap("memusage", 4000, *how).returncode, 1, "no such process")
        check_equal(goheap("show", PID, "--start", "2026-01-01T00:00:00Z", *how).returncode, 1,
                    "another process")
    for arguments in ((), ("memusage",), ("nonsense", 1), ("memusage", PID, "--mode", "x"),
                      ("memusage", PID, "--nonsense"), ("pids", 1), ("show", PID, "--dead")):
        done = goheap(*arguments)
        check_equal(done.returncode, 2, arguments)
        check("goheap: " in done.stderr and not done.stdout, done.stderr)


@suite.test("where no daemon and no agent is, it says what to do")
def _():
    done = goheap("pids", "--socket", "/nowhere/x.sock")
    check_equal(done.returncode, 1, done.stderr)
    check("/nowhere/x.sock" in done.stderr and "start goheapd" in done.stderr, done.stderr)
    done = goheap("pids", "--direct", "--agent", "/nowhere/agent")
    check_equal(done.returncode, 1, done.stderr)
    check("/nowhere/agent" in done.stderr, done.stderr)


@suite.test("help says how each command is used")
def _():
    page = succeed("--help")
    for command in ("pids", "show", "memusage", "labels", "goroutines", "mappings"):
        check(command in page, f"{command} is not in the help")
        check("Usage: goheap " + command in succeed(command, "--help"), command)
    check(succeed("--version").startswith("goheap "), "version")


def on_terminal(*arguments, cwd=None, status=0, **environment):
    """What the command shows on a terminal, output and messages together. TTY is its name."""
    main, other = pty.openpty()
    words = [os.ttyname(other) if word == "TTY" else str(word) for word in arguments]
    process = subprocess.Popen([program("goheap"), *words], stdin=other,
                               stdout=other, stderr=other, cwd=cwd,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment})
    os.close(other)
    shown = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 65536)
        except OSError:  # the last writer is gone
            break
        if not part:
            break
        shown += part
    os.close(main)
    check_equal(process.wait(20), status, shown)
    return shown.decode()


@suite.test("on a terminal alarms are red, and long work shows that it goes on")
def _():
    shown = on_terminal("memusage", SLOW, "--socket", daemon.socket)
    check("\x1b[1;31m!! 97% of" in shown, shown)
    check("\rgoheap: memusage, 1 s" in shown, shown)
    check("\x1b[1;31m" not in on_terminal("memusage", PID, "--socket", daemon.socket,
                                          NO_COLOR="1"), "NO_COLOR")
    json.loads(on_terminal("memusage", PID, "--socket", daemon.socket, "--format", "json"))


@suite.test("a reader that leaves early is no crash")
def _():
    process = subprocess.Popen([program("goheap"), "goroutines", str(PID), "--socket",
                                daemon.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stderr.read()
    process.stderr.close()
    check(process.wait(20) in (0, 1), f"status {process.returncode}")


@suite.test("a real program is looked at without a daemon, and left as it was")
def _():
    need_root()
    with Fixture([build_fixture("demo", "1.26")]) as target:
        with unharmed(target.pid):
            page = succeed("memusage", target.pid, "--direct", "--max-pause", "10")
            check("heap live" in page and "TRUST" in page, page)
            found = json.loads(succeed("goroutines", target.pid, "--direct", "--format", "json",
                                       "--max-pause", "10"))
            check(found["goroutines"], "goroutines")
        check(target.pid in [p["pid"] for p in json.loads(
            succeed("pids", "--direct", "--format", "json"))["processes"]], "pids")


@suite.test("a user looks at a program of theirs, and at no other")
def _():
    need_root()
    user = {"user": 1234, "group": 1234, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="goheapd-user-") as folder:
        os.chmod(folder, 0o755)
        demo, home = pathlib.Path(folder, "demo"), pathlib.Path(folder, "home")
        shutil.copy(build_fixture("demo", "1.26"), demo)
        for name in "goheap", "goheap-agent":
            shutil.copy(program(name), folder)
        home.mkdir()
        os.chown(home, 1234, 1234)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

        def as_user(*arguments):
            return subprocess.run([pathlib.Path(folder, "goheap"), *map(str, arguments)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=60, env=environment, **user)
        with Fixture([demo]) as roots, \
                Fixture(["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups",
                         demo]) as own:
            done = as_user("memusage", own.pid, "--direct", "--max-pause", "10")
            check_equal(done.returncode, 0, done.stderr)
            check("heap live" in done.stdout, done.stdout)
            done = as_user("memusage", roots.pid, "--direct")
            check_equal(done.returncode, 1, done.stdout)
            check("goheap: " in done.stderr, done.stderr)


with tempfile.TemporaryDirectory(prefix="goheapd-goheap-") as scratch:
    settings = pathlib.Path(scratch, "goheapd.conf")
    settings.write_text("min_stop_interval = 0\n")
    with Daemon("--agent", FAKE, "--config", settings) as daemon:
        suite.run()
