#!/usr/bin/env python3
"""What a scan costs, as ratios to yardsticks measured in the same run.

pause   against a bare fork of a C process with as many resident bytes, in pages of the same sizes
total   against the program's own runtime.GC(), forced in between the scans
memory  peak of the decoder against the live heap

The machine's speed cancels in the ratios, so figures of different machines can be compared.
"""

import argparse
import os
import statistics
import subprocess

from harness import Daemon, Fixture, top_builddir
import gobuild
import procfs

MIB = 1 << 20


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return f"{len(models)} x {models[0]}, Linux {os.uname().release}"


def median_fork(target):
    """Seconds of a bare fork of a process that is as large as the target."""
    huge = sum(fields.get("AnonHugePages", 0) for *_, fields in procfs.smaps(target.pid))
    size = procfs.rss_bytes(target.pid)
    out = subprocess.run([top_builddir() / "bench" / "fork", str(size), str(huge), "15"],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    return statistics.median(map(float, out.split())), size, huge


def measure(daemon, target, mode, count):
    """Scans and collections in turn, so that both see the machine in the same state."""
    rows = []
    for _ in range(count):
        scan = daemon.scan(target.pid, mode=mode)
        rows.append({
            "pause": scan["scan"]["pause_seconds"],
            "total": scan["scan"]["total_seconds"],
            "memory": scan["scan"]["peak_memory_bytes"],
            "live": scan["heap"]["live_bytes"],
            "objects": scan["heap"]["live_objects"],
            "gc": target.command("gc")["gc_seconds"],
        })
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def print_row(version, mode, found, fork):
    print(f"| {version} | {mode} | {found['pause'] * 1e3:.1f} ms | {found['pause'] / fork:.2f} "
          f"| {found['total']:.2f} s | {found['total'] / found['gc']:.2f} "
          f"| {found['memory'] / MIB:.0f} MiB | {found['memory'] / found['live']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--go", default="1.26", help="Go version of the target")
    parser.add_argument("--count", type=int, default=5, help="scans of each kind")
    options = parser.parse_args()
    program = gobuild.build("tree", options.go, root=gobuild.SOURCE_ROOT / "bench")
    with Daemon() as daemon, Fixture([program]) as target:
        daemon.scan(target.pid, mode="fork")  # makes the index
        fork, size, huge = median_fork(target)
        results = {mode: measure(daemon, target, mode, options.count) for mode in ("fork", "stop")}
        print(f"Machine: {machine()}")
        print(f"Target: go{options.go}, {results['fork']['objects']:.0f} objects, "
              f"{results['fork']['live'] / MIB:.0f} MiB live, {size / MIB:.0f} MiB resident, "
              f"{huge / MIB:.0f} MiB of it in huge pages")
        print(f"Yardsticks: bare fork {fork * 1e3:.1f} ms, "
              f"runtime.GC() {results['fork']['gc']:.2f} s\n")
        print("| Go | mode | pause | per bare fork | total | per runtime.GC() | peak memory "
              "| per live heap |")
        print("|---|---|---|---|---|---|---|---|")
        for mode, found in results.items():
            print_row(options.go, mode, found, fork)


if __name__ == "__main__":
    main()
