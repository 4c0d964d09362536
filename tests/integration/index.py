#!/usr/bin/env python3
"""The on-disk indexes of binaries, of the runtime's layout and of the program's types: they save
parsing DWARF, and nothing that is wrong with one is ever more than a reason to make it anew."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import Daemon, Fixture, build_fixture
from procfs import unharmed
from tap import Skip, Suite, check, check_equal

GO = "1.23"  # without a GNU build id

suite = Suite()


def index_files(daemon):
    return sorted(path for path in daemon.cache_dir.rglob("*") if path.is_file())


def scan(daemon, target, uses_index):
    """A scan that must, or must not, be served from the index; what it found alive."""
    found = daemon.scan(target.pid)
    check_equal(found["scan"]["index_used"], uses_index, "served from the index")
    check_equal(found["scan"]["detail"]["layouts"], "dwarf", "layouts")
    prepared, total = found["scan"]["prepare_seconds"], found["scan"]["total_seconds"]
    check(0 < prepared < total, f"{prepared} s of {total} s went by before the stop")
    return found["heap"]["live_objects"]


def only_index(daemon):
    files = index_files(daemon)
    check_equal(len(files), 1, f"number of index files ({files})")
    return files[0]


@suite.test("the second scan of a binary opens no DWARF, also of another process and another daemon")
def _():
    program = build_fixture("demo", GO)
    with Daemon() as daemon, Fixture([program]) as target, unharmed(target.pid):
        live = scan(daemon, target, False)
        check_equal(scan(daemon, target, True), live, "live objects")
        with Fixture([program]) as other:
            scan(daemon, other, True)
        daemon.stop()
        daemon.start()
        check_equal(scan(daemon, target, True), live, "live objects after a restart")


@suite.test("index files are for nobody else's eyes")
def _():
    with Daemon() as daemon, Fixture([build_fixture("demo", GO)]) as target:
        scan(daemon, target, False)
        path = only_index(daemon)
        check_equal(path.stat().st_mode & 0o077, 0, "rights of others on the file")
        check_equal(path.parent.stat().st_mode & 0o077, 0, "rights of others on the folder")


def damages(content):
    """Ways in which a file goes bad: cut, grown, emptied, a bit turned at many places."""
    yield b""
    yield content[:len(content) // 2]
    yield content[:-1]
    yield content + b"x"
    yield bytes(len(content))
    for place in range(0, len(content), max(1, len(content) // 12)):
        yield content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1:]


@suite.test("a damaged index is detected and made anew")
def _():
    with Daemon("--config", fast_config()) as daemon, \
            Fixture([build_fixture("demo", GO)]) as target, unharmed(target.pid):
        live = scan(daemon, target, False)
        path = only_index(daemon)
        content = path.read_bytes()
        for damaged in damages(content):
            path.write_bytes(damaged)
            check_equal(scan(daemon, target, False), live, "live objects with a damaged index")
            check_equal(only_index(daemon).read_bytes(), content, "the index made anew")
        check_equal(scan(daemon, target, True), live, "live objects at the end")


@suite.test("the index of another binary is detected and made anew")
def _():
    with Daemon() as daemon, Fixture([build_fixture("demo", GO)]) as target, \
            Fixture([build_fixture("demo", "1.26")]) as other, unharmed(target.pid):
        live = scan(daemon, target, False)
        path = only_index(daemon)
        scan(daemon, other, False)
        foreign = next(file for file in index_files(daemon) if file != path)
        shutil.copyfile(foreign, path)
        check_equal(scan(daemon, target, False), live, "live objects with a foreign index")
        check_equal(scan(daemon, target, True), live, "live objects at the end")


@suite.test("a binary that was built anew in the same place is not read by the old index")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-index-") as folder, Daemon() as daemon:
        program = pathlib.Path(folder, "demo")
        shutil.copy(build_fixture("demo", GO), program)
        with Fixture([program]) as target:
            scan(daemon, target, False)
        stamp = program.stat()
        # The same inode and modification time: only the change time tells.
        with open(build_fixture("demo", "1.22"), "rb") as source, open(program, "r+b") as file:
            file.truncate(0)
            shutil.copyfileobj(source, file)
        os.utime(program, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        with Fixture([program]) as target, unharmed(target.pid):
            scan(daemon, target, False)
            found = daemon.scan(target.pid)
            check(found["go_version"].startswith("go1.22"), found["go_version"])


# ---- types ----


def named_types(found):
    """Types of the program's own package, which are allocated and then stay."""
    return {entry["type"]: entry["objects"] for entry in found["types"]
            if entry["type"].startswith("main.")}


def typed_scan(daemon, target, uses_index):
    """A histogram that must, or must not, be served from the indexes; the program's own types."""
    found = daemon.scan(target.pid, endpoint="histogram")
    check_equal(found["scan"]["index_used"], uses_index, "served from the indexes")
    check_equal(found["scan"]["detail"]["types"], "dwarf", "where types are from")
    check(named_types(found), "there are types of the program's own")
    return named_types(found)


def only_types(daemon):
    files = [path for path in index_files(daemon) if path.suffix == ".types"]
    check_equal(len(files), 1, f"number of type indexes ({files})")
    return files[0]


@suite.test("types are read from DWARF once, and only for who asks for them")
def _():
    with Daemon("--config", fast_config()) as daemon, \
            Fixture([build_fixture("demo", GO)]) as target, unharmed(target.pid):
        scan(daemon, target, False)
        check_equal(only_index(daemon).suffix, ".index", "kind of the only index")
        types = typed_scan(daemon, target, False)
        check_equal(only_types(daemon).stat().st_mode & 0o077, 0, "rights of others on the file")
        check_equal(typed_scan(daemon, target, True), types, "types from the index")
        scan(daemon, target, True)


@suite.test("a damaged type index is detected and made anew")
def _():
    with Daemon("--config", fast_config()) as daemon, \
            Fixture([build_fixture("demo", GO)]) as target, unharmed(target.pid):
        types = typed_scan(daemon, target, False)
        path = only_types(daemon)
        content = path.read_bytes()
        for damaged in damages(content):
            path.write_bytes(damaged)
            check_equal(typed_scan(daemon, target, False), types, "types with a damaged index")
            check(only_types(daemon).read_bytes() == content, "the index was not made anew")
        check_equal(typed_scan(daemon, target, True), types, "types at the end")


@suite.test("the type index of another binary is detected and made anew")
def _():
    with Daemon("--config", fast_config()) as daemon, \
            Fixture([build_fixture("demo", GO)]) as target, \
            Fixture([build_fixture("demo", "1.26")]) as other, unharmed(target.pid):
        types = typed_scan(daemon, target, False)
        path = only_types(daemon)
        typed_scan(daemon, other, False)
        foreign = next(file for file in index_files(daemon)
                       if file.suffix == ".types" and file != path)
        shutil.copyfile(foreign, path)
        check_equal(typed_scan(daemon, target, False), types, "types with a foreign index")
        check_equal(typed_scan(daemon, target, True), types, "types at the end")


@suite.test("the type index of a program whose DWARF has a file of its own is of that file")
def _():
    if not shutil.which("objcopy") or not shutil.which("strip"):
        raise Skip("needs objcopy and strip (binutils)")
    with tempfile.TemporaryDirectory(prefix="goheapd-index-") as folder, \
            Daemon("--config", fast_config()) as daemon:
        bare, debug = pathlib.Path(folder, "demo"), pathlib.Path(folder, "demo.debug")
        program = build_fixture("demo", GO)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", "-o", bare, program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", bare], check=True)
        with Fixture([bare]) as target, unharmed(target.pid):
            types = typed_scan(daemon, target, False)
            check_equal(typed_scan(daemon, target, True), types, "types from the index")
            # the same content at another time: the index is not of that
            os.utime(debug, ns=(0, 0))
            check_equal(typed_scan(daemon, target, False), types, "types of a touched file")
            check_equal(typed_scan(daemon, target, True), types, "types at the end")


def fast_config():
    """A configuration that lets scans follow each other at once."""
    path = scratch / "goheapd.conf"
    path.write_text("min_stop_interval = 0\n")
    return path


with tempfile.TemporaryDirectory(prefix="goheapd-index-") as scratch_name:
    scratch = pathlib.Path(scratch_name)
    scratch.chmod(0o755)
    suite.run()
