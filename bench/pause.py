#!/usr/bin/env python3
"""How long a target stands still, against a bare fork of a C process of the same resident size.

The heaps are of 1 GiB. Beside a process whose pages lie in a row in the machine's memory, where the
kernel had them, stands one whose pages lie anywhere, as a heap's do. In `fork` mode the kernel
copies page tables, which the bare fork does as well; in `stop` mode the target stands still while
its memory is read. For comparison, the runtime's own debug.WriteHeapDump stops the world for as
long as it writes.
"""

import measure

KINDS = {"tree": "tree", "buffers": "buffers", "huge": "buffers in huge pages"}


def measure_pauses(server, target, count):
    with measure.fork_yardstick(target) as yardstick, \
            measure.fork_yardstick(target, "scattered") as scattered:
        rows = {"target_rows": measure.rows_of_pages(target.pid),
                "bare_rows": measure.rows_of_pages(yardstick.pid),
                "scattered_rows": measure.rows_of_pages(scattered.pid)}
        return rows | measure.rounds(count, lambda: {
            "bare": measure.seconds(yardstick, "fork"),
            "scattered": measure.seconds(scattered, "fork"),
            **{mode: measure.scan(server, target, mode)["pause"] for mode in ("fork", "stop")}})


def main():
    options = measure.options(__doc__, 7)
    table = measure.Table(__doc__, "Go", "heap", "in huge pages", "pages in a row", "pause, `fork`",
                          "bare fork", "pages in a row", "ratio", "bare fork, scattered",
                          "pages in a row", "ratio", "pause, `stop`", "`WriteHeapDump`")
    with measure.daemon() as server:
        for version in options.go:
            for kind, name in KINDS.items():
                with measure.heap(version, kind, 1024) as target:
                    server.scan(target.pid, mode="stop")  # makes the index, and splits no huge page
                    huge = measure.mebibytes(measure.huge_bytes(target.pid))
                    found = measure_pauses(server, target, options.count)
                    dump = measure.seconds(target, "dump")
                pause = found["fork"]
                table.row(version, name, huge, f"{found['target_rows']:.1f}",
                          measure.milliseconds(pause),
                          measure.milliseconds(found["bare"]), f"{found['bare_rows']:.1f}",
                          f"{pause / found['bare']:.2f}",
                          measure.milliseconds(found["scattered"]),
                          f"{found['scattered_rows']:.1f}", f"{pause / found['scattered']:.2f}",
                          measure.milliseconds(found["stop"]), measure.milliseconds(dump))


if __name__ == "__main__":
    main()
