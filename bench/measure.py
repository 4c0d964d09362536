"""What the benchmarks share: targets, yardsticks, scans timed by the client, tables.

A figure is worth nothing on a machine that does something else at the same moment, so every
round measures the thing and its yardstick one after the other, and what counts is the median of
the rounds.
"""

import argparse
import contextlib
import pathlib
import statistics
import struct
import tempfile
import time

from harness import Daemon, Fixture, top_builddir
import gobuild
import procfs
from tap import check_equal

MIB = 1 << 20
GIB = 1 << 30
VERSIONS = ("1.26", "1.27")
BENCH = gobuild.SOURCE_ROOT / "bench"


def options(text, count, versions=VERSIONS):
    """The arguments that every benchmark takes, and what they are if they are not given."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--go", action="append", metavar="VERSION",
                        help=f"Go version of the targets, can be given more than once "
                             f"({' and '.join(versions)})")
    parser.add_argument("--count", type=int, default=count,
                        help="rounds of each kind (%(default)s)")
    found = parser.parse_args()
    found.go = found.go or versions
    return found


def heap(version, kind, size):
    """A running target with such a heap."""
    return Fixture([gobuild.build("heap", version, root=BENCH), kind, size])


@contextlib.contextmanager
def daemon():
    """One that may stop a target as often as it is asked to."""
    with tempfile.TemporaryDirectory(prefix="goheapd-bench-") as folder:
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("min_stop_interval = 0\n")
        pathlib.Path(folder).chmod(0o755)  # the daemon gives up root
        with Daemon("--config", config) as running:
            yield running


def huge_bytes(pid):
    return sum(fields.get("AnonHugePages", 0) for *_, fields in procfs.smaps(pid))


def fork_yardstick(target, *how):
    """A C process as large as the target, in pages of the same sizes, that forks on command. Its
    pages lie in a row in the machine's memory, as far as the kernel has such, or "scattered"."""
    return Fixture([top_builddir() / "bench" / "fork", procfs.rss_bytes(target.pid),
                    huge_bytes(target.pid), *how])


def rows_of_pages(pid):
    """How many pages lie in a row in the machine's memory, on an average, where they do in the
    process's: what a fork takes depends on it. Only root may know."""
    pages = rows = 0
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        for start, end, *_, fields in procfs.smaps(pid):
            if fields.get("Anonymous", 0) < MIB:
                continue
            pagemap.seek(start // procfs.PAGE_SIZE * 8)
            last = 0
            for entry, in struct.iter_unpack("Q", pagemap.read((end - start) // procfs.PAGE_SIZE * 8)):
                frame = entry & (1 << 55) - 1 if entry >> 63 else 0
                pages += frame != 0
                rows += frame not in (0, last + 1)
                last = frame
    return pages / max(rows, 1)


def seconds(fixture, command):
    """How long a fixture took for what it was told to do."""
    return fixture.command(command)["seconds"]


def scan(server, target, mode="fork", endpoint="memusage"):
    """What one scan cost, by the client's clock and by the scan's own account."""
    start = time.monotonic()
    answer = server.get(f"/pid/{target.pid}/{endpoint}?format=json&mode={mode}&max_pause=10")
    wall = time.monotonic() - start
    check_equal(answer.status, 200, f"answer {answer.body[:500]!r} has the status")
    size, answer = len(answer.body), answer.json()
    return {
        "wall": wall,
        "answer": size,
        "total": answer["scan"]["total_seconds"],
        "pause": answer["scan"]["pause_seconds"],
        "memory": answer["scan"]["peak_memory_bytes"],
        "prepare": answer["scan"]["prepare_seconds"],
        **({"live": answer["heap"]["live_bytes"], "objects": answer["heap"]["live_objects"]}
           if "heap" in answer else {}),
    }


def rounds(count, once):
    """The median of each figure that once() gives."""
    rows = [once() for _ in range(count)]
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


class Table:
    """Markdown, row by row as they are found, under the question that a script answers."""

    def __init__(self, text, *headers):
        print(f"\n### {text.splitlines()[0].rstrip('.')}\n")
        self.row(*headers)
        self.row(*["---"] * len(headers))

    def row(self, *cells):
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def milliseconds(value):
    return f"{value * 1e3:.1f} ms"


def mebibytes(value):
    return f"{value / MIB:,.0f} MiB"
