#!/usr/bin/env python3
"""How long a target stands still, against a bare fork of a C process of the same resident size.

The heaps are of 1 GiB. In `fork` mode the kernel copies page tables, which the bare fork does as
well; in `stop` mode the target stands still while its memory is read. For comparison, the runtime's
own debug.WriteHeapDump stops the world for as long as it writes.
"""

import measure

KINDS = {"tree": "tree", "buffers": "buffers", "huge": "buffers in huge pages"}


def measure_pauses(server, target, count):
    with measure.fork_yardstick(target) as yardstick:
        return measure.rounds(count, lambda: {
            "bare": measure.seconds(yardstick, "fork"),
            **{mode: measure.scan(server, target, mode)["pause"] for mode in ("fork", "stop")}})


def main():
    options = measure.options(__doc__, 7)
    table = measure.Table(__doc__, "Go", "heap", "in huge pages", "bare fork", "pause, `fork`",
                          "per bare fork", "pause, `stop`", "per bare fork", "`WriteHeapDump`")
    with measure.daemon() as server:
        for version in options.go:
            for kind, name in KINDS.items():
                with measure.heap(version, kind, 1024) as target:
                    server.scan(target.pid, mode="stop")  # makes the index, and splits no huge page
                    huge = measure.mebibytes(measure.huge_bytes(target.pid))
                    found = measure_pauses(server, target, options.count)
                    dump = measure.seconds(target, "dump")
                bare = found["bare"]
                table.row(version, name, huge, measure.milliseconds(bare),
                          measure.milliseconds(found["fork"]), f"{found['fork'] / bare:.2f}",
                          measure.milliseconds(found["stop"]), f"{found['stop'] / bare:.2f}",
                          measure.milliseconds(dump))


if __name__ == "__main__":
    main()
