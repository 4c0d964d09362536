"""Control groups of version 1, and of version 2 for freezing, that a test makes for its target."""

import contextlib
import itertools
import os
import pathlib

import procfs
from tap import Skip, check

ROOT = pathlib.Path("/sys/fs/cgroup")
numbers = itertools.count()


def own_path(controller):
    """This process's group in the hierarchy of that controller; "" is version 2's."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    raise Skip(f"no cgroup hierarchy of {controller or 'version 2'} here")


def folder(controller):
    if controller:
        return ROOT / controller.partition("=")[2] if "=" in controller else ROOT / controller
    return ROOT / "unified" if (ROOT / "unified").is_dir() else ROOT


class Group:
    """A group below this process's own, or below another one. It goes when its last process has."""

    def __init__(self, controller, parent=None, name=None):
        self.parent = parent
        self.path = parent.path if parent else folder(controller) / own_path(controller)
        self.path /= name or f"goheapd-test-{os.getpid()}-{next(numbers)}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise Skip(f"no group can be made: {error}") from error

    def write(self, name, value):
        (self.path / name).write_text(f"{value}\n")

    def read(self, name):
        return (self.path / name).read_text()

    def number(self, name):
        return int(self.read(name))

    def field(self, name, key):
        for line in self.read(name).splitlines():
            if line.split()[0] == key:
                return int(line.split()[1])
        raise AssertionError(f"{name} of {self.path} has no {key}")

    def take(self, pid):
        self.write("cgroup.procs", pid)

    def close(self):
        with contextlib.suppress(OSError):
            procfs.eventually(lambda: not self.read("cgroup.procs").split(),
                              f"{self.path} has processes left")
            self.path.rmdir()
            check(not self.path.exists(), f"{self.path} is left")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class MemoryGroup(Group):
    """Its counters say whether a scan has come near its limit."""

    def __init__(self, parent=None):
        super().__init__("memory", parent)

    def used(self):
        return self.number("memory.usage_in_bytes")

    def limit(self, value):
        self.write("memory.limit_in_bytes", value)

    def trouble(self):
        """How often the limit was met, and how often a process was killed for it."""
        return self.number("memory.failcnt"), self.field("memory.oom_control", "oom_kill")
