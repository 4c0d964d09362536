#!/usr/bin/env python3
"""What `make install` lays down, and whether systemd takes the units."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import top_builddir
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


suite.run()
