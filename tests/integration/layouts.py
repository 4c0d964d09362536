#!/usr/bin/env python3
"""Layouts of real programs from which one entry at a time is taken: each is missed by its name, unless
the same is found by another name, or the labels of goroutines alone depend on it."""

import subprocess

import gobuild
import harness
from tap import Suite, check, check_equal, note

# Labels that cannot be read for want of these are counted in labels.status.
OF_LABELS = ("struct runtime/pprof.label", "struct internal/runtime/pprof/label.",
             "struct hash<", "struct bucket<", "field runtime/pprof.label",
             "field internal/runtime/pprof/label.", "field hash<", "field bucket<")

# Where code does not tell where they are, types that reflection made stay unknown, and dynamic types
# of interfaces that the linker did not lay out.
OF_TYPES = ("global runtime.reflectOffs", "global runtime.itabTable")

# In late releases of a version only.
BACKPORTED = {("1.19", "field runtime.mspan.freeIndexForScan")}

# Constants of maps with groups, which are there in a runtime whose maps have none.
UNUSED = {("1.24", "constant internal/abi.SwissMapIndirectKey"),
          ("1.24", "constant internal/abi.SwissMapIndirectElem")}

suite = Suite()


def facts(path, *arguments):
    done = subprocess.run([harness.program("tests/support/layout_facts"), path, *arguments],
                          stdout=subprocess.PIPE, check=False)
    check_equal(done.returncode, 0, "exit status of layout_facts")
    return done.stdout.decode().splitlines()


def check_entry(version, entry, outcome):
    if outcome == "the same layout":
        return
    if outcome == "another layout":
        check(entry.startswith(OF_LABELS + OF_TYPES) or (version, entry) in BACKPORTED | UNUSED,
              f"without {entry} the layout is another, and accepted")
        return
    # In the words of layout.def, which may put another name of the same between type and path.
    words = entry.split(" ", 1)[1].split(".")
    check("lacks" in outcome and all(word in outcome for word in words),
          f"without {entry}: {outcome}")


def check_variant(version, experiment):
    program = harness.build_fixture("symbols", version, experiment)
    whole, without = facts(program), facts(program, "missing")
    check_equal([line.split(": ")[0] for line in without], whole, "entries tried")
    check(len(whole) > 150, f"only {len(whole)} entries")
    for line in without:
        check_entry(version, *line.split(": ", 1))
    refused = sum(": this Go runtime" in line for line in without)
    note(f"{len(whole)} entries, {refused} of them missed when they are not there")
    check(refused >= len(whole) * 3 // 4, "hardly any is missed")


for variant in gobuild.VARIANTS + [("1.22", "noallocheaders")]:
    suite.test(f"{gobuild.variant_name(*variant)}: whatever its layout lacks is named")(
        lambda variant=variant: check_variant(*variant))

suite.run()
