#!/usr/bin/env python3
"""What a whole scan takes, from request to answer, against the program's own forced runtime.GC().

Time and memory, for heaps of 1 GiB of four kinds: the tree of 19.4 million objects, few large
buffers without pointers, maps with interfaces, and tables full of pointers.
"""

import measure

KINDS = {"tree": "tree", "buffers": "buffers", "maps": "maps and interfaces",
         "pointers": "tables of pointers"}


def row(server, version, kind, count):
    with measure.heap(version, kind, 1024) as target:
        server.scan(target.pid)  # makes the index
        found = measure.rounds(count, lambda: {
            "gc": measure.seconds(target, "gc"),
            **measure.scan(server, target)})
    return (version, KINDS[kind], f"{found['objects']:,.0f}", measure.mebibytes(found["live"]),
            f"{found['gc']:.3f} s", f"{found['wall']:.3f} s", f"{found['total']:.3f} s",
            f"{found['wall'] / found['gc']:.2f}", measure.mebibytes(found["memory"]),
            f"{found['memory'] / found['live']:.3f}")


def main():
    options = measure.options(__doc__, 7)
    table = measure.Table(__doc__, "Go", "heap", "objects", "live", "`runtime.GC()`",
                          "scan, by the client", "`total_seconds`", "scan per GC", "peak memory",
                          "per live heap")
    with measure.daemon() as server:
        for version in options.go:
            for kind in KINDS:
                table.row(*row(server, version, kind, options.count))


if __name__ == "__main__":
    main()
