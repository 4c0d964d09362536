#!/usr/bin/env python3
"""Makes the tables of layouts that goheapd has for programs without DWARF.

For each toolchain at hand it builds two programs that use all of the runtime that goheapd reads,
and notes what their DWARF says of each entry of layout.def, and which functions of the runtime
refer to which global variable, where in it and how wide. A column of the table is a version.

    layout_table.py [--check] [ARCHITECTURE ...]

writes the tables, or with --check says how they differ from what the toolchains give. Runs in the
build folder, with PYTHONPATH at tests/support. Which code refers to what is noted of amd64 alone,
the one architecture whose code is read.
"""

import argparse
import collections
import difflib
import os
import subprocess
import sys

try:
    import gobuild
except ModuleNotFoundError:
    sys.exit("layout_table.py: PYTHONPATH must name the folder tests/support of the sources")

FIXTURES = ["oracle", "tenants"]
ARCHITECTURES = ["amd64", "arm64"]
FUNCTIONS_MAX = 8  # that bear witness to one global
OFFSETS_MAX = 4  # of one function

HEAD = """\
# What goheapd knows of Go runtimes by itself, for programs without DWARF: one column a version.
# Made by tools/layout_table.py; agent/goruntime/layout_table.awk makes C of it.
#
# struct    size
# field     offset+size
# constant  value
# global    size
# ref       global, function: offset/width of each access; width 0: its address is taken
#
# -         not in that version
"""


def facts_tool():
    return gobuild.build_root() / "tests" / "support" / "binary_facts"


def facts(what, program):
    out = subprocess.run([facts_tool(), what, program], stdout=subprocess.PIPE, check=True,
                         text=True)
    return [line.split() for line in out.stdout.splitlines()]


def version_key(text):
    """The version as go1.26 and later spell it, whoever made the binary."""
    return text.replace(" X:", "-X:")


def cell(kind, numbers):
    if kind == "struct":
        return numbers[0] if numbers[0] != "0" else "-"
    if kind == "field":
        return "+".join(numbers) if numbers[1] != "0" else "-"
    if kind == "constant":
        return numbers[1] if numbers[0] == "1" else "-"
    return numbers[1] if numbers[1] != "0" else "-"


def read_layout(program):
    version, rows = None, {}
    for kind, name, *numbers in facts("layout", program):
        if kind == "version":
            version = version_key(" ".join([name, *numbers]))
        elif kind != "module":
            rows[kind, name] = cell(kind, numbers)
    return version, rows


def read_references(program):
    """{global: {function: [(offset, width)]}} in the order of the code."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for name, function, offset, width in facts("references", program):
        access = f"{offset}/{width}"
        if access not in found[name][function]:
            found[name][function].append(access)
    return found


def column(arch, version, experiment):
    """One version's layout, and references that all its programs have."""
    name, rows, references = None, {}, None
    for fixture in FIXTURES:
        program = gobuild.build(fixture, version, experiment,
                                env=None if arch == "amd64" else {"GOARCH": arch})
        name, part = read_layout(program)
        for key, value in part.items():
            if rows.get(key, "-") == "-":
                rows[key] = value
        found = read_references(program) if arch == "amd64" else {}
        references = found if references is None else intersect(references, found)
    return name, rows, references


def intersect(left, right):
    both = collections.defaultdict(dict)
    for name, functions in left.items():
        for function, accesses in functions.items():
            common = [a for a in accesses if a in right[name].get(function, [])]
            if common:
                both[name][function] = common
    return both


def choose(columns, name):
    """The witnesses of a global: known to most versions, and with few other words to say."""
    weights = collections.Counter()
    for _, _, references in columns:
        for function, accesses in references.get(name, {}).items():
            weights[function] += 100 + min(len(accesses), OFFSETS_MAX)
    # Every version needs its own, also one that shares no function with the others.
    chosen = {}
    for _, _, references in columns:
        own = sorted(references.get(name, {}), key=lambda function: (-weights[function], function))
        chosen.update(dict.fromkeys(own[:FUNCTIONS_MAX]))
    return sorted(chosen)


def table(columns):
    lines = [HEAD, "columns\t" + "\t".join(name for name, _, _ in columns)]
    for kind, name in columns[-1][1]:
        lines.append("\t".join([kind, name, *(rows[kind, name] for _, rows, _ in columns)]))
    for kind, name in columns[-1][1]:
        if kind != "global":
            continue
        for function in choose(columns, name):
            cells = [",".join(references.get(name, {}).get(function, [])[:OFFSETS_MAX]) or "-"
                     for _, _, references in columns]
            lines.append("\t".join(["ref", name, function, *cells]))
    return "\n".join(lines) + "\n"


def path_of(arch):
    return gobuild.SOURCE_ROOT / "agent" / "goruntime" / f"layout_table_{arch}.txt"


def check(path, made):
    there = path.read_text()
    sys.stdout.writelines(difflib.unified_diff(
        there.splitlines(True), made.splitlines(True), str(path), "the toolchains"))
    return there == made


def architecture(name):
    if name not in ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(ARCHITECTURES)}")
    return name


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Runs in the build folder (or where abs_top_builddir says), where tests/support/"
               "binary_facts must be built, with the toolchains that GOHEAPD_TOOLCHAINS names.")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("arch", nargs="*", type=architecture, default=ARCHITECTURES,
                        metavar="ARCHITECTURE", help=f"default: {' '.join(ARCHITECTURES)}")
    options = parser.parse_args()
    if not os.access(facts_tool(), os.X_OK):
        parser.error(f"there is no {facts_tool()}: run it in the build folder, after "
                     "make tests/support/binary_facts")
    return options


def make_tables(options):
    """Whether those that there are say the same."""
    same = True
    for arch in options.arch:
        made = table([column(arch, *variant) for variant in gobuild.VARIANTS])
        if options.check:
            same &= check(path_of(arch), made)
        else:
            path_of(arch).write_text(made)
    return same


def main():
    options = read_options()
    try:
        sys.exit(not make_tables(options))
    except gobuild.ToolchainMissing as error:
        sys.exit(f"layout_table.py: {error}")


if __name__ == "__main__":
    main()
