#!/usr/bin/env python3
"""The type index of executables of every toolchain, built in several ways, compared with what
another reader makes of the same DWARF, with the symbol table, and with what the program knows."""

import collections
import json
import subprocess

import gobuild
from harness import build_fixture, program
from tap import Suite, check, check_equal, note

READER = "1.27"  # whose debug/dwarf reads all versions

# internal/abi/type.go
ARRAY, INTERFACE, STRUCT = 17, 20, 25

CGO = {"CGO_ENABLED": "1"}

# Ways of building, each with one version more than all of them with the plain way.
WAYS = [
    ("1.15", ("-buildmode=pie",), None),
    ("1.19", ("-gcflags=-N -l",), None),
    ("1.22", ("-gcflags=-N -l",), None),
    ("1.23", ("-ldflags=-linkmode=external",), CGO),
    ("1.24", ("-ldflags=-compressdwarf=false",), None),
    ("1.27", ("-ldflags=-linkmode=external", "-buildmode=pie"), CGO),
    ("1.27", ("-gcflags=-N -l",), None),
]

Type = collections.namedtuple(
    "Type", "number name kind size length descriptor elem key representation methods found_name "
    "found_descriptor fields")
Local = collections.namedtuple("Local", "name function start end offset size piece type escaped "
                                           "spilled register")

suite = Suite()


def symbols(path):
    """Addresses of the symbol table, with their names."""
    lines = subprocess.run([gobuild.goroot(READER) / "bin" / "go", "tool", "nm", path],
                           stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    for line in lines.splitlines():
        columns = line.split(None, 2)
        if len(columns) == 3 and len(columns[0]) > 1:
            yield int(columns[0], 16), columns[1], columns[2]


class Index:
    """What type_facts prints, read."""

    def __init__(self, path, entries, debug_file=None):
        command = [program("tests/support/type_facts"), path, *([debug_file] if debug_file else [])]
        done = subprocess.run(command, input="\n".join(map(hex, sorted(entries))),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              encoding="utf-8")
        check_equal(done.returncode, 0, f"type_facts: {done.stderr}")
        self.text = done.stdout
        self.types = {}
        self.globals = []
        self.locals = collections.defaultdict(list)
        self.captures = collections.defaultdict(list)
        last = entry = None
        for line in done.stdout.splitlines():
            what, *row = line.split("\t")
            if what == "type":
                numbers = [int(value, 0) for value in (row[0], *row[2:])]
                last = Type(numbers[0], row[1], *numbers[1:], [])
                self.types[last.number] = last
            elif what == "field":
                last.fields.append((row[0], int(row[1]), int(row[2])))
            elif what == "global":
                self.globals.append((row[0], int(row[1], 0), int(row[2])))
            elif what == "function":
                entry = int(row[0], 0)
            elif what == "local":
                self.locals[entry].append(Local(*row[:2], *(int(value, 0) for value in row[2:])))
            elif what == "capture":
                self.captures[entry].append((row[0], int(row[1]), int(row[2])))

    def name(self, number):
        return self.types[number].name if number else ""

    def find(self, name):
        found = [t for t in self.types.values() if t.name == name]
        check(found, f"there is a type {name}")
        return found[0]


def read_otherwise(path):
    """Rows of dwarf_reader by their kind."""
    lines = subprocess.run([build_fixture("dwarf_reader", READER), path], stdout=subprocess.PIPE,
                           check=True, encoding="utf-8").stdout
    rows = collections.defaultdict(list)
    for line in lines.splitlines():
        what, *row = line.split("\t")
        rows[what].append(tuple(row))
    return rows


def check_same(found, expected, what):
    found, expected = collections.Counter(found), collections.Counter(expected)
    check(expected, f"no {what} to compare with")
    missing, extra = expected - found, found - expected
    check(not missing and not extra, f"{what}: missing {list(missing)[:5]}, extra {list(extra)[:5]}")


# ---- against another reader ----


def check_types(index, rows):
    check_same([(t.name, str(t.kind), str(t.size), str(t.length), index.name(t.elem),
                 index.name(t.key), str(t.methods)) for t in index.types.values()],
               rows["type"], "types")
    check_same([(t.name, name, str(offset), index.name(number)) for t in index.types.values()
                for name, offset, number in t.fields], rows["field"], "fields")
    check_same([(name, hex(addr), index.name(number)) for name, addr, number in index.globals],
               rows["global"], "globals")
    check(index.globals == sorted(index.globals, key=lambda row: row[1]), "globals by address")


class Pointers:
    """Where types hold pointers."""

    LARGE = 1 << 12  # bytes; of types beyond that only the beginning is looked at

    def __init__(self, index):
        self.index = index
        self.known = {0: {0}}  # what is not known may be a pointer

    def find(self, number):
        t = self.index.types[number]
        if t.kind == STRUCT:
            parts = [(offset, of) for _, offset, of in t.fields]
        elif t.kind == ARRAY and t.elem:
            size = self.index.types[t.elem].size
            parts = [(i * size, t.elem) for i in range(min(t.length, self.LARGE // max(size, 1)))]
        elif t.kind == INTERFACE:
            return {0, 8}
        else:
            return {0} if t.kind == 0 or t.kind > ARRAY else set()
        return {offset + word for offset, of in parts for word in self.words(of)}

    def words(self, number):
        if number not in self.known:
            self.known[number] = set()  # no type has itself in it
            self.known[number] = self.find(number)
        return self.known[number]

    def has(self, number, piece, size):
        return any(piece <= word < piece + size for word in self.words(number))


def expected_locals(rows):
    """Places of variables by function, those that follow each other joined."""
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for entry, name, function, start, end, *place in rows["local"]:
        variable = (name, function, *place)
        runs[int(entry, 0)][variable].append((int(start, 0), int(end, 0)))
    return runs


def covers(spans, pc):
    return any(start <= pc < end for start, end in spans)


def check_spilled(index):
    """
    Where parameters go that came in registers DWARF tells of some: above the frame, one behind the
    other. The rules that are followed for all must say the same.
    """
    compared = 0
    for entry, found in index.locals.items():
        end, told = 0, collections.defaultdict(set)
        for local in found:
            if not (local.spilled or local.escaped or local.register) and local.offset >= 0:
                told[local.name, local.function].add(local.offset - local.piece)
        for local in (local for local in found if local.spilled):
            check(local.offset >= end and not local.piece, f"{entry:#x}: {local}")
            end = local.offset + local.size
            places = told[local.name, local.function]
            check(all(local.offset <= place < end for place in places),
                  f"{entry:#x}: {local} is at {places}")
            compared += len(places)
    note(f"{compared} places of parameters were compared")


def check_locals(index, rows):
    """What the index has is there, and what is there and may be a pointer has a name in it."""
    pointers, runs = Pointers(index), expected_locals(rows)
    by_name = collections.defaultdict(list)
    for t in index.types.values():
        by_name[t.name].append(t.number)
    compared = 0
    for entry, found in index.locals.items():
        for local in found:
            if local.spilled:
                continue
            variable = (local.name, local.function, str(local.offset), str(local.size),
                        str(local.piece), index.name(local.type), str(local.escaped),
                        str(local.register))
            spans = runs[entry].get(variable, [])
            check(covers(spans, local.start) and covers(spans, local.end - 1),
                  f"{entry:#x}: {local} is nowhere, there are {dict(runs[entry])}")
            check(local.escaped or pointers.words(local.type)
                  and (local.size == 8 or pointers.has(local.type, local.piece, max(local.size, 1))),
                  f"{entry:#x}: {local} is no pointer")
            compared += 1
    check(compared > 1000, f"only {compared} locals were compared")
    check_spilled(index)
    for entry, variables in runs.items():
        have = index.locals.get(entry, [])
        for (name, _, offset, size, piece, of, escaped, register), spans in variables.items():
            if escaped == "0" and not all(pointers.has(number, int(piece), int(size))
                                          for number in by_name[of]):
                continue
            for start, end in spans:
                check(any(local.offset == int(offset) and local.size == int(size)
                          and local.register == int(register) and local.start <= start and end <= local.end for local in have),
                      f"{entry:#x}: {name} at {offset} from {start:#x} to {end:#x} has no name: "
                      f"{have}")


def check_told_captures(index, rows):
    """One for each offset; by reference or in place, "&x" is x."""
    expected = collections.defaultdict(dict)
    for entry, name, offset, of in rows["capture"]:
        expected[int(entry, 0)].setdefault(int(offset), set()).add((name.lstrip("&"), of))
    for entry, captures in expected.items():
        have = index.captures[entry]
        check_equal([offset for _, offset, _ in have], sorted(captures), "offsets of captures")
        for name, offset, number in have:
            found = (name, index.name(number)), (name, "*" + index.name(number))
            check(any(form in captures[offset] for form in found),
                  f"{entry:#x}: {found} is not of {captures[offset]}")


# ---- against the program and its symbols ----


def check_globals(index, path):
    known = {name: addr for addr, _, name in symbols(path)}
    for name, addr, _ in index.globals:
        check_equal(known.get(name), addr, f"address of {name}")


def check_descriptors(index, facts, bias):
    """All of them are told apart, and those that the program has are where it has them."""
    for t in index.types.values():
        check_equal(index.name(t.found_name), t.name, "found by name")
        if t.descriptor:
            check_equal(t.found_descriptor, t.number, f"{t.name} found by descriptor")
    for known in facts["Types"]:
        descriptor = known["Descriptor"] - bias
        found = [t for t in index.types.values() if t.descriptor == descriptor]
        check_equal(len(found), 1, f"types with the descriptor of {known['Name']}")
        check_known(index, found[0], known)


def check_known(index, found, known):
    check_equal((found.size, found.kind, found.length),
                (known["Size"], known["Kind"], known["Length"]), known["Name"])
    fields = [(field["Name"], field["Offset"]) for field in known["Fields"] or ()]
    check_equal([(name, offset) for name, offset, _ in found.fields], fields, known["Name"])
    for part, of in (("Elem", found.elem), ("Key", found.key)):
        name = index.name(of).replace("noalg.", "").replace("interface {}", "any")
        check_equal(name, known[part].replace("interface {}", "any"), f"{part} of {known['Name']}")


CAPTURES = [
    [("count", 8, "*int"), ("flag", None, "bool"), ("item", None, "*main.Item"),
     ("any", None, "interface {}"), ("text", None, "string")],
    [("value", 8, "main.Large", "-N"), ("item", 64, "*main.Item")],
    [],
]


def check_captures(index, facts, entries, flags):
    """The names and types of what is captured; the order is the compiler's. What is used where it
    lies has no variable in DWARF unless nothing is optimised."""
    for function, known in zip(facts["Closures"], CAPTURES):
        expected = [row[:3] for row in known if len(row) < 4 or any("-N" in flag for flag in flags)]
        found = {name: (offset, index.name(number).replace("any", "interface {}")
                        if index.name(number) == "any" else index.name(number))
                 for name, offset, number in index.captures[entries[function]]}
        check_equal(sorted(found), sorted(name for name, _, _ in expected), f"what {function} captures")
        for name, offset, of in expected:
            check_equal(found[name][1], of, f"type of {name} in {function}")
            check(offset in (None, found[name][0]), f"{name} is at {found[name]}, not {offset}")


def check_index(version, flags=(), env=None):
    path = build_fixture("indexed", version, "", flags, env)
    facts = json.loads(subprocess.run([path], stdout=subprocess.PIPE, check=True).stdout)
    entries = {name: addr for addr, kind, name in symbols(path) if kind in "Tt"}
    index = Index(path, set(entries.values()))
    rows = read_otherwise(path)
    bias = facts["Globals"]["main.single"] - dict(row[:2] for row in index.globals)["main.single"]
    check_types(index, rows)
    check_locals(index, rows)
    check_told_captures(index, rows)
    check_globals(index, path)
    check_descriptors(index, facts, bias)
    check_captures(index, facts, entries, flags)
    for name, addr in facts["Globals"].items():
        check_equal(dict(row[:2] for row in index.globals)[name] + bias, addr, f"where {name} is")


def add_test(version, flags=(), env=None):
    how = " ".join((f"go{version}", *flags))

    @suite.test(f"{how}: types, variables and closures are as another reader and the program have them")
    def _():
        check_index(version, flags, env)


for tested in gobuild.VERSIONS:
    add_test(tested)
for tested in WAYS:
    add_test(*tested)

suite.run()
