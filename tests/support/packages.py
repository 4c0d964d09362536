"""Packaged programs that tools/packaged.sh has unpacked."""

import os
import pathlib

from tap import Skip


def folder():
    if os.environ.get("GOHEAPD_PACKAGED"):
        return pathlib.Path(os.environ["GOHEAPD_PACKAGED"])
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "goheapd" / "packaged"


def program(name):
    """Its path, or a skipped test."""
    path = folder() / "usr" / "bin" / name
    if not os.access(path, os.X_OK):
        raise Skip(f"{name} is not there (tools/packaged.sh)")
    return path
