#!/usr/bin/env python3
"""Builds the Go programs of tests/fixtures with any of the toolchains.

A built program lies in the build tree under the hash of everything that went into it, so building
again costs one look. Toolchains are those that tools/toolchains.sh unpacks.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

VERSIONS = ["1.15", "1.19", "1.21", "1.22", "1.23", "1.24", "1.25", "1.26", "1.27"]

# Every runtime that must be decoded exactly: a version, and an experiment that changes its heap.
VARIANTS = [(version, "") for version in VERSIONS] + [
    ("1.24", "noswissmap"),
    ("1.25", "greenteagc"),
    ("1.26", "nogreenteagc"),
]

SOURCE_ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = SOURCE_ROOT / "tests" / "fixtures"


class ToolchainMissing(Exception):
    """The wanted Go version is not on this machine; the test is skipped."""


def variant_name(version, experiment=""):
    return f"go{version}-{experiment}" if experiment else f"go{version}"


def build_root():
    return pathlib.Path(os.environ.get("abs_top_builddir", os.getcwd()))


def toolchain_root():
    if os.environ.get("GOHEAPD_TOOLCHAINS"):
        return pathlib.Path(os.environ["GOHEAPD_TOOLCHAINS"])
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "goheapd" / "toolchains"


def goroot(version):
    root = toolchain_root() / "usr" / "lib" / f"go-{version}"
    if not os.access(root / "bin" / "go", os.X_OK):
        raise ToolchainMissing(f"no Go {version} in {toolchain_root()} (tools/toolchains.sh)")
    return root


def go_environment(version, experiment, extra):
    """What the go command may see of ours: as little as can be, so that builds repeat."""
    cache = os.environ.get("GOHEAPD_GOCACHE") or toolchain_root() / "cache"
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "GOROOT": str(goroot(version)),
        "GOCACHE": str(cache),
        "GOPATH": str(build_root() / "tests" / "programs" / "gopath"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOTELEMETRY": "off",
        "GO111MODULE": "on",
        "CGO_ENABLED": "0",
    }
    if experiment:
        environment["GOEXPERIMENT"] = experiment
    environment.update(extra)
    return environment


def content_hash(parts, files):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def run(command, environment, directory):
    done = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout.decode()}")


def compile_fixture(sources, fixture, version, flags, environment, output):
    # The language version of a module is its toolchain's, so that files behind build tags may use
    # what is new there; the folder of the sources itself may be read-only.
    with tempfile.TemporaryDirectory(prefix="goheapd-fixture-") as folder:
        for source in sources:
            shutil.copy(source, folder)
        pathlib.Path(folder, "go.mod").write_text(f"module goheapd/{fixture}\n\ngo {version}\n")
        partial = output.with_name(output.name + ".part")
        command = [goroot(version) / "bin" / "go", "build", "-o", partial, *flags, "."]
        run(command, environment, folder)
        os.rename(partial, output)


class Program:
    """How a fixture becomes a process: by itself."""

    tags = ()
    companions = ()  # fixtures whose sources go into it, too
    after = ()  # commands that are run on the executable

    def make(self, sources, fixture, version, flags, environment, output):
        partial = output.with_name(output.name + ".whole")
        compile_fixture(sources, fixture, version, flags, environment, partial)
        for command in self.after:
            run([command, partial], environment, output.parent)
        os.rename(partial, output)


class PluginHost(Program):
    """With plugins, which lie beside it as NAME.so and which it opens when it starts."""

    tags = ("plugins",)
    companions = ("plugin_globals", "plugin_references", "plugin_stacks")

    def make(self, sources, fixture, version, flags, environment, output):
        for name in self.companions:
            compile_fixture(fixture_sources(name), name, version,
                            [*flags, "-buildmode=plugin"], environment,
                            output.with_name(f"{name}.so"))
        super().make(sources, fixture, version, flags, environment, output)


class Archive(Program):
    """As a C archive in a program of C's, of which only threads are left when it is ready."""

    tags = ("archive",)
    companions = ("archive_main",)

    def make(self, sources, fixture, version, flags, environment, output):
        archive = output.with_name(f"{fixture}.a")
        compile_fixture(sources, fixture, version, [*flags, "-buildmode=c-archive"], environment,
                        archive)
        partial = output.with_name(output.name + ".part")
        run(["gcc", "-g", "-O2", "-o", partial, *fixture_sources(*self.companions), archive,
             "-pthread"], environment, output.parent)
        os.rename(partial, output)


class Stripped(Program):
    """As packagers leave it: symbols and debug information are taken out of it afterwards."""

    after = ("strip",)


PROGRAM, PLUGIN_HOST, ARCHIVE, STRIPPED = Program(), PluginHost(), Archive(), Stripped()


@contextlib.contextmanager
def locked(path):
    """Tests run side by side; one builds, the others wait for it."""
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fixture_sources(*fixtures, root=FIXTURES):
    return sorted(path for fixture in fixtures for path in (root / fixture).iterdir()
                  if path.suffix in (".go", ".c", ".h", ".s"))


def kept(folder_name, name, make):
    """The path of a program in a folder of its own; make(path) builds it if it is not there."""
    folder = build_root() / "tests" / "programs" / folder_name
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / name
    with locked(folder / "lock"):
        if not output.exists():
            make(output)
    return output


def build(fixture, version, experiment="", flags=(), env=None, root=FIXTURES, form=PROGRAM):
    """The path of the fixture as an executable of that version; builds it when it is not there."""
    extra = env or {}
    sources = fixture_sources(fixture, root=root)
    if form.tags:
        flags = [*flags, "-tags=" + ",".join(form.tags)]
    environment = go_environment(version, experiment, extra)
    toolchain = (goroot(version) / "VERSION").read_text()
    parts = [version, toolchain, experiment, *flags, *form.after, repr(sorted(extra.items()))]
    key = content_hash(parts, [*sources, *fixture_sources(*form.companions)])
    return kept(f"{variant_name(version, experiment)}-{key}", fixture, lambda output: form.make(
        sources, fixture, version, flags, environment, output))


def build_command(name, version):
    """The path of one of Go's own commands, such as cmd/go, built with debug information."""
    root = goroot(version)
    environment = {**go_environment(version, "", {}), "GOFLAGS": ""}  # its modules are vendored
    key = content_hash([version, (root / "VERSION").read_text(), name], [])

    def make(output):
        partial = output.with_name(output.name + ".part")
        run([root / "bin" / "go", "build", "-o", partial, f"cmd/{name}"], environment,
            root / "src" / "cmd")
        os.rename(partial, output)

    return kept(f"{variant_name(version)}-{key}", name, make)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fixture", help="a folder of tests/fixtures")
    parser.add_argument("version", help="Go version such as 1.26")
    parser.add_argument("--experiment", default="", help="GOEXPERIMENT")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("flags", nargs="*", help="further flags of go build, after --")
    options = parser.parse_args()
    extra = dict(setting.split("=", 1) for setting in options.env)
    try:
        print(build(options.fixture, options.version, options.experiment, options.flags, extra))
    except (ToolchainMissing, RuntimeError) as error:
        sys.exit(f"gobuild: {error}")


if __name__ == "__main__":
    main()
