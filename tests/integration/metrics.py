#!/usr/bin/env python3
"""Memusage as metrics: what a scraper gets, with an agent that answers from a can and from a real
program."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import exposition
import packages
from harness import Daemon, Fixture, build_fixture, need_root, program
from tap import Suite, check, check_equal

TOP = pathlib.Path(__file__).resolve().parents[2]
PID = 4242
PROMETHEUS, OPENMETRICS = "prometheus", "openmetrics"
# What Prometheus 3 sends by itself.
ACCEPT = ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
          "application/openmetrics-text;version=0.0.1;q=0.4,"
          "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
          "text/plain;version=0.0.4;q=0.2,*/*;q=0.1")

suite = Suite()


@contextlib.contextmanager
def serving(*lines, real=False):
    """A daemon with these lines in its configuration."""
    with tempfile.TemporaryDirectory(prefix="goheapd-metrics-") as folder:
        os.chmod(folder, 0o755)
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("\n".join(("min_stop_interval = 0", *lines, "")))
        agent = () if real else ("--agent", program("tests/support/fake_agent"))
        with Daemon("--config", config, *agent) as daemon:
            yield daemon


def page(daemon, pid=PID, form=PROMETHEUS, query="", **keywords):
    answer = daemon.get(f"/pid/{pid}/memusage?format={form}{query}", **keywords)
    check_equal(answer.status, 200, answer.text())
    return answer.text()


def metrics(daemon, pid=PID, form=PROMETHEUS, query=""):
    return exposition.parse(page(daemon, pid, form, query), form == OPENMETRICS)


def family(samples, name):
    """The values of a family by their labels, as a dict of dicts would be."""
    return {labels: value for (has, labels), value in samples.items() if has == name}


def by_holder(samples, name):
    found = {}
    for labels, value in family(samples, name).items():
        found.setdefault(dict(labels)["holder"], []).append((dict(labels), value))
    return found


# ---- the forms ----

@suite.test("both forms are well-formed, and say the same")
def _():
    with serving('metric_labels = {"tenant", "job"}') as daemon:
        check_equal(metrics(daemon), metrics(daemon, form=OPENMETRICS), "samples")
        for query in "&label=tenant=acme", "&label=tenant=nobody", "&depth=census":
            check_equal(metrics(daemon, query=query),
                        metrics(daemon, form=OPENMETRICS, query=query), query)


@suite.test("the form follows the header, and Content-Type says which it is")
def _():
    with serving() as daemon:
        path = f"/pid/{PID}/memusage"
        for accept, content_type in (
                (ACCEPT, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
                ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                 "text/plain; version=0.0.4; charset=utf-8"),
                ("text/plain", "text/plain; charset=utf-8"),
                ("*/*", "application/json")):
            answer = daemon.get(path, headers={"Accept": accept})
            check_equal((answer.status, answer.headers["Content-Type"]), (200, content_type),
                        accept)
        answer = daemon.get(f"{path}/format=prometheus")
        check_equal(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8",
                    "by path")


@suite.test("promtool has nothing to say about it")
def _():
    promtool = shutil.which("promtool") or packages.program("promtool")
    with serving('metric_labels = {"tenant", "job"}') as daemon:
        for query in "", "&label=tenant=acme", "&depth=census":
            done = subprocess.run([promtool, "check", "metrics"],
                                  input=page(daemon, query=query), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            check_equal((done.returncode, done.stdout), (0, ""), query)


@suite.test("docs/metrics.md lists every metric, and no other")
def _():
    listed = set(re.findall(r"`(goheapd_[a-z_]+)", (TOP / "docs/metrics.md").read_text()))
    with serving() as daemon:
        served = {name for name, _ in metrics(daemon, query="&label=tenant=acme")}
    with serving("metric_series_max = 1", 'metric_labels = {"tenant"}') as daemon:
        served |= {name for name, _ in metrics(daemon)}
    check_equal(served, listed, "metrics")


# ---- the figures ----

@suite.test("parts sum to their totals, which have other names")
def _():
    with serving() as daemon:
        samples = metrics(daemon)
        for total in "goheapd_memory_mapped_bytes", "goheapd_memory_resident_bytes":
            parts = family(samples, total.removesuffix("_bytes") + "_part_bytes")
            check_equal(sum(parts.values()), samples[total, frozenset()], total)
            check(len(parts) > 5, parts)
        found = daemon.get(f"/pid/{PID}/memusage").json()
        part = "goheapd_heap_allocated_part_bytes"
        for name in "live", "finalizable", "garbage":
            check_equal(samples[part, frozenset({("part", name)})],
                        found["heap"][f"{name}_bytes"], name)
        check_equal(sum(family(samples, "goheapd_label_share_bytes").values()),
                    found["heap"]["live_bytes"], "shares")


@suite.test("without configuration no label leaves the daemon")
def _():
    with serving() as daemon:
        text = page(daemon)
        check("acme" not in text and "label_tenant" not in text, text)
        shares = by_holder(exposition.parse(text, False), "goheapd_label_share_bytes")
        check_equal([labels for labels, _ in shares["labels"]], [{"holder": "labels"}], "labels")


@suite.test("only keys that are allowed become labels, and sets that agree in them one series")
def _():
    with serving('metric_labels = {"tenant"}') as daemon:
        samples = metrics(daemon)
        check_equal({key for _, labels in samples for key, _ in labels if key[:6] == "label_"},
                    {"label_tenant"}, "keys")
        check_equal(family(samples, "goheapd_label_goroutines")
                    [frozenset({("holder", "labels"), ("label_tenant", "acme")})], 201 + 11,
                    "goroutines of acme")
        check_equal(samples["goheapd_label_sets", frozenset()], 6, "sets")


@suite.test("the largest are shown, the rest is one series, and how many it is")
def _():
    with serving('metric_labels = {"job", "tenant"}', "metric_series_max = 2") as daemon:
        samples = metrics(daemon)
        shares = by_holder(samples, "goheapd_label_share_bytes")
        check_equal([(labels["label_tenant"], labels["label_job"])
                     for labels, _ in shares["labels"]], [("acme", "42"), ("acme", "41")],
                    "largest")
        check_equal(len(shares["other"]), 1, "other")
        check_equal(samples["goheapd_label_series_folded", frozenset()], 3, "folded")
        check_equal(sum(family(samples, "goheapd_label_share_bytes").values()),
                    daemon.get(f"/pid/{PID}/memusage").json()["heap"]["live_bytes"], "shares")


@suite.test("labels of a hostile target stay inside their quotes")
def _():
    with serving('metric_labels = {"job", "tenant"}') as daemon:
        values = {value for _, labels in metrics(daemon) for _, value in labels}
        check({'a,"b"=\n\\', "\ufffd\x1b[31m"} <= values, values)


@suite.test("a selection has figures of its own, by= is refused")
def _():
    with serving() as daemon:
        check_equal(metrics(daemon, query="&label=tenant=acme")
                    ["goheapd_selection_goroutines", frozenset()], 212, "acme")
        check_equal(metrics(daemon, query="&label=tenant=nobody")
                    ["goheapd_selection_exclusive_bytes", frozenset()], 0, "nobody")
        check(not any("selection" in name for name, _ in metrics(daemon)), "without label=")
        for form in PROMETHEUS, OPENMETRICS:
            answer = daemon.get(f"/pid/{PID}/memusage?format={form}&by=job")
            check_equal((answer.status, answer.error_code()), (400, "bad_request"), form)
            check("metric_labels" in answer.text(), answer.text())


@suite.test("a census has no heap figures of labels")
def _():
    with serving() as daemon:
        names = {name for name, _ in metrics(daemon, query="&depth=census")}
        check("goheapd_label_goroutines" in names, names)
        check(not names & {"goheapd_label_share_bytes", "goheapd_label_exclusive_bytes",
                           "goheapd_heap_allocated_part_bytes"}, names)


@suite.test("a real program's metrics are well-formed and add up")
def _():
    need_root()
    with serving('metric_labels = {"tenant"}', real=True) as daemon, \
            Fixture([build_fixture("demo", "1.26")]) as target:
        for form in PROMETHEUS, OPENMETRICS:
            samples = metrics(daemon, target.pid, form, "&max_pause=10")
            goroutines = family(samples, "goheapd_label_goroutines")
            check_equal({dict(labels).get("label_tenant"): value
                         for labels, value in goroutines.items()
                         if ("holder", "labels") in labels},
                        {"acme": 40, "initech": 20, "zeta": 8}, "goroutines")
            check_equal(sum(goroutines.values()), samples["goheapd_goroutines", frozenset()],
                        "all goroutines")
            live = family(samples, "goheapd_heap_allocated_part_bytes")
            check_equal(sum(family(samples, "goheapd_label_share_bytes").values()),
                        live[frozenset({("part", "live")})], "shares")


suite.run()
