#!/usr/bin/env python3
"""Spans, slots and pointer bits as read from real Go programs, against what these know."""

import gobuild
import harness
from heapfacts import heap_facts, resume, wait_stopped
from tap import Suite, check, check_equal, check_within, note

# What the runtime may allocate between its own count and the stop: a thread, say.
UNCOUNTED_OBJECTS = 8
UNCOUNTED_PAGES = 16

VARIANTS = gobuild.VARIANTS + [
    ("1.22", "noallocheaders"), ("1.22", "arenas"), ("1.24", "arenas"), ("1.27", "arenas"),
]

suite = Suite()


def bits(text):
    return int.from_bytes(bytes.fromhex(text), "little")


def expected_mask(entry):
    """The mask of one value, count times in a row."""
    one, mask, width = bits(entry["mask"]), 0, entry["words"]
    count, have = entry["count"], 0
    while have < count:  # doubles what is there
        part = min(max(have, 1), count - have)
        block = one if not have else mask & ((1 << part * width) - 1)
        mask |= block << have * width
        have += part
    return mask


def check_totals(totals, hello):
    check_equal(totals["skipped_spans"], 0, "skipped spans")
    check_equal(totals["sweeping_spans"], 0, "spans being swept")
    check_equal(totals["in_use_pages"], totals["runtime_in_use_pages"], "pages in use")
    check_equal(totals["alloc_count_sum"], totals["objects"], "sum of allocCount")
    check_within(totals["objects"], hello["heap_objects"], UNCOUNTED_OBJECTS, "HeapObjects")
    check(totals["objects"] >= hello["heap_objects"], "fewer objects than the runtime counts")
    in_use = totals["in_use_pages"] * 8192 - totals["quarantined_bytes"]
    check_within(in_use, hello["heap_inuse"], UNCOUNTED_PAGES * 8192, "HeapInuse")
    note(f"{totals['objects']} objects, {totals['objects'] - hello['heap_objects']} more than "
         f"HeapObjects; {totals['bytes'] - hello['heap_alloc']} bytes more than HeapAlloc")


def check_pages(totals, hello, version):
    check_equal(totals["contradictions"], 0, "pages both free and in a span")
    kept = totals["kept_pages"] * 8192
    free = kept + (totals["released_pages"] + totals["spanless_pages"]) * 8192
    # The scavenger may have released any number of pages since; what is free stays.
    check(kept <= hello["heap_idle"] - hello["heap_released"] + UNCOUNTED_PAGES * 8192,
          f"kept {kept}, more than HeapIdle - HeapReleased")
    if version == "1.15":  # counts what is left of the newest arena as well
        check(free <= hello["heap_idle"], "more free pages than the runtime counts")
    else:
        check_within(free, hello["heap_idle"], UNCOUNTED_PAGES * 8192, "HeapIdle")
    if version not in ("1.26", "1.27"):  # which begin the heap in the middle of an arena
        check_equal(totals["spanless_pages"], 0, "allocated pages without a span")
    note(f"kept {kept} bytes, {kept - hello['heap_idle'] + hello['heap_released']} more than the "
         f"runtime; free {free}, {free - hello['heap_idle']} more than HeapIdle; "
         f"{totals['spanless_pages']} pages without a span, {totals['cached_pages']} cached")


def check_masks(facts, entries):
    for entry in entries:
        answer = facts.ask("mask", entry["addr"], entry["words"] * entry["count"])
        check(answer["allocated"], f"{entry['name']}: not allocated")
        wrong = bits(answer["mask"]) ^ expected_mask(entry)
        check(not wrong, f"{entry['name']} ({answer['elem_size']} bytes): first wrong word "
                         f"{(wrong & -wrong).bit_length() - 1}, {bin(wrong).count('1')} in all")
        check_equal(answer["skipped_bytes"], 0, f"{entry['name']}: skipped bytes")
    note(f"{len(entries)} objects compared")


def check_variant(version, experiment):
    binary = harness.build_fixture("heapbits", version, experiment)
    fixture = harness.Fixture([binary])
    try:
        wait_stopped(fixture.pid)
        with heap_facts(fixture.pid) as facts:
            check_totals(facts.totals, fixture.hello)
            check_pages(facts.totals, fixture.hello, version)
            check_masks(facts, fixture.hello["objects"])
            if experiment == "arenas":
                check(facts.totals["quarantined_bytes"] > 0, "no freed arena was seen")
    finally:
        resume(fixture.pid)
        fixture.close()


for variant in VARIANTS:
    suite.test(f"spans and pointer bits of {gobuild.variant_name(*variant)}")(
        lambda variant=variant: check_variant(*variant))

suite.run()
