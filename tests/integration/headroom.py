#!/usr/bin/env python3
"""Targets near a limit, behind a filter, frozen: no snapshot is taken where it could do harm, the
answer says why, a census works all the same, and the target lives on."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

import procfs
from cgroups import Group, MemoryGroup, folder, own_path
from harness import Daemon, Fixture, build_fixture, need_root, program
from procfs import eventually, unharmed
from tap import Skip, Suite, check, check_equal, note
from victim import tool

GO = "1.26"
MIB = 1 << 20
HELD = 48           # MiB that the fixture holds, and a full scan reads
ROOMY = 4 * HELD    # MiB beyond what it uses, in which a snapshot has room
NEW_THREADS = 4     # that the fixture makes when it is asked to check itself
LONELY_UID = 1900070750  # nobody's; all tasks of this user are the test's

suite = Suite()


# ---- daemons ----

@contextlib.contextmanager
def daemon(config="", agent=(), arguments=()):
    """A daemon that stops a process as often as it is asked to. Its agent is started by a script of
    these lines, whose last words the agent's command follows."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="goheapd-headroom-") as name:
        root = pathlib.Path(name)
        root.chmod(0o755)
        (root / "config").write_text(f"min_stop_interval = 0\n{config}\n")
        script = root / "agent"
        script.write_text("\n".join(["#!/bin/sh", "set -e", *(agent or ["exec"])])
                          + f' {program("goheap-agent")} "$@"\n')
        script.chmod(0o755)
        with Daemon("--config", root / "config", "--agent", script, *arguments) as running:
            yield running


WITHOUT_SYS_ADMIN = ["exec setpriv --bounding-set -sys_admin --"]


def with_files(*pairs):
    """In a mount namespace of its own, where files have other contents: nothing else changes."""
    mounts = " && ".join(f"mount --bind {made} {path}" for path, made in pairs)
    return ["exec unshare --mount sh -c '" + mounts + ' && exec "$@"' + "' sh"]


# ---- targets ----

def joining(*groups):
    """A launcher that enters the groups first, so that all of the target's memory counts there."""
    enter = " && ".join(f"echo $$ >{group.path}/cgroup.procs" for group in groups)
    return ["sh", "-c", enter + ' && exec "$@"', "sh"]


@contextlib.contextmanager
def target(*arguments, launcher=(), held=HELD):
    with Fixture([*launcher, build_fixture("headroom", GO), held, *arguments]) as running:
        check_lives(running)
        yield running
        check_lives(running)


def check_lives(running, command="check"):
    """Its memory is what it was, and it can make threads."""
    answer = running.command(command)
    check_equal(answer["errors"], [], "what went wrong in the target")
    check_equal(answer["made"], NEW_THREADS, "threads made")


# ---- what is asked, and what has to be answered ----

def ask(running, pid, **parameters):
    query = "&".join(f"{key}={value}" for key, value in {"max_pause": 10, **parameters}.items())
    return running.get(f"/pid/{pid}/memusage?format=json&{query}")


def overview(running, pid):
    answer = running.get(f"/pid/{pid}?format=json")
    check_equal(answer.status, 200, f"{answer.body!r}")
    return answer.json()["cost"]


def reasons(answer):
    return [warning["message"] for warning in answer["scan"]["warnings"]
            if warning["code"] == "stop_mode"]


def check_census(answer, mode="stop"):
    check_equal((answer["scan"]["mode"], answer["scan"]["depth"]), (mode, "census"), "a census")
    check_equal(answer["heap"]["live_bytes"], None, "live bytes of a census")
    check_equal(answer["scan"]["trust"]["self_check"], "ok", "self-check")


def check_full(answer):
    live = answer["heap"]["live_bytes"]
    check(HELD * MIB <= live < (HELD + 8) * MIB, f"{live} bytes are live")
    check_equal(answer["scan"]["trust"]["self_check"], "ok", "self-check")


def expect_fork(running, pid):
    cost = overview(running, pid)
    check_equal((cost["mode"], cost["why"]), ("fork", None), "the cost's mode")
    with unharmed(pid):
        for mode in ("auto", "fork"):
            answer = running.scan(pid, mode=mode)
            check_equal((answer["scan"]["mode"], reasons(answer)), ("fork", []), "the scan's mode")
            check_full(answer)
        check_census(running.scan(pid, depth="census"), "fork")


def expect_stop(running, pid, *words):
    """The same reason is foretold, warned of, and told to who insists."""
    cost = overview(running, pid)
    check_equal(cost["mode"], "stop", f"the cost's mode, {cost['why']}")
    with unharmed(pid):
        answer = running.scan(pid)
        check_equal(answer["scan"]["mode"], "stop", "the scan's mode")
        check_full(answer)
        census = running.scan(pid, depth="census")
        check_census(census)
        refused = ask(running, pid, mode="fork")
    check_equal((refused.status, refused.error_code()), (409, "fork_unsafe"), f"{refused.body!r}")
    (why,), (census_why,) = reasons(answer), reasons(census)
    for word in words:
        check(word in why, f"{why!r} does not speak of {word!r}")
    message = refused.json()["error"]["message"]
    for elsewhere in (cost["why"], census_why, message.partition(": ")[2]):
        check_equal(figureless(elsewhere), figureless(why), "why, as it is said elsewhere")


def figureless(why):
    """Memory and tasks in use may be others by a few a moment later."""
    return re.sub(r"\d+", "N", why)


# ---- memory ----

@suite.test("memory cgroup: a target near its limit is stopped, one with room is not")
def _():
    with MemoryGroup() as group, target(launcher=joining(group)) as near, daemon() as running:
        group.limit(group.used() + ROOMY * MIB)
        expect_fork(running, near.pid)
        group.limit(group.used() + 16 * MIB)
        before = group.trouble()
        expect_stop(running, near.pid, "memory.limit_in_bytes of its control group", "MiB")
        check_equal(group.trouble(), before, "meetings with the limit, and kills")
        check_lives(near, "write")


@suite.test("memory cgroup: a target at its very limit is scanned without taking from it")
def _():
    with MemoryGroup() as group, target(launcher=joining(group)) as full, daemon() as running:
        group.limit(group.used() + 4 * MIB)
        used, before = group.used(), group.trouble()
        expect_stop(running, full.pid, "memory.limit_in_bytes")
        check_equal(group.trouble(), before, "meetings with the limit, and kills")
        check(group.used() < used + MIB, f"{group.used()} bytes are used, {used} before")
        check_lives(full, "write")
        check_equal(group.field("memory.oom_control", "oom_kill"), before[1], "kills")


@suite.test("memory cgroup: a limit of a group above counts, and of all groups the tightest")
def _():
    with MemoryGroup() as top, MemoryGroup(top) as middle, MemoryGroup(middle) as group:
        with target(launcher=joining(group)) as near, daemon() as running:
            for each in (top, middle, group):
                each.limit(each.used() + ROOMY * MIB)
            expect_fork(running, near.pid)
            middle.limit(middle.used() + 16 * MIB)
            expect_stop(running, near.pid, "memory.limit_in_bytes of a group above")


@suite.test("memory cgroup: memory and swap have a limit together")
def _():
    with MemoryGroup() as group, target(launcher=joining(group)) as near, daemon() as running:
        if not (group.path / "memory.memsw.limit_in_bytes").exists():
            raise Skip("this kernel does not account swap (swapaccount=1)")
        group.limit(group.used() + ROOMY * MIB)
        group.write("memory.memsw.limit_in_bytes", group.used() + ROOMY * MIB)
        expect_fork(running, near.pid)
        group.limit(group.used() + 12 * MIB)
        group.write("memory.memsw.limit_in_bytes", group.used() + 12 * MIB)
        group.write("memory.limit_in_bytes", group.used() + 12 * MIB)
        expect_stop(running, near.pid, "in_bytes of its control group")


@suite.test("memory cgroup: with room for all copies a target may write to all of its pages meanwhile")
def _():
    with MemoryGroup() as group, target(launcher=joining(group)) as writer, daemon() as running:
        private = int(procfs.status(writer.pid)["RssAnon"].split()[0]) * 1024
        group.limit(group.used() + private + 8 * MIB)
        before = group.trouble()
        answers = []
        asker = threading.Thread(target=lambda: answers.extend(
            ask(running, writer.pid, mode="fork") for _ in range(3)))
        asker.start()
        while asker.is_alive():
            check_lives(writer, "write")
        asker.join()
        check_equal([answer.status for answer in answers], [200] * 3, f"{answers[-1].body[:300]!r}")
        check_equal(group.trouble(), before, "meetings with the limit, and kills")


def fake_file(name, text):
    """A file to lay over another; the agent's user must be able to read it."""
    path = pathlib.Path(FILES.name, name)
    path.write_text(text)
    return path


FILES = tempfile.TemporaryDirectory(prefix="goheapd-headroom-files-")


@suite.test("on a machine with strict overcommit targets are stopped")
def _():
    path = "/proc/sys/vm/overcommit_memory"
    with target() as strict:
        with daemon(agent=with_files((path, fake_file("strict", "2\n")))) as running:
            expect_stop(running, strict.pid, "vm.overcommit_memory is 2")
        with daemon(agent=with_files((path, fake_file("lax", "1\n")))) as running:
            expect_fork(running, strict.pid)


@suite.test("on a machine without memory to spare targets are stopped")
def _():
    text = "MemTotal: 8000000 kB\nMemFree: 100 kB\nMemAvailable: {} kB\n"
    with target() as large:
        tight = fake_file("tight", text.format((HELD - 8) * 1024))
        with daemon(agent=with_files(("/proc/meminfo", tight))) as running:
            expect_stop(running, large.pid, f"the machine has {HELD - 8} MiB available")


# ---- a recorded version 2 ----

def write_tree(name, files):
    root = pathlib.Path(FILES.name, name)
    for path, text in {"cgroup.controllers": "memory pids\n", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def version_2(name, pid, path, files):
    """An agent before which the target is in a group of such a tree."""
    return with_files(("/sys/fs/cgroup", write_tree(name, files)),
                      (f"/proc/{pid}/task/{pid}/cgroup", fake_file(f"{name}-list", f"0::{path}\n")))


POD = "kubepods.slice/pod7"
ROOM = {f"{POD}/app/memory.max": "max\n", f"{POD}/app/memory.current": f"{60 * MIB}\n",
        f"{POD}/app/memory.high": "max\n", f"{POD}/app/pids.max": "max\n",
        f"{POD}/app/pids.current": "20\n", f"{POD}/app/cgroup.freeze": "0\n",
        f"{POD}/memory.max": f"{1000 * MIB}\n", f"{POD}/memory.current": f"{60 * MIB}\n",
        f"{POD}/pids.max": "1000\n", f"{POD}/pids.current": "20\n"}

VERSION_2 = [
    ("room", f"/{POD}/app", {}, ()),
    ("a full pod", f"/{POD}/app", {f"{POD}/memory.current": f"{980 * MIB}\n"},
     ("memory.max of a group above its control group leaves 20 MiB",)),
    ("a pod that is killed as a whole", f"/{POD}/app",
     {f"{POD}/memory.current": f"{980 * MIB}\n", f"{POD}/memory.oom.group": "1\n"},
     ("memory.oom.group would end the whole group",)),
    ("memory.high", f"/{POD}/app", {f"{POD}/app/memory.high": f"{70 * MIB}\n"},
     ("memory.high of its control group leaves 10 MiB",)),
    ("few pids left", f"/{POD}/app", {f"{POD}/pids.current": "901\n"},
     ("has 901 of the 1000 tasks that pids.max allows",)),
    ("a group out of sight", f"/../../{POD}/app", {}, ("cannot be seen from here",)),
    ("a frozen pod", f"/{POD}/app", {f"{POD}/cgroup.freeze": "1\n"}, ("cgroup.freeze",)),
]


@suite.test("cgroup version 2, as recorded: all of its limits count")
def _():
    with target() as member:
        for number, (what, path, changes, words) in enumerate(VERSION_2):
            note(what)
            agent = version_2(f"v2-{number}", member.pid, path, {**ROOM, **changes})
            with daemon(agent=agent) as running:
                if words:
                    expect_stop(running, member.pid, *words)
                else:
                    expect_fork(running, member.pid)


# ---- tasks ----

@suite.test("pids cgroup: a target that may make few more threads is stopped")
def _():
    with Group("pids") as group, target(launcher=joining(group)) as near, daemon() as running:
        # let it make its threads, which the runtime keeps some of
        used = group.number("pids.current")
        group.write("pids.max", used + 40)
        expect_fork(running, near.pid)
        group.write("pids.max", group.number("pids.current") + 15)
        expect_stop(running, near.pid, "tasks that pids.max allows")
        check_lives(near)
        group.write("pids.max", group.number("pids.current") + 60)
        expect_fork(running, near.pid)


@suite.test("pids cgroup: a limit of a group above counts")
def _():
    with Group("pids") as top, Group("pids", top) as group:
        with target(launcher=joining(group)) as near, daemon() as running:
            top.write("pids.max", top.number("pids.current") + 14)
            expect_stop(running, near.pid, "pids.max")
            check_lives(near)


@contextlib.contextmanager
def lonely_target(task_limit):
    """One of a user who has no other tasks."""
    with tempfile.TemporaryDirectory(prefix="goheapd-lonely-") as name:
        os.chmod(name, 0o755)
        copy = shutil.copy(build_fixture("headroom", GO), name)
        launcher = ["prlimit", f"--nproc={task_limit}", "setpriv", f"--reuid={LONELY_UID}",
                    f"--regid={LONELY_UID}", "--clear-groups"]
        with Fixture([*launcher, copy, HELD]) as running:
            check_lives(running)
            yield running
            check_lives(running)


@suite.test("a target whose user may make few more threads is stopped")
def _():
    with daemon() as running:
        with lonely_target(80) as roomy:
            expect_fork(running, roomy.pid)
        with lonely_target(20) as near:
            expect_stop(running, near.pid, "of the 20 tasks that RLIMIT_NPROC allows")


@suite.test("a target with a thread whose children would live elsewhere is stopped")
def _():
    need_root()
    with target("unshare") as odd, daemon() as running:
        links = [f"/proc/{odd.pid}/task/{odd.hello['tid']}/ns/{name}"
                 for name in ("pid", "pid_for_children")]
        eventually(lambda: not os.path.exists(links[1]) or
                   os.readlink(links[0]) != os.readlink(links[1]), "the thread does not unshare")
        expect_stop(running, odd.pid, "pid namespace")


# ---- the agent's own limits ----

@suite.test("pids cgroup and memory cgroup: limits of the agent's are not the target's")
def _():
    with MemoryGroup() as memory, Group("pids") as pids, target() as roomy:
        enter = [f"echo $$ >{group.path}/cgroup.procs" for group in (memory, pids)]
        memory.limit((HELD - 8) * MIB)
        pids.write("pids.max", 18)
        with daemon(agent=[*enter, "exec"]) as running:
            expect_fork(running, roomy.pid)
            check(pids.number("pids.current") > 0, "the agent is elsewhere")
            check_equal(memory.field("memory.oom_control", "oom_kill"), 0, "kills")


# ---- freezers ----

@contextlib.contextmanager
def frozen(group, on, off):
    group.write(*on)
    try:
        yield
    finally:
        group.write(*off)


@suite.test("freezer cgroup: a frozen target is not touched, and said to be frozen")
def _():
    with Group("freezer") as group, target(launcher=joining(group)) as cold, daemon() as running:
        with frozen(group, ("freezer.state", "FROZEN"), ("freezer.state", "THAWED")):
            eventually(lambda: group.read("freezer.state") == "FROZEN\n", "it does not freeze")
            check("freezer.state" in overview(running, cold.pid)["why"], "nothing is foretold")
            for parameters in ({}, {"mode": "fork"}, {"depth": "census"}):
                answer = ask(running, cold.pid, **parameters)
                check_equal((answer.status, answer.error_code()), (409, "not_stoppable"),
                            f"{answer.body!r}")
                check("freezer.state" in answer.json()["error"]["message"], f"{answer.body!r}")
            check_equal(procfs.status(cold.pid)["TracerPid"], "0", "tracer")
        check_lives(cold)
        expect_fork(running, cold.pid)


@suite.test("cgroup version 2: a frozen target is stopped, and stays frozen")
def _():
    with Group("") as group, target(launcher=joining(group)) as cold, daemon() as running:
        if not (group.path / "cgroup.freeze").exists():
            raise Skip("this kernel's cgroup version 2 has no freezer (Linux 5.2)")
        with frozen(group, ("cgroup.freeze", "1"), ("cgroup.freeze", "0")):
            eventually(lambda: group.field("cgroup.events", "frozen") == 1, "it does not freeze")
            expect_stop(running, cold.pid, "cgroup.freeze")
            eventually(lambda: group.field("cgroup.events", "frozen") == 1, "it is thawed")
        check_lives(cold)
        expect_fork(running, cold.pid)


# ---- seccomp ----

def behind(what):
    return [program("tests/support/stop_target"), what]


def expect_refusal(running, pid, *words):
    """That no snapshot can be taken is only seen under the stop, and the overview cannot know."""
    with unharmed(pid):
        answer = running.scan(pid)
        check_full(answer)
        check_equal(answer["scan"]["mode"], "stop", "the scan's mode")
        why, = reasons(answer)
        for word in words:
            check(word in why, f"{why!r} does not speak of {word!r}")
        refused = ask(running, pid, mode="fork")
        check_equal((refused.status, refused.error_code()), (409, "fork_unsafe"),
                    f"{refused.body!r}")
        check_census(running.scan(pid, depth="census"))


@suite.test("filters: one that would kill the target, should the keeper die, is not suspended")
def _():
    with target(launcher=behind("killed")) as filtered:
        with daemon() as running:
            expect_refusal(running, filtered.pid, "ends whoever makes system call")
        with daemon('clone_allowed_cgroups = {"*"}') as running:
            expect_refusal(running, filtered.pid, "ends whoever makes system call")


@suite.test("filters: with CAP_SYS_ADMIN they are suspended")
def _():
    with daemon() as running:
        for what in ("filtered", "allowed"):
            with target(launcher=behind(what)) as filtered:
                check_equal(procfs.status(filtered.pid)["Seccomp"], "2", "seccomp mode")
                expect_fork(running, filtered.pid)


@suite.test("filters: without it, or under a filter of the agent's own, the target is stopped")
def _():
    with target(launcher=behind("killed")) as filtered:
        for agent in (WITHOUT_SYS_ADMIN, [f"exec {program('tests/support/stop_target')} allowed"]):
            with daemon(agent=agent) as running:
                expect_stop(running, filtered.pid, "seccomp filter", "CAP_SYS_ADMIN",
                            "clone_allowed_cgroups")


@suite.test("filters: of one thread count, and so does the strict mode of one")
def _():
    for what, mode, agent, word in (("filtered", "2", WITHOUT_SYS_ADMIN, "seccomp filter"),
                                    ("strict", "1", (), "strict mode")):
        with target(what) as odd, daemon(agent=agent) as running:
            def mode_of_thread(odd=odd):
                return procfs.status(odd.pid, odd.hello["tid"])["Seccomp"]

            eventually(lambda mode=mode: mode_of_thread() == mode, "the thread enters no filter")
            check_equal(procfs.status(odd.pid)["Seccomp"], "0", "seccomp mode of the first thread")
            expect_stop(running, odd.pid, word)
            check_equal(mode_of_thread(), mode, "seccomp mode of the thread")


def target_path(pid):
    """Its cgroup as the overview shows it."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return path
    return pathlib.Path(f"/proc/{pid}/cgroup").read_text().rpartition(":")[2].strip()


@suite.test("filters: the operator may vouch for a control group")
def _():
    with target(launcher=behind("allowed")) as filtered:
        path = target_path(filtered.pid)
        for pattern, right in ((path, True), ("/*", True), (path[:-1] + "?", len(path) > 1),
                               (path + "/x", False), ("x*", False)):
            config = f'clone_allowed_cgroups = {{"/nobody", "{pattern}"}}'
            with daemon(config, agent=WITHOUT_SYS_ADMIN) as running:
                if right:
                    expect_fork(running, filtered.pid)
                else:
                    expect_stop(running, filtered.pid, "seccomp filter")


@suite.test("filters: the operator may vouch for a unit")
def _():
    with Group("name=systemd", name=f"goheapd-test-{os.getpid()}.service") as group:
        launcher = [*joining(group), *behind("allowed")]
        with target(launcher=launcher) as filtered:
            for pattern, right in (("goheapd-test-*.service", True), ("goheapd-test-*.scope", False)):
                config = f'clone_allowed_units = {{"{pattern}"}}'
                with daemon(config, agent=WITHOUT_SYS_ADMIN) as running:
                    if right:
                        expect_fork(running, filtered.pid)
                    else:
                        expect_stop(running, filtered.pid, "seccomp filter")


@suite.test("filters: where the operator is wrong, and the filter refuses, the target is stopped")
def _():
    with target(launcher=behind("filtered")) as filtered:
        with daemon('clone_allowed_cgroups = {"*"}', agent=WITHOUT_SYS_ADMIN) as running:
            expect_refusal(running, filtered.pid, "the target's clone")


# ---- too large ----

MANY = 256  # MiB, and an eighth of it in small objects


def patiently(ask_once):
    """A census that is late once, on a busy machine, is asked for again."""
    for _ in range(10):
        answer = ask_once()
        if answer.status != 504:
            break
    check_equal(answer.status, 200, f"{answer.body[:300]!r}")
    return answer.json()


@suite.test("a census is taken of what is too large for max_pause, or for the memory of a scan")
def _():
    with target("many", held=MANY) as large, daemon(arguments=("--max-scan-memory", 32 * MIB)) as running:
        with unharmed(large.pid):
            foretold = tool("judge", large.pid)["stop_pause_us"] / 1e6
            note(f"a full stop is foretold to take {foretold} s")
            for depth in ("full", "census"):
                def once(depth=depth):
                    return ask(running, large.pid, mode="stop", depth=depth, max_pause=0.9 * foretold)

                if depth == "census":
                    check_census(patiently(once))
                else:
                    refused = once()
                    check_equal((refused.status, refused.error_code()), (504, "pause_exceeded"),
                                f"{refused.body[:300]!r}")
                    check(b"depth=census would take about" in refused.body, f"{refused.body!r}")
            for mode in ("auto", "fork", "stop"):
                answer = ask(running, large.pid, mode=mode)
                check_equal(answer.status, 503, f"{answer.body[:300]!r}")
                check_equal(answer.error_code(), "out_of_memory", "error")
                census = running.scan(large.pid, depth="census", mode=mode)
                check_census(census, "stop" if mode == "stop" else "fork")


suite.run()
