#!/usr/bin/env python3
"""What scans do to the target: its own latency and throughput without, during and after them.

The target serves requests out of a tree of 1 GiB and measures itself, first as fast as it can and
then at half that pace. Scans follow one another without a rest, which nobody does to a service: it
is the worst that can be. Huge pages are looked at apart, since a snapshot splits them.
"""

import contextlib
import threading

import measure

KINDS = {"tree": "small", "hugetree": "huge"}
FLAT_OUT_SECONDS, PACED_SECONDS = 2, 3


@contextlib.contextmanager
def back_to_back_scans(server, target, mode):
    """As many as can be while the block runs; yields the list of them."""
    over, scans = threading.Event(), []

    def work():
        while not over.is_set():
            scans.append(measure.scan(server, target, mode))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield scans
    finally:
        over.set()
        thread.join()


def serve(target, pace):
    """What the target saw of itself, and the rate that it reached as fast as it could."""
    fast = target.command(f"serve 0 {FLAT_OUT_SECONDS}")
    paced = target.command(f"serve {pace or fast['rate'] / 2} {PACED_SECONDS}")
    return {**paced, "rate": fast["rate"], "pace": paced["rate"]}


def show(table, version, pages, phase, target, found, scans=()):
    table.row(version, pages, phase, len(scans) or "",
              measure.milliseconds(max(scan["pause"] for scan in scans)) if scans else "",
              f"{found['rate']:,.0f}", f"{found['pace']:,.0f}",
              *(f"{found[key] * 1e3:.2f} ms" for key in ("median", "p99", "p999", "worst")),
              measure.mebibytes(measure.huge_bytes(target.pid)))


def main():
    options = measure.options(__doc__, 1)
    table = measure.Table(__doc__, "Go", "pages", "phase", "scans", "longest pause",
                          "requests/s flat out", "requests/s paced", "median", "p99", "p99.9",
                          "worst", "in huge pages")
    for version in options.go:
        for kind, pages in KINDS.items():
            with measure.daemon() as server, measure.heap(version, kind, 1024) as target:
                before = serve(target, None)
                show(table, version, pages, "before", target, before)
                for mode in ("stop", "fork"):
                    server.scan(target.pid, mode="stop")  # makes the index
                    with back_to_back_scans(server, target, mode) as scans:
                        found = serve(target, before["pace"])
                    show(table, version, pages, f"during, `{mode}`", target, found, scans)
                    found = serve(target, before["pace"])
                    show(table, version, pages, f"after, `{mode}`", target, found)


if __name__ == "__main__":
    main()
