#!/usr/bin/env python3
"""What `make install` lays down, and whether systemd takes the units."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import Daemon, Fixture, build_fixture, need_root, program, top_builddir
from procfs import eventually, unharmed
from tap import Skip, Suite, check, check_equal

suite = Suite()
UNITS = ["goheapd.service", "goheapd.socket", "goheap-agent.service", "goheap-agent.socket"]


def run(*command):
    # A make of our own, not a part of the one that runs the tests.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR")}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment, check=False)


def make(*arguments):
    done = run("make", "-C", str(top_builddir()), *arguments)
    check_equal(done.returncode, 0, f"make {' '.join(arguments)}: {done.stdout[-2000:]}")
    return done.stdout


def variable(name):
    """A folder as this build's Makefile has it."""
    return make("-s", "--no-print-directory", "print-folder", f"folder=$({name})").strip()


def find_systemd_units():
    for folder in ("/usr/lib/systemd/system", "/lib/systemd/system"):
        if os.path.exists(f"{folder}/sysinit.target"):
            return folder
    raise Skip("systemd is not installed")


@suite.test("installed files are complete and systemd finds no fault in the units")
def _():
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    with tempfile.TemporaryDirectory(prefix="goheapd-install-") as folder:
        root = pathlib.Path(folder)
        shutil.copytree(find_systemd_units(), root / "usr/lib/systemd/system", symlinks=True)
        make("install", f"DESTDIR={folder}")
        for program in ("goheapd", "goheap-agent"):
            path = root / variable("sbindir").lstrip("/") / program
            check(os.access(path, os.X_OK), f"{path} is not installed")
        check(os.access(root / variable("bindir").lstrip("/") / "goheap", os.X_OK),
              "goheap is not installed")
        # An image of its own: the units are looked for below the install prefix as well.
        units = root / variable("systemdsystemunitdir").lstrip("/")
        for unit in UNITS:
            shutil.copy(units / unit, root / "usr/lib/systemd/system")
        done = run("systemd-analyze", "verify", f"--root={folder}", "--man=no", *UNITS)
        check_equal((done.returncode, done.stdout.strip()), (0, ""), "systemd-analyze verify")


@suite.test("uninstalling leaves nothing behind")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-install-") as folder:
        make("install", f"DESTDIR={folder}")
        make("uninstall", f"DESTDIR={folder}")
        left = [str(path) for path in pathlib.Path(folder).rglob("*") if not path.is_dir()]
        check_equal(left, [], "files left by uninstall")


def granted_capabilities():
    """What the agent's unit leaves it, in the form that setpriv takes."""
    unit = (top_builddir() / "systemd/goheap-agent.service").read_text()
    line = next(line for line in unit.splitlines() if line.startswith("CapabilityBoundingSet="))
    names = line.partition("=")[2].split()
    return "-all," + ",".join("+" + name.removeprefix("CAP_").lower() for name in names)


@suite.test("the capabilities of the agent's unit suffice for other users' processes")
def _():
    need_root()
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    other_user = ("setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups")
    with tempfile.TemporaryDirectory(prefix="goheapd-units-") as folder:
        root = pathlib.Path(folder)
        root.chmod(0o755)
        shutil.copy(build_fixture("demo", "1.26"), root / "demo")
        os.chown(root / "demo", 12345, 12345)
        agent = subprocess.Popen(
            ["setpriv", f"--bounding-set={granted_capabilities()}", "--no-new-privs",
             program("goheap-agent"), "--listen", root / "agent.sock", "--cache-dir", root / "cache"])
        try:
            eventually((root / "agent.sock").exists, "the agent does not listen")
            with Daemon(agent_socket=root / "agent.sock") as daemon, \
                    Fixture([root / "demo"], wrapper=other_user) as target, unharmed(target.pid):
                (root / "demo").chmod(0o500)  # its owner's alone
                for mode in ("fork", "stop"):
                    check_equal(daemon.scan(target.pid, mode=mode)["uid"], 12345, "uid")
        finally:
            agent.terminate()
            check_equal(agent.wait(20), 0, "exit status of the agent")


suite.run()
