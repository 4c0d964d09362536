#!/usr/bin/env python3
"""Executables of every toolchain, in variants, compared with what other programs say of them: the
layout with itself across ways of linking, functions with the symbol table, frame sizes with
.debug_frame, lines with the program's own runtime."""

import random
import re
import shutil
import subprocess

import gobuild
from harness import Fixture, build_fixture, program
from tap import Skip, Suite, check, check_equal

LINES_SAMPLE = 400

suite = Suite()


def error_number(name):
    """Of enum error_code, which counts from 1."""
    header = (gobuild.SOURCE_ROOT / "proto/base/error.h").read_text()
    return re.findall(r"^\t(ERROR_\w+)", header, re.M).index(name) + 1


def ask(command, path, text=None):
    """The lines that binary_facts prints, and whether it was content."""
    done = subprocess.run([program("tests/support/binary_facts"), command, path], input=text,
                          stdout=subprocess.PIPE, check=False, encoding="utf-8")
    return done.stdout.splitlines(), done.returncode == 0


def facts(command, path, text=None):
    lines, good = ask(command, path, text)
    check(good, f"{command} of {path}: {lines[-1:]}")
    return lines


def refusal(path):
    """Error code and message of a file that must be refused."""
    lines, good = ask("layout", path)
    check(not good, f"{path} was read")
    code, message = lines[0].split(" ", 1)
    return int(code), message


def readelf(*arguments):
    if not shutil.which("readelf"):
        raise Skip("needs readelf (binutils)")
    return subprocess.run(["readelf", "-W", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, encoding="utf-8").stdout


def shape(lines):
    """What linking does not change: all but addresses, and names of builds."""
    return [line for line in lines if line.split()[0] in ("struct", "field", "constant")]


def check_layouts(version, experiment):
    plain = facts("layout", build_fixture("symbols", version, experiment))
    check_equal(plain[0].split()[1][:len(version) + 2], f"go{version}", "version")
    check(experiment in plain[0], f"{experiment} in {plain[0]}")
    check_equal(plain[1], "module goheapd/symbols", "module")
    # the experiments differ from their versions in the heap, not in how they are linked
    modes = ("-ldflags=-compressdwarf=false", "-buildmode=pie") if not experiment else ()
    for flags in ((mode,) for mode in modes):
        other = facts("layout", build_fixture("symbols", version, experiment, flags))
        check_equal(shape(other), shape(plain), f"layout with {flags[0]}")
        check_equal(other[:2], plain[:2], f"build info with {flags[0]}")


def plain_name(symbol):
    """As the runtime prints a name: without the ABI, and with [...] for type arguments."""
    # the linker makes a dot of every middle dot in symbol tables
    name = re.sub(r"\.abi(0|internal)$", "", symbol).replace("\u00b7", ".")
    return re.sub(r"\[.*\]", "[...]", name)


def symbols(path):
    """Functions of the symbol table: (address, size, name)."""
    for line in readelf("-s", path).splitlines():
        columns = line.split(None, 7)
        if len(columns) == 8 and columns[3] == "FUNC":
            yield int(columns[1], 16), int(columns[2], 0), plain_name(columns[7])


def check_functions(version):
    path = build_fixture("symbols", version)
    known = {(address, name) for address, _, name in symbols(path)}
    functions = [line.split(" ", 2) for line in facts("functions", path)]
    check(len(functions) > 1000, f"{len(functions)} functions")
    wrong = [(entry, name) for entry, _, name in functions
             if (int(entry, 16), plain_name(name)) not in known]
    check_equal(wrong, [], "functions that the symbol table has not")


def described_frames(path):
    """(pc, size) at which .debug_frame says that a frame changes: CFA is rsp and the size and 8."""
    rows, end = {}, 0
    for line in readelf("--debug-dump=frames-interp", path).splitlines():
        described = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if described:
            end = int(described[2], 16)
            continue
        row = re.match(r"([0-9a-f]{16}) rsp\+(\d+) ", line)
        # readelf repeats the last row at the last byte
        if row and int(row[1], 16) < end - 1:
            rows[int(row[1], 16)] = int(row[2]) - 8
    return rows


def check_frames(version):
    path = build_fixture("symbols", version)
    changes = [(int(pc, 16), int(size)) for pc, size in
               (line.split() for line in facts("frames", path))]
    rows = described_frames(path)
    check(len(rows) > 4000, f"{len(rows)} rows in .debug_frame")
    ours = dict(changes)
    sizes, wrong, at = sorted(changes), [], -1
    for pc, size in sorted(rows.items()):
        while at + 1 < len(sizes) and sizes[at + 1][0] <= pc:
            at += 1
        if at < 0 or sizes[at][1] != size:
            wrong.append((hex(pc), size, ours.get(pc)))
    check_equal(wrong, [], "frames that .debug_frame sees otherwise")


def sample_pcs(path):
    """Places in functions, of the packages that are written in Go alone or nearly so."""
    choose = random.Random(7)
    written = [(address, size) for address, size, name in symbols(path)
               if re.match(r"(runtime|main|strconv|bufio|os|syscall)\b", name) and size]
    for address, size in choose.sample(written, LINES_SAMPLE):
        yield choose.randrange(address, address + size)


def check_lines(version):
    path = build_fixture("symbols", version)
    pcs = list(sample_pcs(path))
    lines = facts("lines", path, "".join(f"{pc:x}\n" for pc in pcs))
    check_equal(len(lines), len(pcs), "answers")
    wrong = []
    with Fixture([path]) as target:
        for text in lines:
            pc, entry, function, line, file = text.split("\t")
            truth = target.command(pc)
            ours = {"function": plain_name(function), "file": file, "line": int(line),
                    "entry": int(entry, 16)}
            if ours != truth:
                wrong.append((pc, ours, truth))
    check_equal(wrong, [], "lines that the runtime sees otherwise")


def check_stripped(version):
    path = build_fixture("symbols", version, flags=("-ldflags=-w",))
    code, message = refusal(path)
    check_equal(code, error_number("ERROR_NO_DEBUG_INFO"), message)
    check("-ldflags=-w" in message, message)


def check_386(version):
    path = build_fixture("symbols", version, env={"GOARCH": "386"})
    code, message = refusal(path)
    check_equal(code, error_number("ERROR_UNSUPPORTED_ARCH"), message)
    check("386" in message, message)


def add_variant(version, experiment):
    name = gobuild.variant_name(version, experiment)

    @suite.test(f"{name}: one layout for every way of linking")
    def _():
        check_layouts(version, experiment)


def add_version(version):
    @suite.test(f"go{version}: functions are those of the symbol table")
    def _():
        check_functions(version)

    @suite.test(f"go{version}: frame sizes are those of .debug_frame")
    def _():
        check_frames(version)

    @suite.test(f"go{version}: lines are those that the program's runtime knows")
    def _():
        check_lines(version)

    @suite.test(f"go{version}: without DWARF the answer says how to get it")
    def _():
        check_stripped(version)


for variant in gobuild.VARIANTS:
    add_variant(*variant)
for one in gobuild.VERSIONS:
    add_version(one)


@suite.test("a 386 executable is refused by name")
def _():
    check_386(gobuild.VERSIONS[-1])


suite.run()
