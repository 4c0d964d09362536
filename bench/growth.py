#!/usr/bin/env python3
"""How pause and whole scan grow with the heap: the tree from 0.25 to 4 GiB."""

import measure

SIZES = (256, 512, 1024, 2048, 4096)


def measure_size(server, version, size, count):
    with measure.heap(version, "tree", size) as target:
        server.scan(target.pid)  # makes the index
        with measure.fork_yardstick(target) as yardstick:
            return measure.rounds(count, lambda: {
                "fork": measure.seconds(yardstick, "fork"),
                "gc": measure.seconds(target, "gc"),
                **measure.scan(server, target)})


def main():
    options = measure.options(__doc__, 3)
    table = measure.Table(__doc__, "Go", "live", "pause", "bare fork", "ratio", "`runtime.GC()`",
                          "scan, by the client", "scan per GC", "seconds per GiB",
                          "peak memory per live heap")
    for version in options.go:
        speeds = []
        with measure.daemon() as server:
            for size in SIZES:
                found = measure_size(server, version, size, options.count)
                speeds.append(found["wall"] / (found["live"] / measure.GIB))
                table.row(version, measure.mebibytes(found["live"]),
                          measure.milliseconds(found["pause"]), measure.milliseconds(found["fork"]),
                          f"{found['pause'] / found['fork']:.2f}", f"{found['gc']:.3f} s",
                          f"{found['wall']:.3f} s", f"{found['wall'] / found['gc']:.2f}",
                          f"{speeds[-1]:.3f}", f"{found['memory'] / found['live']:.3f}")
        table.row(version, "largest to smallest", "", "", "", "", "", "",
                  f"{max(speeds) / min(speeds):.2f}", "")


if __name__ == "__main__":
    main()
