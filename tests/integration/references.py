#!/usr/bin/env python3
"""Who keeps what alive, and what it is, against programs that know: every kind of container holds a
known number of objects of a type of its own, reached by known chains under a known name."""

import contextlib
import pathlib
import re
import subprocess
import tempfile

import gobuild
import variants
from harness import STRESS, Daemon, Fixture, build_fixture
from pprof import Profile, go_tool
from procfs import unharmed
from tap import Skip, Suite, check, check_equal, note

STRIPPED = ("-ldflags=-s -w",)
TYPED_SHARE = 0.9  # of live bytes, of programs with DWARF
MIB = 1 << 20

suite = Suite()
daemon = None


def profile_answer(target, **parameters):
    query = "&".join(f"{key}={value}" for key, value in {"max_pause": 10, **parameters}.items())
    answer = daemon.get(f"/pid/{target.pid}/profile?{query}")
    check_equal(answer.status, 200, f"answer {answer.body[:500]!r} has the status")
    return answer.body


def profile_of(target, **parameters):
    return Profile(profile_answer(target, **parameters))


def histogram_of(target, **parameters):
    return daemon.scan(target.pid, endpoint="histogram", **parameters)


def is_type(name, wanted):
    """Types of plugins are known without their package, whose path the linker makes."""
    return name == wanted or ("." not in wanted and name.endswith("." + wanted)
                              and name[0] not in "[*")


# ---- a histogram and a profile against the rows ----


def wrong_rows(histogram, profile, rows):
    yield from wrong_types(histogram, rows)
    yield from wrong_chains(profile, rows)


def wrong_types(histogram, rows):
    for row in rows:
        if not row["type"]:
            continue
        found = [entry for entry in histogram["types"] if is_type(entry["type"], row["type"])]
        figures = (sum(entry["objects"] for entry in found), sum(entry["bytes"] for entry in found))
        if figures != (row["count"], row["bytes"]):
            yield f"{row['name']}: {row['type']}: {figures}, expected {row['count'], row['bytes']}"


def wrong_chains(profile, rows):
    """Chains that lead to another number of objects; of rows without chains only the root is known."""
    objects = profile.by_chain("inuse_objects")
    for row in rows:
        for chain in row["chains"] or ():
            found = objects.get(tuple(chain["frames"]), 0)
            if found != chain["count"]:
                near = [(list(frames), count) for frames, count in objects.items()
                        if frames[0] == chain["frames"][0]]
                yield (f"{row['name']}: {chain['frames']}: {found}, expected {chain['count']}; "
                       f"below that root: {near[:12]}")
                break
        below = sum(count for frames, count in objects.items() if frames[0].startswith(row["root"]))
        if not row["chains"] and below < row["count"]:
            yield f"{row['name']}: {below} objects below {row['root']!r}, expected {row['count']}"


def check_none(wrong, what):
    wrong = list(wrong)
    check(not wrong, f"{len(wrong)} {what}:\n" + "\n".join(wrong))


def scans_of(target, **parameters):
    """Histogram and profile, which have everything that is live once. The program does not change
    meanwhile, but its runtime may start a thread: then the heap is another one after them."""
    for _ in range(10):
        before = daemon.scan(target.pid, **parameters)["heap"]
        histogram, profile = histogram_of(target, **parameters), profile_of(target, **parameters)
        if live_of(daemon.scan(target.pid, **parameters)["heap"]) == live_of(before):
            check_sums(before, histogram, profile)
            return histogram, profile
    raise AssertionError("the heap is another one each time")


def live_of(heap):
    return heap["live_objects"], heap["live_bytes"]


def check_sums(live, histogram, profile):
    rows = [*histogram["types"], histogram["unknown"]]
    for key in ("objects", "bytes"):
        check_equal(sum(row[key] for row in rows), live[f"live_{key}"], f"{key} of the histogram")
    check_equal(histogram["typed_bytes"], sum(row["bytes"] for row in histogram["types"]), "typed")
    check_equal(profile.total("inuse_objects"), live["live_objects"], "objects of the profile")
    check_equal(profile.total("inuse_space"), live["live_bytes"], "bytes of the profile")


def typed_share(histogram):
    typed, untyped = histogram["typed_bytes"], histogram["unknown"]["bytes"]
    return typed / (typed + untyped)


def check_frames(profile):
    """No name may differ between two runs of a program: no address, no id."""
    for sample in profile.samples:
        for frame in sample.frames:
            check("0x" not in frame, f"an address in {sample.frames}")
            check(frame != "", f"a frame without a name in {sample.frames}")


def known_rows(target, gaps):
    """Those that are to be found; the gaps are said where they are."""
    return [row for row in target.hello["rows"] if not any(gap in row["name"] for gap in gaps)]


def check_containers(program, share=TYPED_SHARE, modes=("fork",), gaps=()):
    with Fixture([program, "containers"]) as target, unharmed(target.pid):
        rows = known_rows(target, gaps)
        check(len(rows) > 50, f"{len(rows)} rows")
        for mode in modes:
            histogram, profile = scans_of(target, mode=mode)
            note(f"{mode}: {typed_share(histogram):.1%} of bytes typed, "
                 f"{len(profile.samples)} samples")
            check_frames(profile)
            check_none(wrong_rows(histogram, profile, rows), "rows are wrong")
            check(typed_share(histogram) >= share, f"{typed_share(histogram):.1%} typed")


for go, experiment in gobuild.VARIANTS:
    @suite.test(f"{gobuild.variant_name(go, experiment)}: every container holds what it holds")
    def _(go=go, experiment=experiment):
        check_containers(build_fixture("references", go, experiment),
                         modes=("fork", "stop") if STRESS or go in ("1.15", "1.27") else ("fork",))


WAYS = {"pie": "1.25", "without optimisation": "1.26", "race detector": "1.24", "DWARF 4": "1.26",
        "cgo, linked externally": "1.23", "uncompressed DWARF": "1.19", "two plugins": "1.22"}

# With the race detector a sync.Pool drops some of what it is given (sync/pool.go).
GAPS = {"race detector": ("Pool",)}

for one, version in variants.product():
    if one.name in WAYS and (STRESS or WAYS[one.name] == version):
        @suite.test(f"go{version}, {one.name}: every container holds what it holds")
        def _(way=one, version=version):
            check_containers(variants.build("references", version, way),
                             gaps=GAPS.get(way.name, ()))


# ---- without DWARF ----


def check_stripped(version, share):
    """Types are those that the runtime itself knows: no names of variables, and fewer types."""
    with Fixture([build_fixture("references", version, flags=STRIPPED), "containers"]) as target, \
            unharmed(target.pid):
        histogram, profile = scans_of(target)
        check_frames(profile)
        check_equal(histogram["scan"]["detail"]["types"], "runtime types", "types")
        found = {row["type"]: (row["objects"], row["bytes"]) for row in histogram["types"]}
        wrong = [(row["type"], found[row["type"]], row["count"]) for row in target.hello["rows"]
                 if row["type"] in found and found[row["type"]][0] > row["count"]]
        check_equal(wrong, [], "types of which there are too many")
        note(f"{typed_share(histogram):.1%} of bytes typed")
        check(typed_share(histogram) >= share, f"{typed_share(histogram):.1%} typed")


# Allocation headers tell the types of objects since go1.22; before, little more than interfaces.
NO_HEADERS = ("1.15", "1.19", "1.21")

for version in gobuild.VERSIONS:
    @suite.test(f"go{version}: a stripped program is typed by its runtime types")
    def _(version=version):
        check_stripped(version, 0.005 if version in NO_HEADERS else 0.7)


# ---- what is alike in all versions ----

SOME = gobuild.VERSIONS if STRESS else ("1.15", "1.24")


def each(name, check_one, versions=SOME, *arguments):
    for version in versions:
        @suite.test(f"go{version}: {name}")
        def _(version=version):
            check_one(version, *arguments)


def started(version, mode, **keywords):
    return Fixture([build_fixture("references", version), mode], **keywords)


def below(profile, root, value="inuse_objects"):
    return sum(sample.values[value] for sample in profile.samples if sample.frames[0] == root)


def check_texts(version):
    with started(version, "containers") as target:
        profile = profile_of(target)
        for root, size, used in (("main.text", 303104, 300000), ("main.bytes", 204800, 200000),
                                 ("main.substring", MIB, 10)):
            found = [sample for sample in profile.samples if sample.frames[0] == root]
            check_equal([sample.values["inuse_space"] for sample in found], [size], f"size of {root}")
            check_equal(found[0].numbers.get("used_bytes"), [used], f"used of {root}")


def check_large(version):
    with started(version, "large") as target, unharmed(target.pid):
        rows = target.hello["rows"]
        histogram, profile = scans_of(target)
        check_none(wrong_rows(histogram, profile, rows), "rows are wrong")
        check_equal(max(len(sample.frames) for sample in profile.samples), 256, "deepest chain")
        folded = sum(sample.values["inuse_objects"] for sample in profile.samples
                     if sample.frames[0] == "main.longList" and len(sample.frames) == 256)
        check_equal(folded, 1000000 - 255, "objects of the list that are folded")
        emptied = below(profile, "main.emptyMap", "inuse_space")
        check(8 * MIB < emptied < 200 * MIB, f"the emptied map has {emptied} bytes")
        check(typed_share(histogram) >= 0.99, f"{typed_share(histogram):.1%} typed")


def check_queue(version):
    with started(version, "queue") as target, unharmed(target.pid):
        rows = target.hello["rows"]
        histogram, profile = scans_of(target)
        check_none(wrong_rows(histogram, profile, rows), "rows are wrong")
        roots = {sample.frames[0] for sample in profile.samples}
        check([root for root in roots if "finalizer queue" in root and "main.blockForever" in root],
              f"who blocks the finalizers is not named: {sorted(roots)}")


def check_rows(version, what):
    with started(version, what) as target, unharmed(target.pid):
        for mode in ("fork", "stop"):
            histogram, profile = histogram_of(target, mode=mode), profile_of(target, mode=mode)
            check_none(wrong_rows(histogram, profile, target.hello["rows"]), f"{mode}: rows are wrong")


def check_timers(version, godebug, held):
    with started(version, "timers", env={"GODEBUG": godebug}) as target:
        histogram = histogram_of(target, garbage=1)
        channels = sum(row["objects"] for row in histogram["types"] if "chan" in row["type"])
        check(channels >= 1000 if held else channels < 100, f"{channels} channels are live")
        note([row for row in histogram["types"][:8]])


def chains_below(version, roots):
    """What the demo's chains from these roots have, by chain."""
    with Fixture([build_fixture("demo", version)]) as target:
        profile = profile_of(target)
        return sorted((sample.frames, sample.values, sample.numbers) for sample in profile.samples
                      if sample.frames[0] in roots)


def check_split(version):
    """
    Since go1.27 DWARF has parts of variables as variables of their own, "result.ptr": that is no
    other root, and tells as much. What the compiler keeps where decides which parts there are.
    """
    roots = ("main.runJob.result", "main.runJob.common", "main.sessions")
    found, before = chains_below(version, roots), chains_below("1.26", roots)
    check({frames[0] for frames, _, _ in before} == set(roots), "the demo has other variables")
    check_equal(found, before, "chains")


def check_running(version, mode):
    """Variables that only registers have: of a thread, or where they were saved."""
    with started(version, mode) as target, unharmed(target.pid, still=False):
        rows = target.hello["rows"]
        for _ in range(10):
            histogram, profile = scans_of(target)
            check_none(wrong_rows(histogram, profile, rows), "rows are wrong")


def chains_of_program(profile):
    """Not the runtime's, which are other ones as soon as the scavenger, say, gets another thread."""
    return {frames: size for frames, size in profile.by_chain("inuse_space").items()
            if frames[0].startswith("main.")}


def check_labels(version):
    with started(version, "containers") as target:
        profile = profile_of(target, labels=1)
        found = {}
        for sample in profile.samples:
            if sample.frames == ("main.waitLabelled.object",):
                tenant, = sample.labels["tenant"]
                check_equal(sample.labels["with_dots"], ["value"], "the other label")
                found[tenant] = found.get(tenant, 0) + sample.values["inuse_objects"]
        check_equal(found, {"acme": 8, "zeta": 8}, "objects by tenant")
        plain = profile_of(target)
        check_equal([sample.labels for sample in plain.samples if sample.labels], [], "labels")
        check_equal(chains_of_program(profile), chains_of_program(plain), "chains")


def check_same(version):
    """One program that does nothing, scanned twice in both modes; and a second run of it."""
    with started(version, "containers") as target:
        profiles = [profile_of(target, mode=mode) for mode in ("fork", "fork", "stop")]
        of_program = [[sample for sample in profile.samples if sample.frames[0].startswith("main.")]
                      for profile in profiles]
        for other in of_program[1:]:
            check_equal(other, of_program[0], "samples")
    with started(version, "containers") as target:
        other, first = (each.by_chain("inuse_objects") for each in (profile_of(target), profiles[0]))
        changed = {frames for frames in {*other, *first} if other[frames] != first[frames]
                   and frames[0].startswith("main.")}
        # A pool's place for each processor is what the scheduler made of it, and where a map has
        # its elements depends on a random seed.
        check_equal({frames for frames in changed if not re.search("[Pp]ool|Map$|growing", frames[0])},
                    set(), "changed chains")


def check_limits(version):
    """Whatever is folded, nothing is lost."""
    with started(version, "containers") as target:
        kept = daemon.scan(target.pid, keep=60)["scan"]["id"]
        whole = profile_of(target, scan=kept)
        for parameter, value in (("max_depth", 5), ("max_depth", 1), ("max_samples", 20),
                                 ("min_bytes", 5000), ("by", "@module")):
            folded = profile_of(target, scan=kept, **{parameter: value})
            for name in ("inuse_objects", "inuse_space"):
                check_equal(folded.total(name), whole.total(name), f"{parameter}={value}: {name}")
            if parameter == "max_depth":
                check_equal(max(len(sample.frames) for sample in folded.samples), value, "depth")
            elif parameter == "max_samples":
                check(len(folded.samples) <= value, f"{len(folded.samples)} samples")
            elif parameter == "min_bytes":
                small = [sample for sample in folded.samples
                         if sample.values["inuse_space"] < value and sample.frames[-1] != "other"]
                check_equal(small, [], "small samples")
            else:
                modules = {sample.frames[0] for sample in folded.samples}
                check("goheapd/references" in modules and "std" in modules, f"{modules}")


def rows_of(target):
    return {row["name"]: row for row in target.hello["rows"]}


def all_objects(target, **parameters):
    """Every page of them."""
    page = daemon.scan(target.pid, endpoint="objects", **parameters)
    yield from page["objects"]
    while page["next_cursor"]:
        page = daemon.scan(target.pid, endpoint="objects", cursor=page["next_cursor"], **parameters)
        yield from page["objects"]


def check_objects(version):
    with started(version, "containers") as target, unharmed(target.pid):
        rows = rows_of(target)
        for name in ("big map", "handlers that capture a buffer", "cycle"):
            row = rows[name]
            check(row["type"], f"{name} has no type of its own")
            found = list(all_objects(target, type=row["type"], limit=700))
            check_equal((len({entry["address"] for entry in found}),
                         sum(entry["bytes"] for entry in found)), (row["count"], row["bytes"]), name)
            check_equal({entry["type"] for entry in found}, {row["type"]}, f"types of {name}")
        row = rows["what lies below a hundred interfaces"]
        address = next(all_objects(target, type=row["type"]))["address"]
        found = daemon.scan(target.pid, endpoint=f"object/{address}")["object"]
        check_equal((found["type"], found["bytes"], found["state"]),
                    (row["type"], row["bytes"], "live"), "object")
        check_equal([step["frame"] for step in found["path"]], row["chains"][0]["frames"], "path")
        check_equal(found["path"][-1]["address"], address, "end of the path")
        check_equal([(each["type"], each["field"]) for each in found["referrers"]],
                    [("main.link", "next")], "referrers")
        above = daemon.scan(target.pid, endpoint=f"object/{found['referrers'][0]['address']}")
        fields = {field["name"]: field for field in above["object"]["fields"]}
        check_equal((fields["id"]["value"], fields["id"]["offset"]), (0, 0), "a number")
        check_equal(fields["next"]["offset"], 8, "the next field")


def check_pprof(version):
    with started(version, "containers") as target:
        packed = profile_answer(target)
    profile = Profile(packed)
    check_equal(profile.types, [("inuse_objects", "count"), ("inuse_space", "bytes")], "types")
    top = go_tool(packed, "-top", "-unit=b")
    check(f"of {profile.total('inuse_space')}B total" in top, top[:500])
    check("main.slice" in go_tool(packed, "-tree", "-sample_index=inuse_objects"), "tree")
    check("inuse_space/bytes[dflt]" in go_tool(packed, "-raw"), "raw")
    check("accounting for 0, 0% of" in go_tool(packed, "-top", "-unit=b", base=packed),
          "growth of nothing")


# ---- a program that was not made for this ----

BIG = """package main

import (
	_ "go/types"
	_ "net/http"
	"os"
)

func main() {
	println("ready")
	os.Stdin.Read(make([]byte, 1))
}
"""


@contextlib.contextmanager
def go_command(version):
    """cmd/go with all that `go run` of a large program has loaded, while that program runs."""
    try:
        command = gobuild.build_command("go", version)
    except gobuild.ToolchainMissing as error:
        raise Skip(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="goheapd-go-run-") as folder:
        pathlib.Path(folder, "go.mod").write_text(f"module goheapd/big\n\ngo {version}\n")
        pathlib.Path(folder, "main.go").write_text(BIG)
        environment = {**gobuild.go_environment(version, "", {}), "GOFLAGS": ""}
        with subprocess.Popen([command, "run", "."], cwd=folder, env=environment,
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                check_equal(process.stderr.readline(), b"ready\n", "go run")
                yield process
            finally:
                process.stdin.close()
                process.wait()


def check_go_command(version):
    with go_command(version) as process, unharmed(process.pid, still=False):
        histogram, profile = scans_of(process)
        check_frames(profile)
        note(f"{typed_share(histogram):.1%} of bytes typed, largest: {histogram['types'][:5]}")
        check(typed_share(histogram) >= TYPED_SHARE, f"{typed_share(histogram):.1%} typed")


each("cmd/go is typed", check_go_command, gobuild.VERSIONS if STRESS else ("1.27",))
each("strings say how much of their block is used", check_texts)
each("a list, a map and an emptied map of a million", check_large)
each("a blocked finalizer with 100,000 objects behind it", check_queue)
each("a blocked cleanup with 1000 arguments behind it", check_rows,
     [version for version in gobuild.VERSIONS if int(version.split(".")[1]) >= 24], "cleanups")
each("values that reflect sends are of the channel's type", check_rows,
     gobuild.VERSIONS if STRESS else ("1.15", "1.25", "1.27"), "reflect")
each("timers that nobody holds are held by the runtime", check_timers, ("1.15", "1.22"), "", True)
each("timers that nobody holds are garbage", check_timers, ("1.23", "1.27"), "", False)
each("old timers that were asked for are held", check_timers, ("1.23", "1.26"), "asynctimerchan=1",
     True)
each("variables of goroutines that run", check_running, SOME, "running")
each("variables of goroutines that were preempted", check_running, SOME, "preempted")
each("chains of goroutines have their labels", check_labels)
each("the same program has the same profile", check_same)
each("a variable in parts is one root, as it is before go1.27", check_split, ("1.27",))
each("what is folded is not lost", check_limits)
each("objects are listed by type, and one is shown with its path and its referrers", check_objects)
each("go tool pprof reads it", check_pprof, ("1.26",))


def main():
    global daemon
    with tempfile.TemporaryDirectory(prefix="goheapd-references-") as folder:
        config = pathlib.Path(folder, "config")
        config.write_text("min_stop_interval = 0\n")
        with Daemon("--config", config) as daemon:
            suite.run()


main()
