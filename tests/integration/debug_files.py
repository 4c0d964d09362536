#!/usr/bin/env python3
"""DWARF in a file of its own gives the same answers as DWARF in the executable, wherever the file
may lie; a file of another build is refused by name, and nothing is ever fetched from a network."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

from harness import Daemon, Fixture, build_fixture, need_root
from procfs import unharmed
from tap import Skip, Suite, check, check_equal, check_within

NO_BUILD_ID = "1.23"  # the last without a GNU build id
WITH_BUILD_ID = "1.26"

suite = Suite()


def binutils(*command):
    if not shutil.which(command[0]):
        raise Skip(f"needs {command[0]} (binutils)")
    return subprocess.run(list(map(str, command)), check=True, encoding="utf-8",
                          stdout=subprocess.PIPE).stdout


def split(program, folder, link=None):
    """A copy of a program without DWARF, symbols and all, and the file that has them."""
    folder.mkdir(parents=True, exist_ok=True)
    bare, debug = folder / "program", folder / "program.debug"
    binutils("objcopy", "--only-keep-debug", program, debug)
    binutils("strip", "-o", bare, program)
    if link:
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(debug, link)
        binutils("objcopy", f"--add-gnu-debuglink={link}", bare)
        debug = link
    return bare, debug


def build_id(program):
    return re.search(r"Build ID: ([0-9a-f]+)", binutils("readelf", "-n", program))[1]


def build_id_path(debug_dir, program):
    identifier = build_id(program)
    return debug_dir / ".build-id" / identifier[:2] / f"{identifier[2:]}.debug"


def move(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


class Place:
    """A daemon with a folder of debug files of its own, and room for programs."""

    def __init__(self, **keywords):
        self.temporary = tempfile.TemporaryDirectory(prefix="goheapd-debug-")
        self.root = pathlib.Path(self.temporary.name)
        self.root.chmod(0o755)
        self.debug_dir = self.root / "usr-lib-debug"
        self.debug_dir.mkdir()
        config = self.root / "goheapd.conf"
        config.write_text(f'min_stop_interval = 0\ndebug_dir = "{self.debug_dir}"\n')
        self.daemon = Daemon("--config", config, **keywords)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.daemon.__exit__(*exception)
        self.temporary.cleanup()

    def scan(self, target, layouts="debug file", refused=(), index_used=None):
        """A scan with that outcome: where the layouts are from, and which files were refused."""
        found = self.daemon.scan(target.pid)
        check_equal(found["scan"]["detail"]["layouts"], layouts, "layouts")
        if index_used is not None:
            check_equal(found["scan"]["index_used"], index_used, "served from the index")
        warnings = [warning["message"] for warning in found["scan"]["warnings"]
                    if warning["code"] == "debug_file_refused"]
        check_equal(len(warnings), len(refused), f"refused files ({warnings})")
        for path, text in zip(refused, warnings):
            check(text.startswith(f"{path} is not used"), text)
            check("of another build" in text, text)
        return found

    def scan_without(self, target, refused=()):
        """A scan that finds no debug file: the built-in layouts do."""
        found = self.scan(target, "table", refused)
        check("-ldflags=-w" in found["scan"]["detail"]["missing"], found["scan"]["detail"])
        return found


def check_alike(one, other, what):
    """The programs go on living, and no two begin alike: some objects are one's own."""
    check_equal(one["scan"]["trust"]["self_check"], "ok", "self check")
    check_equal(one["stacks"]["goroutines"], other["stacks"]["goroutines"], f"goroutines, {what}")
    check_within(one["heap"]["live_objects"], other["heap"]["live_objects"],
                 other["heap"]["live_objects"] / 1000, f"live objects, {what}")


def check_same(place, bare, program):
    """By the debug file, by the index made from it, and by the DWARF of the program itself."""
    with Fixture([bare]) as target, unharmed(target.pid):
        first = place.scan(target, index_used=False)
        again = place.scan(target, index_used=True)
        check_alike(again, first, "by the index")
        overview = place.daemon.get(f"/pid/{target.pid}?format=json").json()
        check_equal(overview["detail"]["layouts"], "debug file", "layouts of the overview")
    with Fixture([program]) as target:
        check_alike(first, place.scan(target, "dwarf"), "by DWARF in the program")


@suite.test("by build id in the folder of debug files")
def _():
    with Place() as place:
        program = build_fixture("demo", WITH_BUILD_ID)
        bare, debug = split(program, place.root)
        move(debug, build_id_path(place.debug_dir, program))
        check_same(place, bare, program)


def add_link_test(what, version, where):
    @suite.test(f"go{version}: by debug link, {what}")
    def _():
        with Place() as place:
            program = build_fixture("demo", version)
            link = where(place)
            bare, _ = split(program, place.root / "app", link)
            check_same(place, bare, program)


for go_version in ("1.15", NO_BUILD_ID, "1.27"):
    add_link_test("beside the program", go_version,
                  lambda place: place.root / "app" / "program.debug")
add_link_test("in .debug there", NO_BUILD_ID,
              lambda place: place.root / "app" / ".debug" / "program.debug")
add_link_test("in the folder of debug files, under the program's path", NO_BUILD_ID,
              lambda place: place.debug_dir / str(place.root / "app")[1:] / "program.debug")


@suite.test("compressed debug sections, in either form, are read as well")
def _():
    for form in ("zlib-gnu", "zlib-gabi"):
        with Place() as place:
            program = build_fixture("demo", WITH_BUILD_ID)
            bare, debug = split(program, place.root)
            binutils("objcopy", f"--compress-debug-sections={form}", debug)
            move(debug, build_id_path(place.debug_dir, program))
            check_same(place, bare, program)


@suite.test("a file of another build is refused by name")
def _():
    with Place() as place:
        program = build_fixture("demo", WITH_BUILD_ID)
        bare, debug = split(program, place.root)
        _, other = split(build_fixture("demo", "1.27"), place.root / "other")
        wrong = build_id_path(place.debug_dir, program)
        move(other, wrong)
        with Fixture([bare]) as target, unharmed(target.pid):
            place.scan_without(target, refused=[wrong])
            # the right one elsewhere is taken, with the same warning
            shutil.move(debug, place.root / "program.debug")
        binutils("objcopy", f"--add-gnu-debuglink={place.root / 'program.debug'}", bare)
        with Fixture([bare]) as target, unharmed(target.pid):
            place.scan(target, refused=[wrong], index_used=False)
            place.scan(target, refused=[wrong], index_used=True)


@suite.test("a file whose checksum is not the link's is refused by name")
def _():
    with Place() as place:
        program = build_fixture("demo", NO_BUILD_ID)
        link = place.root / "program.debug"
        bare, _ = split(program, place.root / "app", link)
        near = place.root / "app" / "program.debug"
        # damaged where no build id tells
        content = bytearray(link.read_bytes())
        content[-1] ^= 1
        near.write_bytes(content)
        with Fixture([bare]) as target, unharmed(target.pid):
            place.scan_without(target, refused=[near])
            move(link, place.root / "app" / ".debug" / "program.debug")
            place.scan(target, refused=[near], index_used=False)


@suite.test("the index follows the debug file that it was made from")
def _():
    with Place() as place:
        program = build_fixture("demo", WITH_BUILD_ID)
        bare, debug = split(program, place.root)
        path = build_id_path(place.debug_dir, program)
        with Fixture([bare]) as target, unharmed(target.pid):
            place.scan_without(target)
            move(debug, path)
            first = place.scan(target, index_used=False)
            place.scan(target, index_used=True)
            os.utime(path)  # another file, as far as one can tell
            check_alike(place.scan(target, index_used=False), first, "by another file")
            path.unlink()
            place.scan_without(target)


@suite.test("what is no regular ELF file at those places is passed over, and nothing waits for it")
def _():
    need_root()
    with Place() as place:
        program = build_fixture("demo", NO_BUILD_ID)
        link = place.root / "app" / ".debug" / "program.debug"
        bare, _ = split(program, place.root / "app", link)
        near = place.root / "app" / "program.debug"
        traps = (lambda: os.mkfifo(near), lambda: os.mknod(near, 0o600 | 0o020000, os.makedev(1, 5)),
                 lambda: near.write_text("no ELF file"), near.mkdir,
                 lambda: near.symlink_to(near.name), lambda: near.symlink_to("/proc/self/exe"),
                 lambda: near.symlink_to(bare))
        with Fixture([bare]) as target, unharmed(target.pid):
            for trap in traps:
                trap()
                place.scan(target)
                if near.is_dir() and not near.is_symlink():
                    near.rmdir()
                else:
                    near.unlink()


@suite.test("in a root of its own a target has files of its own, and the host's folder")
def _():
    need_root()
    if not shutil.which("chroot"):
        raise Skip("chroot is not installed")
    with Place() as place:
        program = build_fixture("demo", NO_BUILD_ID)
        root = place.root / "container"
        outside = place.root / "apart" / "program.debug"
        bare, _ = split(program, root / "app", outside)
        inside = root / "app" / "program.debug"
        with Fixture(["/app/program"], wrapper=("chroot", root)) as target, unharmed(target.pid):
            # a link out of its root leads back into it
            inside.symlink_to(outside)
            place.scan_without(target)
            copy = root / str(outside)[1:]
            copy.parent.mkdir(parents=True)
            shutil.copy(outside, copy)
            place.scan(target)
            inside.unlink()
            move(copy, root / str(place.debug_dir)[1:] / "app" / "program.debug")
            place.scan(target)
            (root / str(place.debug_dir)[1:] / "app" / "program.debug").unlink()
            place.scan_without(target)
            move(outside, place.debug_dir / "app" / "program.debug")
            place.scan(target)


@suite.test("no server of debug information is ever asked")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        os.environ["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{server.getsockname()[1]}/"
        try:
            with Place() as place:
                program = build_fixture("demo", WITH_BUILD_ID)
                bare, _ = split(program, place.root)
                with Fixture([bare]) as target, unharmed(target.pid):
                    place.scan_without(target)
                with Fixture([program]) as target:
                    place.scan(target, "dwarf")
        finally:
            del os.environ["DEBUGINFOD_URLS"]
        try:
            server.accept()
        except TimeoutError:
            return
        check(False, "somebody asked the server")


suite.run()
