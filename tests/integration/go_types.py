#!/usr/bin/env python3
"""Types of real Go programs as the runtime's descriptors tell, against what reflect says."""

import gobuild
import variants
from facttool import fact_tool
from harness import STRESS, Fixture, build_fixture
from tap import Suite, check, check_equal, note

STRIPPED = ("-ldflags=-s -w",)

suite = Suite()


def wrong_facts(known, found):
    """What of a type is not as reflect says."""
    unknown = "?"
    expected = {"name": known["name"], "size": known["size"], "kind": known["kind"],
                "ptr_bytes": known["pointers"] * 8, "length": known["length"],
                "elem": known["elem"] or unknown, "key": known["key"] or unknown,
                "fields": known["fields"], "addr": known["addr"],
                "has_methods": known["has_methods"], "indirect_key": known["large_key"],
                "indirect_elem": known["large_elem"]}
    for key, value in expected.items():
        if found[key] != value:
            yield f"{known['name']}: {key} is {found[key]!r}, expected {value!r}"


def check_types(facts, hello):
    wrong, ids = [], {}
    for known in hello["types"]:
        found = facts.ask("type", known["addr"])
        wrong += wrong_facts(known, found)
        check_equal(ids.setdefault(known["addr"], found["id"]), found["id"], "number of a type")
    check(not wrong, f"{len(wrong)} facts are wrong:\n" + "\n".join(wrong))
    check_equal(len(set(ids.values())), len(ids), "types that are one")
    note(f"{len(ids)} types")


def check_itabs(facts, hello):
    for itab in hello["itabs"]:
        check_equal(facts.ask("itab", itab["addr"])["name"], itab["type"], "type of an itab")


def check_nones(facts, hello):
    for addr in hello["nones"]:
        for question in ("type", "itab"):
            check_equal(facts.ask(question, addr)["kind"], 0, f"kind of {question} {addr:#x}")


def check_pointers(facts, hello):
    for known in hello["types"]:
        found = facts.ask("pointer", known["addr"])
        check_equal((found["name"], found["elem"], found["size"], found["ptr_bytes"]),
                    ("*" + known["name"], known["name"], 8, 8), "a pointer")


def check_buckets(facts, hello):
    """A map's bucket or group is a struct that holds eight of each."""
    for known in hello["types"]:
        if known["key"]:
            found = facts.ask("type", known["addr"])
            bucket, what = found["bucket"], f"{known['key']}]{known['elem']}"
            if bucket.startswith("struct { Ctrl"):  # reflect's
                what = (f"Key {'*' * known['large_key']}{known['key']}; "
                        f"Elem {'*' * known['large_elem']}{known['elem']}")
            else:
                check(bucket.startswith(("map.bucket[", "map.group[")), bucket)
            check(what in bucket, f"{bucket} holds {what}")
            check(found["bucket_size"] >= 8, "a bucket's size")


def without_names(fields):
    return [(field["offset"], field["type"]) for field in fields]


def check_closures(facts, hello, named):
    for closure in hello["closures"]:
        found = facts.ask("closure", closure["code"])
        check_equal(found["name"], "closure of " + closure["function"], "name")
        fields = [{"name": "F", "offset": 0, "type": "uintptr"}, *closure["fields"]]
        if named:
            check_equal(found["fields"], fields, "what is captured")
        else:
            check_equal(without_names(found["fields"]), without_names(fields), "captured types")


def check_after(facts, hello, named):
    """What the modules have is known when memory is gone, if nobody asked for it before, too."""
    facts.ask("let-go")
    hello = {**hello, "types": [known for known in hello["types"] if not known["made"]]}
    for check_some in (check_types, check_itabs, check_nones):
        check_some(facts, hello)
    check_closures(facts, hello, named)


def check_program(program, named):
    with Fixture([program]) as target:
        with fact_tool("go_type_facts", target.pid) as facts:
            for check_some in (check_types, check_itabs, check_nones, check_pointers,
                               check_buckets):
                check_some(facts, target.hello)
            check_closures(facts, target.hello, named)
        with fact_tool("go_type_facts", target.pid) as facts:
            check_after(facts, target.hello, named)


for go, experiment in gobuild.VARIANTS:
    for what, flags in (("", ()), (", stripped", STRIPPED)):
        @suite.test(f"{gobuild.variant_name(go, experiment)}{what}: types are what reflect says")
        def _(go=go, experiment=experiment, flags=flags):
            named = not flags and go in ("1.23", "1.24", "1.25", "1.26", "1.27")
            check_program(build_fixture("types", go, experiment, flags=flags), named)

WAYS = {"pie": "1.25", "race detector": "1.24", "pie, linked externally": "1.27",
        "pie, stripped": "1.23", "without optimisation": "1.26", "two plugins": "1.22"}

for one, version in variants.product():
    if one.name in WAYS and (STRESS or WAYS[one.name] == version):
        @suite.test(f"go{version}, {one.name}: types are what reflect says")
        def _(way=one, version=version):
            check_program(variants.build("types", version, way), False)


suite.run()
