#!/usr/bin/env python3
"""Go's own collector as the judge: what a scan finds alive right after a collection must be what the
runtime says is allocated, and objects made unreachable afterwards must be found as garbage.

The fixture allocates nothing between reading the runtime's figures and the scan. The runtime itself
may: for a new thread, or by keeping some dead unique values for a cycle. BOUND_OBJECTS allows for it.
"""

import shutil

import gobuild
import variants
from harness import Daemon, Fixture, build_fixture, check_sums, find_node, need_root
from procfs import unharmed
from tap import Skip, Suite, check, check_equal, check_within, note

BOUND_OBJECTS = 16
BOUND_BYTES = 16 << 10
GARBAGE_OBJECTS = 12345
GARBAGE_BYTES = 64  # main.Garbage, its own size class in every version
FINALIZABLE_OBJECTS = 321
# What plugin_stacks makes: a goroutine for each of these labels, with so many bytes.
PLUGIN_LABELS, PLUGIN_BYTES = {"variable", "object", "deferred", "deep"}, 3072

suite = Suite()
daemon = None


def check_live(scan, runtime):
    heap, trust = scan["heap"], scan["scan"]["trust"]
    note({**heap, **trust})
    check_equal(trust["free_slot_hits"], 0, "exact pointers to free slots")
    check_equal(trust["exact_stacks"], trust["goroutines"], "stacks that were walked exactly")
    check_equal(trust["skipped_bytes"], 0, "skipped bytes")
    check_equal(trust["self_check"], "ok", "self check")
    check_within(heap["live_objects"], runtime["heap_objects"], BOUND_OBJECTS, "live objects")
    check_within(heap["live_bytes"], runtime["heap_alloc"], BOUND_BYTES, "live bytes")
    check(heap["garbage_bytes"] <= runtime["heap_alloc"] / 1000,
          f"garbage right after a collection: {heap['garbage_bytes']}")
    check_equal(heap["finalizable_objects"], 0, "finalizable right after a collection")


def check_tree(scan, runtime):
    tree = scan["memory"]
    check_sums(tree)
    check_equal(find_node(tree, "live")["bytes"], scan["heap"]["live_bytes"], "live of the tree")
    check_within(find_node(tree, "in_use_spans")["bytes"], runtime["heap_inuse"],
                 BOUND_OBJECTS * 8192, "spans in use")


def check_unreachable(target):
    """Makes objects unreachable and looks for exactly them."""
    before = daemon.scan(target.pid)["heap"]
    target.command(f"garbage {GARBAGE_OBJECTS}")
    after = daemon.scan(target.pid)["heap"]
    check_equal(after["garbage_objects"] - before["garbage_objects"], GARBAGE_OBJECTS,
                "growth of garbage objects")
    check_equal(after["garbage_bytes"] - before["garbage_bytes"], GARBAGE_OBJECTS * GARBAGE_BYTES,
                "growth of garbage bytes")
    check_within(after["live_objects"], before["live_objects"], BOUND_OBJECTS, "live objects")
    target.command(f"finalizable {FINALIZABLE_OBJECTS}")
    last = daemon.scan(target.pid)["heap"]
    check_equal(last["finalizable_objects"], FINALIZABLE_OBJECTS, "finalizable objects")
    check_equal(last["garbage_objects"], after["garbage_objects"], "garbage objects")


def check_plugins(scan):
    """Each of a plugin's goroutines holds what nobody else does, by its stack alone."""
    check_equal([warning["code"] for warning in scan["scan"]["warnings"]], [], "warnings")
    check_equal(scan["labels"]["status"]["decoded"], len(PLUGIN_LABELS), "labels that were read")
    sets = {found["labels"]["plugin"]: found for found in scan["labels"]["sets"]}
    check_equal(set(sets), PLUGIN_LABELS, "label sets")
    for value, found in sets.items():
        check_equal(found["goroutines"], 1, f"goroutines of {value}")
        check(PLUGIN_BYTES <= found["exclusive_bytes"] < PLUGIN_BYTES + 2048,
              f"{value} holds {found['exclusive_bytes']} bytes alone")
    check(sets["deep"]["stack_bytes"] > 1 << 20, f"a stack of {sets['deep']['stack_bytes']} bytes")


def judge(version, experiment="", wrapper=()):
    judge_program(build_fixture("oracle", version, experiment), version, wrapper)


def judge_program(program, version, wrapper=(), plugins=False):
    with Fixture([program], wrapper) as target, unharmed(target.pid):
        for mode in ("fork", "stop"):
            scan = daemon.scan(target.pid, mode=mode)
            check_equal(scan["scan"]["mode"], mode, "mode")
            check(scan["go_version"].startswith(f"go{version}"), scan["go_version"])
            check_live(scan, target.hello)
            check_tree(scan, target.hello)
            if plugins:
                check_plugins(scan)
        check_unreachable(target)


def add_test(version, experiment):
    name = gobuild.variant_name(version, experiment)

    @suite.test(f"{name}: live is what the runtime counts, garbage is what was dropped")
    def _():
        judge(version, experiment)


for variant in gobuild.VARIANTS:
    add_test(*variant)


def add_variant_test(way, version):
    @suite.test(f"go{version}, {way.name}: the same")
    def _():
        judge_program(variants.build("oracle", version, way), version,
                      plugins=way.form is gobuild.PLUGIN_HOST)


for one in variants.chosen():
    add_variant_test(*one)


@suite.test("the same in a pid namespace, as its pid 1")
def _():
    need_root()
    if not shutil.which("unshare"):
        raise Skip("unshare is not installed")
    for version in ("1.15", "1.26"):
        judge(version, wrapper=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"))


with Daemon() as daemon:
    suite.run()
