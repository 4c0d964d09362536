#!/usr/bin/env python3
"""What a goroutine of the target costs us: peak memory with 100,000 of them less that with 100.

For memusage and for the list of goroutines, in the decoder and in agent and daemon, which hold the
answer: that of the list says of every goroutine where it waits.
"""

import pathlib

import measure
import procfs

MANY, FEW = 100000, 100


def agent_of(server):
    """The process that supervises; keepers and decoders are of the same program, in other roles."""
    for pid in server.descendants():
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if words[0].endswith("goheap-agent") and not any("--role" in word for word in words):
            return pid
    raise AssertionError("no agent below the daemon")


class Peak:
    """By how much a process's resident memory grows at most, from here on."""

    def __init__(self, pid):
        self.pid = pid
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # forgets the peak so far
        self.before = self.peak()

    def peak(self):
        return int(procfs.status(self.pid)["VmHWM"].split()[0]) * 1024

    def bytes(self):
        return self.peak() - self.before


def ask(server, target, endpoint):
    daemon, agent = Peak(server.process.pid), Peak(agent_of(server))
    found = measure.scan(server, target, endpoint=endpoint)
    return {"wall": found["wall"], "answer": found["answer"], "decoder": found["memory"],
            "agent": agent.bytes(), "daemon": daemon.bytes()}


def measure_peaks(version, number, endpoint, count):
    """The medians, each of a daemon that has answered nothing like it."""
    def once():
        with measure.daemon() as server:
            return ask(server, target, endpoint)

    with measure.heap(version, "goroutines", number) as target:
        return measure.rounds(count, once)


def main():
    options = measure.options(__doc__, 3)
    table = measure.Table(__doc__, "Go", "answer", "scan, by the client", "decoder, per goroutine",
                          "agent, per goroutine", "daemon, per goroutine", "of it the answer")
    for version in options.go:
        for endpoint in ("memusage", "goroutines"):
            few = measure_peaks(version, FEW, endpoint, options.count)
            many = measure_peaks(version, MANY, endpoint, options.count)
            each = {key: f"{(many[key] - few[key]) / (MANY - FEW):.0f} bytes" for key in few}
            table.row(version, endpoint, f"{many['wall']:.3f} s", each["decoder"], each["agent"],
                      each["daemon"], each["answer"])


if __name__ == "__main__":
    main()
