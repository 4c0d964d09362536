"""The ways of building a Go program that change where things lie in it, what its debug information
looks like, what is alive in it or who its threads are. One table for every fixture that must read
the same whichever way it was built.

`make stress` runs the full product with the versions. `make check` runs what brief() leaves of it:
every way and every version at least once, and as few builds of a standard library as can be.
"""

import os
import shutil
import typing

import gobuild
import harness
from tap import Skip

CGO = {"CGO_ENABLED": "1"}


class Way(typing.NamedTuple):
    """One way of building."""

    name: str
    check: tuple  # versions that `make check` builds this way
    flags: tuple = ()
    env: dict = {}
    experiment: str = ""
    form: gobuild.Program = gobuild.PROGRAM
    since: str = "1.15"  # the first version that can

    def needs_c(self):
        return self.env.get("CGO_ENABLED") == "1"


WAYS = [
    Way("pie", ("1.15",), flags=("-buildmode=pie",)),
    Way("cgo, linked internally", ("1.22",), flags=("-ldflags=-linkmode=internal",), env=CGO),
    Way("cgo, linked externally", ("1.23",), flags=("-ldflags=-linkmode=external",), env=CGO),
    Way("pie, linked externally", ("1.27",),
        flags=("-ldflags=-linkmode=external", "-buildmode=pie"), env=CGO),
    Way("without optimisation", ("1.26",), flags=("-gcflags=all=-N -l",)),
    Way("race detector", ("1.24",), flags=("-race",), env=CGO),
    Way("uncompressed DWARF", ("1.19", "1.25"), flags=("-ldflags=-compressdwarf=false",)),
    Way("without DWARF", ("1.19",), flags=("-ldflags=-w",)),
    Way("stripped by the linker", ("1.15", "1.24", "1.27"), flags=("-ldflags=-s -w",)),
    Way("stripped", ("1.21", "1.26"), form=gobuild.STRIPPED),
    Way("pie, stripped", ("1.23",), flags=("-buildmode=pie", "-ldflags=-s -w")),
    Way("pie, linked externally, stripped", ("1.25",),
        flags=("-ldflags=-linkmode=external -s -w", "-buildmode=pie"), env=CGO),
    Way("cgo, linked externally, stripped", ("1.22",),
        flags=("-ldflags=-linkmode=external -s -w",), env=CGO),
    Way("DWARF 4", ("1.26",), experiment="nodwarf5", since="1.25"),
    Way("two plugins", ("1.22",), env=CGO, form=gobuild.PLUGIN_HOST),
    Way("C archive without its leader", ("1.21",), env=CGO, form=gobuild.ARCHIVE),
    Way("user arenas", ("1.24",), experiment="arenas", since="1.21"),
]


def number(version):
    return tuple(map(int, version.split(".")))


def product():
    """Every way with every version that has it."""
    return [(way, version) for way in WAYS for version in gobuild.VERSIONS
            if number(version) >= number(way.since)]


def brief():
    return [(way, version) for way in WAYS for version in way.check]


def chosen():
    return product() if harness.STRESS else brief()


def build(fixture, version, way):
    """The fixture as an executable, or a skipped test."""
    if way.needs_c() and not shutil.which("gcc"):
        raise Skip("no C compiler for cgo")
    return harness.build_fixture(fixture, version, way.experiment, way.flags, way.env,
                                 form=way.form)
