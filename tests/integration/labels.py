#!/usr/bin/env python3
"""Labels of goroutines, and what each set of them holds, against programs that know it."""

from agentclient import Agent
from gobuild import VERSIONS
from harness import Fixture, build_fixture, repeat_count
from procfs import unharmed
from tap import Suite, check, check_equal

KIB, MIB = 1 << 10, 1 << 20
RUNTIMES = [(version, "") for version in VERSIONS] + [("1.24", "noswissmap")]
FIGURES = ("reachable_bytes", "reachable_objects", "exclusive_bytes", "exclusive_objects",
           "global_overlap_bytes", "global_overlap_objects", "system_overlap_bytes",
           "system_overlap_objects", "share_bytes")

suite = Suite()
agent = None


def pairs_of(message):
    return {pair["key"]: pair["value"] for pair in message.get("labels", ())}


def scan_labels(target, **parameters):
    return agent.scan(target.pid, want_labels=True, **parameters)


def usage_of(report, **labels):
    """The usage of the one set that has these labels."""
    wanted = {key.encode(): value.encode() for key, value in labels.items()}
    found = [entry["usage"] for entry in report["sets"]
             if wanted.items() <= pairs_of(entry).items()]
    check_equal(len(found), 1, f"sets with {labels}")
    return found[0]


def check_sum(scan):
    report = scan["labels"]
    shares = [entry["usage"]["share_bytes"] for entry in report.get("sets", ())]
    shares += [report[party]["share_bytes"] for party in ("unlabelled", "system", "global")]
    check_equal(sum(shares), scan["heap"]["live_bytes"], "sum of shares")
    check_equal(scan["scan"].get("warnings", []), [], "warnings")


# ---- what tenants hold ----


def name(kind, number):
    return f"{kind}-number-{number:012}"


class Tenants:
    """What the fixture says of itself, and what a set must therefore hold."""

    def __init__(self, hello, report):
        self.hello, self.report = hello, report
        self.sets = (hello["tenants"] + 1) * hello["streams"]
        self.empty = self.set(hello["tenants"], 0)  # it has no rings: the rest is as elsewhere
        self.channel = self.empty["global_overlap_bytes"]
        self.dictionary = (self.empty["reachable_bytes"] - self.empty["exclusive_bytes"] -
                           self.channel)

    def set(self, tenant, stream):
        return usage_of(self.report, tenant=name("tenant", tenant), stream=name("stream", stream))

    def list_bytes(self, what, slots):
        """A list of blocks: these, an array of so many bytes, and a header of one slot."""
        header = self.dictionary - self.hello["blocks"]["dictionary"] * 4096 - 8192
        check(header in (24, 32), f"a slice header takes {header} bytes")
        return self.hello["blocks"][what] * self.hello["block_size"] + slots + header

    def check_set(self, tenant, stream):
        hello, found = self.hello, self.set(tenant, stream)
        rings = hello["shards"] if tenant < hello["tenants"] else 0
        shared = self.list_bytes("shared", 896) if tenant < 2 and stream == 0 else 0
        table = self.list_bytes("table", 416) if (tenant, stream) == (0, 1) else 0
        exclusive = self.empty["exclusive_bytes"] + rings * hello["ring_bytes"]
        # The channel that all wait on: of sets, one goroutine without labels, and a global.
        channel, left_over = divmod(self.channel, self.sets + 2)
        expected = {
            "goroutines": hello["shards"],
            "exclusive_bytes": exclusive,
            "exclusive_objects": self.empty["exclusive_objects"] + rings * hello["ring_nodes"],
            "reachable_bytes": exclusive + self.channel + self.dictionary + shared + table,
            "reachable_objects": (self.empty["reachable_objects"] + rings * hello["ring_nodes"] +
                                  (hello["blocks"]["shared"] + 2 if shared else 0) +
                                  (hello["blocks"]["table"] + 2 if table else 0)),
            "global_overlap_bytes": self.channel + table,
            "global_overlap_objects": 1 + (hello["blocks"]["table"] + 2 if table else 0),
            "system_overlap_bytes": 0,
            "system_overlap_objects": 0,
            "share_bytes": (exclusive + self.dictionary // self.sets + channel + shared // 2 +
                            table // 2 + (left_over if (tenant, stream) == (0, 0) else 0)),
        }
        check_equal({key: found[key] for key in expected}, expected, f"tenant {tenant}, {stream}")

    def check_all(self):
        for tenant in range(self.hello["tenants"] + 1):
            for stream in range(self.hello["streams"]):
                self.check_set(tenant, stream)
        unlabelled = self.report["unlabelled"]
        check_equal(unlabelled["goroutines"], self.hello["unlabelled"] + 1, "unlabelled, and main")
        private = self.hello["unlabelled"] * self.hello["ring_bytes"]
        check(private < unlabelled["exclusive_bytes"] < private + 64 * KIB, unlabelled)

    def check_selection(self, scan):
        """All of one tenant together hold alone what its streams do, and share as these do."""
        parts = [self.set(0, stream) for stream in range(self.hello["streams"])]
        found = scan["labels"]["selection"]
        check_equal(found["goroutines"], sum(part["goroutines"] for part in parts), "selected")
        for figure in ("exclusive_bytes", "exclusive_objects", "share_bytes", "stack_bytes"):
            check_equal(found[figure], sum(part[figure] for part in parts), figure)
        common = self.dictionary + self.channel
        check_equal(found["reachable_bytes"],
                    sum(part["reachable_bytes"] for part in parts) - common, "reachable")

    def check_groups(self, scan):
        report = scan["labels"]
        values = {group.get("value"): group["usage"] for group in report["groups"]}
        check_equal(set(values), {None} | {name("tenant", tenant).encode()
                                           for tenant in range(self.hello["tenants"] + 1)}, "groups")
        check_equal(values[None], report["unlabelled"], "goroutines without the label")
        shares = [usage["share_bytes"] for usage in values.values()]
        check_equal([group["usage"]["share_bytes"] for group in report["groups"]],
                    sorted(shares, reverse=True), "largest share first")
        check_equal(sum(shares) + report["system"]["share_bytes"] +
                    report["global"]["share_bytes"], scan["heap"]["live_bytes"], "sum")


def check_tenants(version, experiment, flags=()):
    program = build_fixture("tenants", version, experiment, flags)
    with Fixture([program, "shares"]) as target, unharmed(target.pid):
        scans = [scan_labels(target, mode=mode) for mode in ("MODE_FORK", "MODE_STOP")]
        for scan in scans:
            check_sum(scan)
            Tenants(target.hello, scan["labels"]).check_all()
        check_equal(scans[0]["labels"], scans[1]["labels"], "fork and stop")


def check_selections(version):
    program = build_fixture("tenants", version)
    acme = {"key": "tenant", "value": name("tenant", 0)}
    with Fixture([program, "shares"]) as target:
        scan = scan_labels(target, select=[acme], group_by="tenant")
        tenants = Tenants(target.hello, scan["labels"])
        tenants.check_selection(scan)
        check_equal([group.get("value") for group in scan["labels"]["groups"]],
                    [acme["value"].encode(), None], "groups of the selection")
        tenants.check_groups(scan_labels(target, group_by="tenant"))
        both = [acme, {"key": "stream", "value": name("stream", 1)}]
        scan = scan_labels(target, select=both)
        check_equal(scan["labels"]["selection"], Tenants(target.hello, scan["labels"]).set(0, 1),
                    "a selection of one set")
        none = scan_labels(target, select=[{"key": "tenant", "value": "nobody"}])["labels"]
        check_equal(none["selection"], dict.fromkeys(none["selection"], 0), "no match")


def check_origins(version):
    program = build_fixture("tenants", version)
    with Fixture([program, "shares"]) as target:
        sizes = {}
        for key in ("@created_by", "@entry", "@module"):
            groups = scan_labels(target, group_by=key)["labels"]["groups"]
            sizes[key] = {group.get("value", b"").decode(): group["usage"]["goroutines"]
                          for group in groups}
        started = 2 * (target.hello["tenants"] + 1) * target.hello["streams"]
        check_equal((sizes["@created_by"]["main.labelledAsIs.func1"],
                     sizes["@created_by"]["main.startShares"]), (started, 3), "creators")
        check_equal(sum(sizes["@entry"].values()), started + 4, "goroutines")
        check_equal(sizes["@entry"]["runtime.main"], 1, "the main goroutine")
        check_equal(sizes["@module"], {"goheapd/tenants": started + 3, "std": 1, "": 0}, "modules")


def check_census(version):
    program = build_fixture("tenants", version)
    with Fixture([program, "shares"]) as target:
        report = scan_labels(target, depth="DEPTH_CENSUS", want_label_detail=True)["labels"]
        hello = target.hello
        check_equal(len(report["sets"]), (hello["tenants"] + 1) * hello["streams"], "sets")
        for entry in report["sets"]:
            check_equal(set(entry["usage"]), {"goroutines", "stack_bytes", "parked_goroutines"},
                        "figures of a census")
            check_equal(entry["usage"]["goroutines"], hello["shards"], "goroutines")
            check_equal(entry["usage"]["parked_goroutines"], hello["shards"], "parked")
        check_equal(report["global"], {}, "globals")


# ---- what holds memory without being looked for there ----


def check_holders(version, experiment, flags=()):
    program = build_fixture("tenants", version, experiment, flags)
    with Fixture([program, "holders"]) as target:
        scan = scan_labels(target)
        check_sum(scan)
        difference = target.hello["large"] - target.hello["small"]
        for holder in target.hello["names"]:
            large, small = (usage_of(scan["labels"], **{
                "holder of the buffer": f"held by {holder} alone",
                "size of the buffer": f"it is a {size} one"}) for size in ("large", "small"))
            for figure in FIGURES:
                apart = figure in ("reachable_bytes", "exclusive_bytes")
                if figure != "share_bytes":
                    check_equal(large[figure] - small[figure], difference if apart else 0,
                                f"{holder}: {figure}")
            check(small["exclusive_bytes"] < target.hello["small"] + 4 * KIB, f"{holder}: {small}")


# ---- labels ----


def check_values(version, experiment, flags=()):
    program = build_fixture("tenants", version, experiment, flags)
    with Fixture([program, "values"]) as target:
        scan = scan_labels(target, want_goroutines=True)
        expected = [{bytes.fromhex(key): bytes.fromhex(value) for key, value in labels.items()}
                    for labels in target.hello["sets"]]
        found = [pairs_of(entry) for entry in scan["labels"]["sets"]]
        check_equal(sorted(map(sorted, map(dict.items, found))),
                    sorted(map(sorted, map(dict.items, expected))), "label sets")
        for entry in scan["labels"]["sets"]:
            check_equal(entry["usage"]["goroutines"], 1, "goroutines of a set")
            keys = [pair["key"] for pair in entry["labels"]]
            check_equal(keys, sorted(keys), "order of keys")
        status = scan["labels"]["status"]
        check_equal(status["decoded"], len(expected), "decoded")
        check_equal(status["decoded"] + status["no_labels"], len(scan["goroutines"]), "goroutines")
        labels = [pairs_of(goroutine) for goroutine in scan["goroutines"]
                  if not goroutine.get("has_no_labels")]
        check_equal(sorted(map(sorted, map(dict.items, labels))),
                    sorted(map(sorted, map(dict.items, expected))), "labels of goroutines")
        check_sum(scan)


def check_churn(version, scans):
    program = build_fixture("tenants", version)
    with Fixture([program, "churn"]) as target, unharmed(target.pid):
        for _ in range(scans):
            scan = scan_labels(target)
            report, seen = scan["labels"], {}
            check_equal({key: count for key, count in report["status"].items()
                         if key not in ("decoded", "no_labels") and count}, {}, "failures")
            for entry in report["sets"]:
                labels = pairs_of(entry)
                who = labels.pop(b"who")
                seen[who] = seen.get(who, 0) + entry["usage"]["goroutines"]
                labels.pop(b"round", None)
                check_equal(sorted(labels), sorted(f"key-{key}".encode() for key in
                                                   range(target.hello["keys"])), "keys")
                check_equal(len({value.split(b"-")[1] for value in labels.values()}), 1,
                            f"one set at a time: {labels}")
            check(set(seen.values()) <= {1}, f"goroutines with two sets: {seen}")
            check_equal(len(seen) + report["unlabelled"]["goroutines"],
                        target.hello["goroutines"] + 1, "goroutines")


# ---- labels that cannot be read ----


def failure_of(target, **labels):
    select = [{"key": key, "value": value} for key, value in labels.items()]
    answer = agent.ask_scan(target.pid, want_labels=True, select=select)
    return answer["failure"]["code"] if "failure" in answer else None


def check_broken(version):
    program = build_fixture("tenants", version)
    with Fixture([program, "broken"]) as target:
        scan = scan_labels(target, want_goroutines=True)
        status = scan["labels"]["status"]
        check_equal((status["decoded"], status["string_missing"], status["malformed"]), (2, 1, 1),
                    "status")
        check_equal([warning["code"] for warning in scan["scan"]["warnings"]],
                    ["labels_incomplete"], "warnings")
        check_equal(sum("label_error" in goroutine for goroutine in scan["goroutines"]), 2,
                    "goroutines with errors")
        for selection, failure in [
                ({"tenant": "acme"}, None), ({"job": "whole"}, "FAILURE_STRING_MISSING"),
                ({"job": "longer"}, None), ({"tenant": "acme", "job": "whole"}, None),
                ({"tenant": "lost"}, "FAILURE_STRING_MISSING"), ({"other": "key"}, None),
                ({"tenant": "lost", "job": "other"}, "FAILURE_STRING_MISSING"),
                ({"tenant": "long"}, "FAILURE_LABEL_RECOVERY_FAILED")]:
            check_equal(failure_of(target, **selection), failure, f"{selection}")


def check_crowd(version):
    program = build_fixture("tenants", version)
    with Fixture([program, "crowd"]) as target:
        report = scan_labels(target)["labels"]
        check_equal((report["status"]["decoded"], report["status"]["malformed"]), (1, 1), "status")
        check_equal([len(entry["labels"]) for entry in report["sets"]], [1024], "labels")
        check_equal(failure_of(target, tenant="acme"), "FAILURE_LABEL_RECOVERY_FAILED",
                    "nothing is known of one")


def each(name_of, check_one, runtimes, *arguments):
    for runtime in runtimes:
        suite.test(f"{name_of}, go{'-'.join(filter(None, runtime))}")(
            lambda runtime=runtime: check_one(*runtime, *arguments))


if __name__ == "__main__":
    each("tenants hold what they hold", check_tenants, RUNTIMES)
    each("memory is found with who holds it", check_holders, RUNTIMES)
    each("labels are read as they were set", check_values, RUNTIMES)
    each("labels of a program that lies anywhere", check_values, [("1.15", ""), ("1.27", "")],
         ("-buildmode=pie",))
    each("tenants of a stripped program hold what they hold", check_tenants, RUNTIMES,
         ("-ldflags=-s -w",))
    each("memory of a stripped program is found with who holds it", check_holders,
         [("1.15", ""), ("1.23", ""), ("1.27", "")], ("-ldflags=-s -w",))
    newest_of_forms = [("1.15",), ("1.23",), ("1.27",)]
    each("selections and groups are sums of sets", check_selections, newest_of_forms)
    each("goroutines are grouped by where they come from", check_origins, newest_of_forms)
    each("a census counts goroutines", check_census, newest_of_forms)
    each("a goroutine has one set of labels at a time", check_churn, newest_of_forms,
         repeat_count(10, 300))
    each("labels that cannot be read are told, and refuse what they could match", check_broken,
         newest_of_forms)
    each("more labels than a goroutine may have are malformed", check_crowd, newest_of_forms)
    with Agent() as agent:
        suite.run()
