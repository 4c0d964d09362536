#!/usr/bin/env python3
"""What a goroutine of the target costs us: peak memory with 100,000 of them less that with 100.

For memusage and for the list of goroutines, in the decoder (which is gone after the scan) and in the
daemon, whose answer holds a line for each in the latter.
"""

import pathlib

import measure
import procfs

MANY, FEW = 100000, 100


def reset_peak(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_rss(pid):
    return int(procfs.status(pid)["VmHWM"].split()[0]) * 1024


def ask(server, target, endpoint):
    daemon = server.process.pid
    reset_peak(daemon)
    before = peak_rss(daemon)
    found = measure.scan(server, target, endpoint=endpoint)
    return {"wall": found["wall"], "decoder": found["memory"], "daemon": peak_rss(daemon) - before}


def peaks(version, number, endpoint, count):
    """The medians, each of a daemon that has answered nothing like it."""
    def once():
        with measure.daemon() as server:
            return ask(server, target, endpoint)

    with measure.heap(version, "goroutines", number) as target:
        return measure.rounds(count, once)


def main():
    options = measure.options(__doc__, 3)
    table = measure.Table("Go", "answer", "scan, by the client", "decoder, per goroutine",
                          "daemon, per goroutine")
    for version in options.go:
        for endpoint in ("memusage", "goroutines"):
            few = peaks(version, FEW, endpoint, options.count)
            many = peaks(version, MANY, endpoint, options.count)
            each = {key: (many[key] - few[key]) / (MANY - FEW) for key in few}
            table.row(version, endpoint, f"{many['wall']:.3f} s", f"{each['decoder']:.0f} bytes",
                      f"{each['daemon']:.0f} bytes")


if __name__ == "__main__":
    main()
