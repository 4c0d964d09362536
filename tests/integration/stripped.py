#!/usr/bin/env python3
"""Programs without DWARF: the built-in layouts are those of the toolchains, the runtime's globals
are found through the code that refers to them, and a version that is not known is used only where
everything that can be checked fits."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import gobuild
from harness import Daemon, Fixture, build_fixture, program, repeat_count
from procfs import unharmed
from tap import Skip, Suite, check, check_equal

STRIPPED = ("-ldflags=-s -w",)

suite = Suite()


def found_globals(pid, version):
    """The versions that table_facts names, and {global: (found, as DWARF has it)}."""
    out = subprocess.run([program("tests/support/table_facts"), str(pid), version],
                         stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    return out[0].split()[1:], {line.split()[0]: line.split()[1:] for line in out[1:]}


def version_in(binary, version):
    out = subprocess.run([gobuild.goroot(version) / "bin" / "go", "version", binary],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    return out.split(": ", 1)[1].strip()


def check_globals(binary, version):
    with Fixture([binary]) as target:
        for asked in (version_in(binary, version), ""):
            _, found = found_globals(target.pid, asked)
            wrong = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
            check_equal(wrong, {}, f"globals that are elsewhere, asked with {asked!r}")
            check(len(found) > 15, f"only {len(found)} globals")


for go, experiment in gobuild.VARIANTS:
    @suite.test(f"{gobuild.variant_name(go, experiment)}: code says where the globals are")
    def _(go=go, experiment=experiment):
        check_globals(build_fixture("demo", go, experiment), go)
        check_globals(build_fixture("demo", go, experiment, flags=("-buildmode=pie",)), go)


@suite.test("the built-in layouts are those of the toolchains")
def _():
    for version, _ in gobuild.VARIANTS:
        try:
            gobuild.goroot(version)
        except gobuild.ToolchainMissing as error:
            raise Skip(str(error)) from error
    # Of arm64 only in `make stress`: the whole standard library is built for it.
    architectures = repeat_count(["amd64"], ["amd64", "arm64"])
    tool = gobuild.SOURCE_ROOT / "tools" / "layout_table.py"
    done = subprocess.run([tool, "--check", *architectures], stdout=subprocess.PIPE, check=False, text=True)
    check_equal(done.returncode, 0, done.stdout[:2000])


def renamed(binary, folder, old, new):
    """A copy that says it was made by another version of Go, whose name is as long."""
    copy = pathlib.Path(folder, "renamed")
    shutil.copy(binary, copy)
    content = binary.read_bytes()
    check_equal(len(old), len(new), "length")
    check(old in content, f"no {old} in {binary}")
    copy.write_bytes(content.replace(old, new))
    return copy


def answer_of(version, old, new, flags=STRIPPED, endpoint="/memusage?max_pause=10"):
    binary = build_fixture("demo", version, flags=flags)
    with tempfile.TemporaryDirectory(prefix="goheapd-renamed-") as folder:
        with Daemon() as daemon, Fixture([renamed(binary, folder, old, new)]) as target, \
                unharmed(target.pid):
            return daemon.get(f"/pid/{target.pid}{endpoint}")


def pclntab_address(binary):
    """Where it lies, in a file that is loaded where it says."""
    out = subprocess.run(["readelf", "-SW", binary], stdout=subprocess.PIPE, check=True, text=True)
    return int(re.search(r"\.gopclntab +PROGBITS +([0-9a-f]+)", out.stdout)[1], 16)


@suite.test("a program whose pc-line table is damaged is corrupt_target")
def _():
    binary = build_fixture("demo", "1.27", flags=STRIPPED)
    damages = {0: b"\0" * 8, 8: b"\xff" * 8}  # the magic, and the number of functions
    for offset, bytes_there in damages.items():
        with Daemon() as daemon, Fixture([binary]) as target:
            with open(f"/proc/{target.pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(pclntab_address(binary) + offset)
                memory.write(bytes_there)
            with unharmed(target.pid):
                answer = daemon.get(f"/pid/{target.pid}/memusage?max_pause=10")
            check_equal((answer.status, answer.error_code()), (422, "corrupt_target"),
                        answer.text())


def codes(answer):
    return [warning["code"] for warning in answer.json()["scan"]["warnings"]]


@suite.test("a patch release that is not known is scanned with the nearest layout, and says so")
def _():
    answer = answer_of("1.26", b"go1.26.11", b"go1.26.99")
    check_equal(answer.status, 200, answer.text())
    check_equal(answer.json()["go_version"], "go1.26.99", "version")
    check("layout_nearest" in codes(answer), f"warnings {codes(answer)}")
    check_equal(answer.json()["scan"]["trust"]["self_check"], "ok", "self-check")


@suite.test("an overview, which can verify no layout, says that it is the nearest")
def _():
    answer = answer_of("1.26", b"go1.26.11", b"go1.26.99", endpoint="")
    check_equal(answer.status, 200, answer.text())
    check("layout_nearest" in [warning["code"] for warning in answer.json()["warnings"]],
          answer.text())


@suite.test("a version that no layout fits is unsupported_runtime, with the reason")
def _():
    for version, old, new in (("1.26", b"go1.26.11", b"go1.23.99"),
                              ("1.19", b"go1.19.8", b"go1.24.8"),
                              ("1.27", b"go1.27.4", b"go1.26.4")):
        answer = answer_of(version, old, new)
        check_equal((answer.status, answer.error_code()), (422, "unsupported_runtime"),
                    answer.text())
        check(new.decode() in answer.json()["error"]["message"], answer.text())


@suite.test("a program whose build info is gone tells its version by its code")
def _():
    for version, name in (("1.19", "go1.19.8"), ("1.27", "go1.27.4")):
        answer = answer_of(version, b"\xff Go buildinf:", b"\xff No buildinf:")
        check_equal(answer.status, 200, answer.text())
        check_equal(answer.json()["go_version"], name, "version")
        check_equal(answer.json()["scan"]["detail"]["layouts"], "table", "layouts")


@suite.test("what is missing is said, and the second scan looks for nothing again")
def _():
    with Daemon() as daemon, Fixture([build_fixture("demo", "1.25", flags=STRIPPED)]) as target, \
            unharmed(target.pid):
        first, second = daemon.scan(target.pid), daemon.scan(target.pid)
    check_equal([scan["scan"]["index_used"] for scan in (first, second)], [False, True], "index")
    for scan in (first, second):
        check_equal(scan["scan"]["detail"]["layouts"], "table", "layouts")
        check("-ldflags=-w" in scan["scan"]["detail"]["missing"], scan["scan"]["detail"])
    check_equal(first["heap"]["live_objects"], second["heap"]["live_objects"], "live objects")


suite.run()
