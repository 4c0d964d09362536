#!/usr/bin/env python3
"""Kept scans: questions that follow, also when the target is gone; how they go (time, number, memory,
pressure, death), and that nothing of them is left, in the target, the agent or the daemon."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile

import gobuild
import procfs
from agentclient import Agent
from harness import STRESS, Daemon, Fixture, build_fixture, need_root, program, repeat_count
from procfs import eventually, is_running, unharmed
from tap import Suite, check, check_equal, note

MIB = 1 << 20
GO = "1.26"
HEAP_MIB = 16
VERSIONS = ["1.19", "1.24", "1.27"]
GRAPH_VERSIONS = gobuild.VERSIONS if STRESS else ["1.15", "1.24", "1.27"]

suite = Suite()


@contextlib.contextmanager
def daemon(config="", script=None, **keywords):
    """A daemon that stops a process as often as it is asked to."""
    with tempfile.TemporaryDirectory(prefix="goheapd-keep-") as name:
        root = pathlib.Path(name)
        root.chmod(0o755)
        (root / "config").write_text(f"min_stop_interval = 0\n{config}\n")
        arguments = ["--config", root / "config"]
        if script:
            (root / "agent").write_text(f'#!/bin/sh\n{script} {program("goheap-agent")} "$@"\n')
            (root / "agent").chmod(0o755)
            arguments += ["--agent", root / "agent"]
        with Daemon(*arguments, **keywords) as running:
            yield running


def heap(version=GO, size=HEAP_MIB):
    return Fixture([build_fixture("heaps", version), "nodes", size])


def keep(running, target, seconds=300, **parameters):
    """A new scan that is kept; the answer."""
    answer = running.scan(target.pid, keep=seconds, **parameters)
    check_equal([w for w in answer["scan"]["warnings"] if w["code"] == "not_kept"], [], "warnings")
    return answer


def id_of(answer):
    return answer["scan"]["id"]


def scans(running, pid):
    """What is kept of a process, by id."""
    answer = running.get(f"/pid/{pid}/scans")
    check_equal(answer.status, 200, answer.text())
    check_equal(answer.json()["pid"], pid, "pid")
    return {scan["id"]: scan for scan in answer.json()["scans"]}


def agent_of(running):
    """The agent below a daemon: the process that has decoders below it, or would."""
    return next(pid for pid in running.descendants() if is_agent(pid))


def is_agent(pid):
    line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return line[0].endswith(b"goheap-agent") and not any(b"--role" in part for part in line)


def decoders(agent_pid):
    return sorted(procfs.children(agent_pid))


def check_error(answer, status, code, text=""):
    check_equal((answer.status, answer.error_code()), (status, code), answer.text())
    check(text in answer.json()["error"]["message"], answer.text())


# ---- questions that follow ----

def without_cached(answer):
    return {**answer, "scan": {**answer["scan"], "cached": None}}


def check_follow_ups(running, target, first):
    """Every path answers for the kept scan, with what there was at its time."""
    for endpoint in "memusage", "goroutines", "mappings":
        answer = running.get(f"/pid/{target.pid}/{endpoint}?scan={id_of(first)}")
        check_equal(answer.status, 200, answer.text()[:300])
        check_equal(answer.json()["scan"]["cached"], True, "cached")
        if endpoint == "memusage":
            check_equal(without_cached(answer.json()), without_cached(first), endpoint)
        text = running.get(f"/pid/{target.pid}/{endpoint}?scan={id_of(first)}&format=text")
        check_equal(text.status, 200, text.text()[:300])
    by_name = running.get(f"/comm/heaps/mappings?scan={id_of(first)}")
    check(by_name.status == 200 and by_name.json()["mappings"], by_name.text()[:300])


def check_let_go(pid, decoder):
    """The target is nobody's business any more: collected, untraced, and not a file of it open."""
    check_equal(procfs.children(pid), set(), "children of the target")
    check(procfs.has_no_tracer(pid), "the target is traced")
    opened = set(procfs.descriptors(decoder).values())
    check(not any(f"/proc/{pid}" in name or "heaps" in name for name in opened), opened)
    check_equal(sum(name.startswith("socket:") for name in opened), 1 + stderr_is_socket(decoder),
                f"sockets of a kept decoder: {opened}")


def stderr_is_socket(pid):
    return os.readlink(f"/proc/{pid}/fd/2").startswith("socket:")


def keep_and_outlive(version, **parameters):
    with daemon() as running, heap(version) as target:
        with unharmed(target.pid):
            first = keep(running, target, **parameters)
            decoder, = decoders(agent_of(running))
            check_let_go(target.pid, decoder)
            check_follow_ups(running, target, first)
        target.close()
        check_follow_ups(running, target, first)
        check_error(running.get(f"/pid/{target.pid}/memusage"), 404, "no_such_process")
        kept, = scans(running, target.pid).values()
        check_equal((kept["id"], kept["live_bytes"], kept["mode"], kept["depth"], kept["graph"],
                     kept["stored"], kept["started_at"]),
                    (id_of(first), first["heap"]["live_bytes"], first["scan"]["mode"], "full",
                     True, False, first["scan"]["started_at"]), "what is kept")
        page = running.get(f"/comm/heaps/scans?format=text").text()
        check(id_of(first) in page, page)


for version in VERSIONS:
    @suite.test(f"go{version}: a kept scan answers when its target is gone, which it left as it was")
    def _(version=version):
        keep_and_outlive(version)


@suite.test("the same where the target was stopped for the scan")
def _():
    keep_and_outlive(GO, mode="stop")


# ---- questions to the graph ----

def node_row(histogram):
    return next(row for row in histogram["types"] if row["type"] == "main.node")


def check_histogram(histogram, live_bytes, expected):
    total = sum(row["bytes"] for row in histogram["types"]) + histogram["unknown"]["bytes"]
    check_equal(total, live_bytes, "rows and unknown")
    check_equal(node_row(histogram), expected, "objects of one type")


def pages(running, path, key):
    """All rows, page by page, with as little in a page as makes sense."""
    cursor, rows = "", []
    while cursor is not None:
        answer = running.get(f"{path}&cursor={cursor}" if cursor else path)
        check_equal(answer.status, 200, answer.text()[:300])
        rows += answer.json()[key]
        cursor = answer.json()["next_cursor"]
    return rows


def check_object(running, pid, kept, address):
    """A node that the target held: its fields, who refers to it, and a path from a global."""
    answer = running.get(f"/pid/{pid}/object/{address}?scan={kept}")
    check_equal(answer.status, 200, answer.text()[:300])
    found = answer.json()["object"]
    check_equal((found["address"], found["type"], found["bytes"], found["state"]),
                (address, "main.node", 48, "live"), "the object")
    check(found["fields"] and found["referrers"] and found["path"], found)
    check("main.held" in found["path"][0]["frame"], found["path"])
    check(found["retained_bytes"] >= 48, found)


for version in GRAPH_VERSIONS:
    @suite.test(f"go{version}: a graph tells types, objects and what dominates when its target is gone")
    def _(version=version):
        with daemon() as running, heap(version, 4) as target:
            fresh = running.scan(target.pid, "histogram")
            first = keep(running, target)
            kept, live = id_of(first), first["heap"]["live_bytes"]
            target.close()
            path = f"/pid/{target.pid}"
            histogram = running.get(f"{path}/histogram?scan={kept}")
            check_equal(histogram.status, 200, histogram.text()[:300])
            expected = node_row(fresh)
            check_histogram(histogram.json(), live, expected)
            rows = pages(running, f"{path}/objects?type=main.node&limit=10000&scan={kept}", "objects")
            check_equal((len(rows), sum(row["bytes"] for row in rows)),
                        (expected["objects"], expected["bytes"]), "objects, page by page")
            check_object(running, target.pid, kept, rows[len(rows) // 2]["address"])
            check_error(running.get(f"{path}/object/0x10?scan={kept}"), 404, "not_found")
            nodes = pages(running, f"{path}/dominators?limit=100&scan={kept}", "nodes")
            held = next(node for node in nodes if node["name"] == "main.held")
            check(held["retained_bytes"] >= expected["bytes"], held)
            profile = running.get(f"{path}/profile?scan={kept}")
            check_equal(profile.status, 200, profile.body[:300])
            check_histogram(running.get(f"{path}/histogram?scan={kept}").json(), live, expected)
            check("a process was stopped" not in running.log().partition(kept)[2], "another stop")


@suite.test("a first page keeps its scan for the next, also when the target is gone")
def _():
    with daemon() as running, heap(size=4) as target:
        first = running.scan(target.pid, "objects", type="main.node", limit=10)
        check(first["next_cursor"].startswith(id_of(first)), first["next_cursor"])
        target.close()
        answer = running.get(f"/pid/{target.pid}/objects?type=main.node&limit=10"
                             f"&cursor={first['next_cursor']}")
        check_equal(answer.status, 200, answer.text()[:300])
        addresses = [row["address"] for row in first["objects"] + answer.json()["objects"]]
        check_equal((len(set(addresses)), addresses), (20, sorted(addresses)), "two pages")


@suite.test("a census is kept, too, without a graph")
def _():
    with daemon() as running, heap() as target:
        first = keep(running, target, depth="census")
        eventually(lambda: not decoders(agent_of(running)), "its decoder stays")
        kept, = scans(running, target.pid).values()
        check_equal((kept["depth"], kept["live_bytes"], kept["graph"]), ("census", None, False),
                    "census")
        check_follow_ups(running, target, first)


@suite.test("a kept scan does not stand in the way of others")
def _():
    with daemon("max_scans = 1") as running, heap() as target:
        first = keep(running, target)
        with unharmed(target.pid):
            second = keep(running, target)
        check(id_of(first) != id_of(second), "one scan")
        check_equal(list(scans(running, target.pid)), [id_of(second), id_of(first)],
                    "the newest first")


@suite.test("max_age takes a kept scan that is kept still, and keeps it longer")
def _():
    with daemon() as running, heap() as target:
        plain = running.scan(target.pid)
        first = keep(running, target, 100, max_age=60)
        check(id_of(plain) != id_of(first), "a scan without a graph stands for a kept one")
        again = keep(running, target, 200, max_age=60)
        check_equal((id_of(again), again["scan"]["cached"]), (id_of(first), True), "again")
        before = scans(running, target.pid)[id_of(first)]["expires_at"]
        answer = running.get(f"/pid/{target.pid}/memusage?scan={id_of(first)}&keep=900")
        check_equal(answer.status, 200, answer.text()[:300])
        check(scans(running, target.pid)[id_of(first)]["expires_at"] > before, "not kept longer")


@suite.test("what a scan was not asked for is told as such")
def _():
    with daemon() as running, heap() as target:
        kept = id_of(keep(running, target))
        for query, text in (("label=tenant=acme", "label="), ("by=tenant", "by=")):
            check_error(running.get(f"/pid/{target.pid}/memusage?scan={kept}&{query}"), 400,
                        "bad_request", text)
        check_error(running.get(f"/pid/{target.pid}/goroutines?scan={kept}&dead=1"), 400,
                    "bad_request", "dead goroutines")


# ---- who may ask ----

@suite.test("an id is of one process, and for whoever could ask about it then")
def _():
    need_root()
    with daemon() as running, heap() as target:
        kept = id_of(keep(running, target))
        check_error(running.get(f"/pid/{os.getpid()}/memusage?scan={kept}"), 404, "not_found")
        check_error(running.get(f"/comm/other/memusage?scan={kept}"), 404, "not_found")
        check_error(running.get(f"/pid/{target.pid}/memusage?scan={'0' * 16}"), 404, "not_found")
        check_error(running.get(f"/pid/{target.pid}/memusage?scan=x"), 400, "bad_request")
        start = "start=2001-01-01T00:00:00Z"
        check_error(running.get(f"/pid/{target.pid}/memusage?scan={kept}&{start}"), 409,
                    "process_changed")
        target.close()
        for path in f"memusage?scan={kept}", "scans":
            code, body = as_stranger(running, f"/pid/{target.pid}/{path}")
            check_equal(code, 403 if "scan=" in path else 404, body)
        check_equal(scans(running, target.pid).keys(), {kept}, "root's")


def as_stranger(running, path):
    done = subprocess.run(
        ["curl", "-s", "-w", "\n%{http_code}", f"http://127.0.0.1:{running.port}{path}"],
        stdout=subprocess.PIPE, check=True, user=1234, group=1234, extra_groups=[])
    body, _, code = done.stdout.decode().rpartition("\n")
    return int(code), body


# ---- how they go ----

def check_dropped(running, kept, reason):
    line = next((line for line in running.log().splitlines()
                 if "a kept scan was dropped" in line and f'id="{kept}"' in line), None)
    check(line and " audit: " in line and reason in line, f"{line}: not {reason}")


@suite.test("its time ends it, and then nothing of it is left")
def _():
    with daemon() as running, heap() as target:
        agent = agent_of(running)
        kept = id_of(keep(running, target, 1))
        eventually(lambda: not scans(running, target.pid), "it is kept still")
        check_error(running.get(f"/pid/{target.pid}/memusage?scan={kept}"), 404, "not_found")
        eventually(lambda: not decoders(agent), "its decoder is there still")
        check_dropped(running, kept, "its time is over")


def path_of(target):
    return f"/pid/{target.pid}"


def graphs(running, target, ids):
    kept = scans(running, target.pid)
    return [kept[one]["graph"] for one in ids]


def check_graph_is_gone(running, target, kept):
    """Its first answer is still there, its graph is not."""
    answer = running.get(f"/pid/{target.pid}/memusage?scan={kept}")
    check_equal(answer.status, 200, answer.text()[:300])
    answer = running.get(f"/pid/{target.pid}/profile?scan={kept}")
    check((answer.status, answer.text().split(":")[0]) == (404, "not_found"), answer.body[:300])


@suite.test("beyond max_kept_scans the oldest graph goes")
def _():
    with daemon("max_kept_scans = 2") as running, heap() as target:
        ids = [id_of(keep(running, target)) for _ in range(3)]
        check_equal(graphs(running, target, ids), [False, True, True], "graphs")
        check_graph_is_gone(running, target, ids[0])
        check_dropped(running, ids[0], "max_kept_scans")
        eventually(lambda: len(decoders(agent_of(running))) == 2, "decoders")


def first_page(running, target):
    """A page that keeps its scan on its own."""
    return running.scan(target.pid, "objects", type="main.node", limit=10)


@suite.test("a scan that only a first page keeps goes before those that were asked for")
def _():
    with daemon("max_kept_scans = 2") as running, heap(size=4) as target:
        asked = [id_of(keep(running, target, 100))]
        page = id_of(first_page(running, target))  # for 300 s
        asked.append(id_of(keep(running, target, 90)))
        check_equal(graphs(running, target, [*asked, page]), [True, True, False], "graphs")
        check_dropped(running, page, "max_kept_scans")


@suite.test("where all were asked for a first page is kept by keep= alone, and says so")
def _():
    with daemon("max_kept_scans = 2") as running, heap(size=4) as target:
        asked = [id_of(keep(running, target, seconds)) for seconds in (100, 90)]
        answer = first_page(running, target)
        told = [w["message"] for w in answer["scan"]["warnings"] if w["code"] == "not_kept"]
        check(len(told) == 1 and "keep=" in told[0], answer["scan"]["warnings"])
        check_equal((len(answer["objects"]), answer["next_cursor"]), (10, None), "the page")
        check_equal(graphs(running, target, asked), [True, True], "graphs")
        answer = running.scan(target.pid, "objects", type="main.node", limit=10, keep=50)
        check(answer["next_cursor"], "no cursor")
        check_equal(graphs(running, target, [*asked, id_of(answer)]), [True, False, True], "graphs")


@suite.test("a first page's scan that is asked for later stays as those that were")
def _():
    with daemon("max_kept_scans = 2") as running, heap(size=4) as target:
        page = first_page(running, target)
        cursor = f"{path_of(target)}/objects?type=main.node&limit=10&cursor={page['next_cursor']}"
        check_equal(running.get(cursor).status, 200, "the next page")
        query = f"type=main.node&limit=10&scan={id_of(page)}&keep=200"
        answer = running.get(f"{path_of(target)}/objects?{query}")
        check_equal(answer.status, 200, answer.text()[:300])
        other = id_of(first_page(running, target))
        asked = id_of(keep(running, target, 100))
        check_equal(graphs(running, target, [id_of(page), other, asked]), [True, False, True],
                    "graphs")


@suite.test("beyond max_kept_memory the oldest graph goes, and none is kept that is larger")
def _():
    with daemon() as running, heap() as target:
        first = keep(running, target)
        decoder, = decoders(agent_of(running))
        rss = procfs.rss_bytes(decoder)
        check(rss < first["scan"]["peak_memory_bytes"] + 4 * MIB, "it has grown")
        note(f"{rss >> 20} MiB kept of a heap of {HEAP_MIB} MiB, "
             f"{first['scan']['peak_memory_bytes'] >> 20} at the peak")
    with daemon(f"max_kept_memory = {rss * 5 // 2}") as running, heap() as target:
        ids = [id_of(keep(running, target)) for _ in range(3)]
        check_equal(graphs(running, target, ids), [False, True, True], "graphs")
        check_dropped(running, ids[0], "max_kept_memory")
    with daemon(f"max_kept_memory = {rss // 2}") as running, heap() as target:
        answer = running.scan(target.pid, keep=60)
        told = [w["message"] for w in answer["scan"]["warnings"] if w["code"] == "not_kept"]
        check(len(told) == 1 and "max_kept_memory" in told[0], answer["scan"]["warnings"])
        check_equal(graphs(running, target, [id_of(answer)]), [False], "graphs")
        eventually(lambda: not decoders(agent_of(running)), "a decoder is kept")


@suite.test("with max_kept_scans = 0 no graph is kept, and the answer says so")
def _():
    with daemon("max_kept_scans = 0") as running, heap() as target:
        answer = running.scan(target.pid, keep=60)
        told = [w["message"] for w in answer["scan"]["warnings"] if w["code"] == "not_kept"]
        check(len(told) == 1 and "max_kept_scans" in told[0], answer["scan"]["warnings"])
        eventually(lambda: not decoders(agent_of(running)), "a decoder is kept")


@suite.test("when memory becomes short graphs go one by one, the oldest first")
def _():
    need_root()
    text = "MemTotal: 8000000 kB\nMemAvailable: {} kB\n"
    with tempfile.TemporaryDirectory(prefix="goheapd-meminfo-") as folder, heap() as target:
        os.chmod(folder, 0o755)
        meminfo = pathlib.Path(folder, "meminfo")
        meminfo.write_text(text.format(4000000))
        script = (f"exec unshare --mount sh -c 'mount --bind {meminfo} /proc/meminfo && "
                  "exec \"$@\"' sh")
        with daemon(script=script) as running:
            agent = agent_of(running)
            ids = [id_of(keep(running, target)) for _ in range(2)]
            check_equal(graphs(running, target, ids), [True, True], "graphs")
            meminfo.write_text(text.format(300000))
            eventually(lambda: graphs(running, target, ids) == [False, True], "the oldest stays")
            check_dropped(running, ids[0], "of memory available")
            check_equal(graphs(running, target, ids)[0], False, "the oldest")
            eventually(lambda: graphs(running, target, ids) == [False, False], "it stays")
            eventually(lambda: not decoders(agent), "a decoder is there still")
            answer = running.scan(target.pid, keep=60)
            told = [w["message"] for w in answer["scan"]["warnings"] if w["code"] == "not_kept"]
            check(len(told) == 1 and "available" in told[0], answer["scan"]["warnings"])
            check_graph_is_gone(running, target, ids[0])
            meminfo.write_text(text.format(4000000))
            check_equal(graphs(running, target, [id_of(keep(running, target))]), [True], "graphs")


@suite.test("a kept decoder that is killed is only a graph less")
def _():
    with daemon() as running, heap() as target:
        kept = id_of(keep(running, target))
        decoder, = decoders(agent_of(running))
        os.kill(decoder, signal.SIGKILL)
        eventually(lambda: graphs(running, target, [kept]) == [False], "it is kept still")
        check_dropped(running, kept, "killed")
        check_graph_is_gone(running, target, kept)
        check_equal(graphs(running, target, [id_of(keep(running, target))]), [True], "graphs")


# ---- the agent and the daemon ----

@suite.test("one that dies while it is asked is an error for whoever asks")
def _():
    with Agent() as agent, heap() as target:
        agent.scan(target.pid, keep={"id": b"one", "ms": 60000})
        decoder, = decoders(agent.process.pid)
        os.kill(decoder, signal.SIGSTOP)
        asked = agent.client.send("ask", id=b"one", analysis={}, timeout_ms=60000)
        waits = agent.client.send("ask", id=b"one", analysis={}, timeout_ms=60000)
        hurried = agent.client.ask("ask", id=b"one", analysis={}, timeout_ms=50)
        check_equal(hurried["failure"]["code"], "FAILURE_TIMEOUT", hurried)
        cancelled = agent.client.send("ask", id=b"one", analysis={}, timeout_ms=60000)
        agent.client.send("cancel", request=cancelled)
        check_equal(agent.client.answer(cancelled)["failure"]["code"], "FAILURE_TIMEOUT", "cancel")
        os.kill(decoder, signal.SIGKILL)
        check_equal(agent.client.answer(asked)["failure"]["code"], "FAILURE_OUT_OF_MEMORY", "asked")
        check("failure" in agent.client.answer(waits), "who waited")
        check_equal(agent.client.ask("list_kept"), {"kept_scans": {}}, "kept")


@suite.test("a decoder answers again and again, and not to other connections")
def _():
    with Agent() as agent, heap() as target:
        first = agent.scan(target.pid, keep={"id": b"one", "ms": 60000})
        decoder, = decoders(agent.process.pid)
        opened = procfs.descriptors(decoder)
        for _ in range(50):
            answer = agent.client.ask("ask", id=b"one", analysis={}, timeout_ms=60000)["scan"]
            check_equal((answer["heap"], answer["kept_until_ns"]),
                        (first["heap"], first["kept_until_ns"]), "the answer")
        check_equal(procfs.descriptors(decoder), opened, "descriptors of the decoder")
        with contextlib.closing(agent.first_session()) as other:
            answer = other.ask("ask", id=b"one", analysis={}, timeout_ms=60000)
            check_equal(answer["failure"]["code"], "FAILURE_NOT_FOUND", answer)
            check_equal(other.ask("list_kept"), {"kept_scans": {}}, "what another keeps")
        answer = agent.client.ask("list_kept")["kept_scans"]["scans"]
        check_equal([scan["id"] for scan in answer], [b"one"], "kept")


def end_agent(number):
    with Agent() as agent, heap() as target, unharmed(target.pid):
        for name in b"one", b"two":
            agent.scan(target.pid, keep={"id": name, "ms": 60000})
        below = decoders(agent.process.pid)
        check_equal(len(below), 2, "kept decoders")
        agent.process.send_signal(number)
        agent.process.wait(20)
        for pid in below:
            eventually(lambda pid=pid: not is_running(pid), "a decoder outlives its agent")


@suite.test("an agent that ends takes its kept decoders along")
def _():
    end_agent(signal.SIGTERM)


@suite.test("one that is killed, too")
def _():
    end_agent(signal.SIGKILL)


@suite.test("with a connection goes what was kept for it")
def _():
    with Agent() as agent, heap() as target:
        with contextlib.closing(agent.first_session()) as other:
            answer = other.ask("scan", pid=target.pid, start_ticks=procfs.start_ticks(target.pid),
                               mode="MODE_FORK", depth="DEPTH_FULL", max_pause_us=5000000,
                               timeout_ms=60000, caller_uid=0, path=b"/test",
                               keep={"id": b"one", "ms": 60000})
            check("kept_until_ns" in answer["scan"], answer)
            check_equal(len(decoders(agent.process.pid)), 1, "kept decoders")
        eventually(lambda: not decoders(agent.process.pid), "it is kept for nobody")


@suite.test("a daemon that is started again knows of no kept scan, nor does its agent")
def _():
    with Agent() as agent, heap() as target:
        os.chmod(agent.folder.name, 0o755)
        with daemon(agent_socket=agent.path) as running:
            kept = id_of(keep(running, target))
            check_equal(len(decoders(agent.process.pid)), 1, "kept decoders")
            running.stop()
            eventually(lambda: not decoders(agent.process.pid), "it is kept for nobody")
            running.start()
            check_equal(scans(running, target.pid), {}, "kept")
            check_error(running.get(f"/pid/{target.pid}/memusage?scan={kept}"), 404, "not_found")


@suite.test("a graph does not outlive its agent, a first answer does")
def _():
    with daemon() as running, heap() as target:
        kept = id_of(keep(running, target))
        os.kill(agent_of(running), signal.SIGKILL)
        eventually(lambda: "no agent" in running.log(), "its end is not noticed")
        check_equal(running.get(f"/pid/{target.pid}/mappings?scan={kept}").status, 200, "before")
        eventually(lambda: running.get("/readyz").status == 200, "no agent", 20)
        eventually(lambda: graphs(running, target, [kept]) == [False], "it is kept still")
        check_graph_is_gone(running, target, kept)


@suite.test("many kept scans leave no descriptor and no process behind")
def _():
    count = repeat_count(40, 200)
    with daemon() as running, Fixture([build_fixture("demo", GO)]) as target:
        agent = agent_of(running)
        with unharmed(target.pid):
            keep(running, target)
            before = len(procfs.descriptors(agent)), len(procfs.descriptors(running.process.pid))
            for number in range(count):
                kept = id_of(keep(running, target, 300 if number % 2 else 1))
                answer = running.get(f"/pid/{target.pid}/goroutines?scan={kept}")
                check_equal(answer.status, 200, answer.text()[:300])
        eventually(lambda: len(decoders(agent)) <= 8, "more decoders than max_kept_scans")
        # a decoder is a socket, a process and two timers to the agent
        eventually(lambda: len(procfs.descriptors(agent)) <= before[0] + 7 * 4,
                   f"descriptors of the agent were {before[0]}")
        eventually(lambda: len(procfs.descriptors(running.process.pid)) <= before[1],
                   f"descriptors of the daemon were {before[1]}")
        check(running.log().count("a kept scan was dropped") >= count - 8, "drops are not logged")


suite.run()
