#!/usr/bin/env python3
"""goheapd over HTTP, with an agent that answers from a can: routes, who may ask, parameters, forms,
errors, shared and kept scans, and how it begins and ends."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import Daemon, need_root, program
from procfs import eventually, is_running, status
from tap import Suite, check, check_equal

# What the fake agent has.
PID, NAMESAKE, MINE, FAILURES, WAITS, DIES, SLOW = 4242, 4243, 4244, 4250, 4290, 4291, 4292
START = "2026-01-27T22:18:11.12Z"
USER = 1234

FAILURE_ANSWERS = [
    (500, "internal"), (400, "bad_request"), (403, "forbidden"), (403, "attach_denied"),
    (404, "no_such_process"), (409, "already_traced"), (409, "ambiguous"),
    (409, "process_changed"), (409, "not_stoppable"), (409, "fork_unsafe"),
    (410, "process_exited"), (422, "not_go"), (422, "unsupported_arch"),
    (422, "unsupported_runtime"), (422, "no_debug_info"), (422, "corrupt_target"), (429, "busy"),
    (503, "agent_unavailable"), (503, "out_of_memory"), (504, "timeout"),
    (504, "pause_exceeded"), (422, "label_recovery_failed"), (422, "string_missing"),
    (400, "too_many_labels"), (400, "empty_label_key"), (400, "label_too_long")]

suite = Suite()


class FakeDaemon(Daemon):
    """The daemon with the fake agent, and no rest between two scans unless a test wants it."""

    def __init__(self, config="min_stop_interval = 0\n", *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
            file.write(config)
        os.chmod(file.name, 0o644)
        self.config = pathlib.Path(file.name)
        super().__init__("--agent", program("tests/support/fake_agent"), "--config", self.config,
                         *arguments)

    def close(self):
        super().close()
        self.config.unlink(missing_ok=True)

    def curl(self, path, *arguments, user=None):
        """Status and body as another user gets them, over TCP unless told otherwise."""
        keywords = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        done = subprocess.run(
            ["curl", "-s", "-w", "\n%{http_code}", *map(str, arguments),
             f"http://127.0.0.1:{self.port}{path}"],
            stdout=subprocess.PIPE, check=True, **keywords)
        body, _, code = done.stdout.decode().rpartition("\n")
        return int(code), body


daemon = None


def check_error(answer, http_status, code):
    check_equal((answer.status, answer.error_code()), (http_status, code), answer.text())
    check(len(answer.json()["error"]["message"]) > 10, answer.text())


# ---- answers ----

@suite.test("health and readiness are plain text")
def _():
    for path in ("/healthz", "/readyz"):
        answer = daemon.get(path)
        check_equal((answer.status, answer.text()), (200, "ok\n"), path)
        check_equal(answer.headers["Content-Type"], "text/plain; charset=utf-8", path)


@suite.test("every path has JSON first, and text by parameter or header")
def _():
    for path in ("/pids", f"/pid/{PID}", f"/pid/{PID}/memusage", f"/pid/{PID}/goroutines",
                 f"/pid/{PID}/mappings"):
        answer = daemon.get(path)
        check_equal((answer.status, answer.headers["Content-Type"]), (200, "application/json"),
                    path)
        answer.json()
        for text in (daemon.get(f"{path}?format=text"), daemon.get(f"{path}/format=text"),
                     daemon.get(path, headers={"Accept": "text/plain"})):
            check_equal((text.status, text.headers["Content-Type"]),
                        (200, "text/plain; charset=utf-8"), path)
            check(text.body.endswith(b"\n"), path)
            check(b"\x1b" not in text.body, f"{path} has colours")


@suite.test("processes come in the order of their pids")
def _():
    pids = [process["pid"] for process in daemon.get("/pids").json()["processes"]]
    check_equal(pids, sorted(pids), "pids")
    check({PID, NAMESAKE, MINE} <= set(pids), pids)


@suite.test("the text of memusage fits a terminal")
def _():
    page = daemon.get(f"/pid/{PID}/memusage?format=text").text()
    for line in page.splitlines():
        check(len(line) <= 100, f"{len(line)} columns: {line}")
    check(len(page.splitlines()) <= 24, "more than a screen")


@suite.test("names of a hostile target stay valid UTF-8 and do nothing to a terminal")
def _():
    answer = daemon.get(f"/pid/{PID}/goroutines")
    names = [frame["function"] for g in answer.json()["goroutines"] for frame in g["frames"]]
    check("main.\x1b[31m\ufffd\"\\" in names, names)
    text = daemon.get(f"/pid/{PID}/goroutines?format=text").text()
    check('main.\\x1b[31m\ufffd"\\' in text, text)


@suite.test("dead goroutines come only when asked for")
def _():
    def states(query):
        return [g["status"] for g in
                daemon.get(f"/pid/{PID}/goroutines{query}").json()["goroutines"]]
    check("dead" not in states(""), "dead=0")
    check("dead" in states("?dead=1"), "dead=1")


@suite.test("a census has no live, no garbage and no finalizable")
def _():
    found = daemon.get(f"/pid/{PID}/memusage?depth=census").json()
    check_equal(found["scan"]["depth"], "census", "depth")
    check_equal([found["heap"][key] for key in ("live_bytes", "garbage_objects",
                                                "finalizable_bytes")], [None] * 3, "heap")


@suite.test("the connection is kept, and answers have their length")
def _():
    connection = daemon.connection()
    for path in ("/pids", f"/pid/{PID}/memusage", "/nowhere"):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        check_equal(int(response.headers["Content-Length"]), len(body), path)
        check(response.headers["Transfer-Encoding"] is None, path)
        check(response.headers["Connection"] != "close", path)
    connection.close()


# ---- methods ----

@suite.test("HEAD answers the headers and scans nothing")
def _():
    scans = daemon.log().count("fake: scan")
    for path in ("/pids", f"/pid/{PID}", f"/pid/{PID}/memusage", f"/pid/{PID}/goroutines",
                 f"/comm/mine/mappings", "/healthz"):
        answer = daemon.request("HEAD", path)
        check_equal((answer.status, answer.body), (200, b""), path)
        check(answer.headers["Content-Type"], path)
        check(answer.headers["Transfer-Encoding"] is None, path)
    check_equal(daemon.request("HEAD", "/pid/4000/memusage").status, 404, "no such process")
    check_equal(daemon.request("HEAD", f"/pid/{PID}/memusage?mode=x").status, 400, "mode=x")
    check_equal(daemon.log().count("fake: scan"), scans, "scans")


@suite.test("other methods are told which there are")
def _():
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"):
        answer = daemon.request(method, f"/pid/{PID}/memusage")
        check_error(answer, 405, "method_not_allowed")
        check_equal(answer.headers["Allow"], "GET, HEAD", method)
    check_equal(daemon.request("POST", "/nowhere").status, 404, "an unknown path comes first")


# ---- parameters ----

@suite.test("an unknown parameter is named")
def _():
    for path in ("/pids?mode=fork", "/healthz?x=1", f"/pid/{PID}?depth=full",
                 f"/pid/{PID}/memusage?dead=1", f"/pid/{PID}/memusage/colour=red"):
        answer = daemon.get(path)
        check_error(answer, 400, "bad_request")
        name = re.search(r"[?/](\w+)=", path).group(1)
        check(f'"{name}"' in answer.json()["error"]["message"], answer.text())


@suite.test("values out of their range are refused")
def _():
    for query in ("mode=x", "depth=", "max_age=-1", "max_pause=0", "timeout=0", "timeout=601",
                  "start=1", "format=xml", "mode=fork&mode=fork", "max_age=%zz"):
        check_error(daemon.get(f"/pid/{PID}/memusage?{query}"), 400, "bad_request")


@suite.test("parameters reach the agent from query and path alike")
def _():
    daemon.get(f"/pid/{PID}/memusage/mode=stop?depth=census&max_pause=0.125")
    check(f"fake: scan pid={PID} mode=2 depth=1 pause=125000 uid={os.getuid()} "
          f"path=/pid/{PID}/memusage/mode=stop?depth=census" in daemon.log(), "audit facts")


@suite.test("start names one process for good")
def _():
    check_equal(daemon.get(f"/pid/{PID}").json()["start_time"], START, "start_time")
    for path in (f"/pid/{PID}", f"/pid/{PID}/memusage", "/comm/mine/mappings"):
        check_equal(daemon.get(f"{path}?start={START}").status, 200, path)
        answer = daemon.get(f"{path}?start=2026-01-27T22:18:11.13Z")
        check_error(answer, 409, "process_changed")


# ---- which process ----

@suite.test("a pid that nobody has is no_such_process, and what is no pid is bad_request")
def _():
    for pid in ("4000", "0", "99999999999999999999"):
        check_error(daemon.get(f"/pid/{pid}/memusage"), 404, "no_such_process")
    for pid in ("x", "1x", "-1", "+1", "%20"):
        check_error(daemon.get(f"/pid/{pid}/memusage"), 400, "bad_request")


@suite.test("a command name leads to its process, and several are ambiguous")
def _():
    check_equal(daemon.get("/comm/mine").json()["pid"], MINE, "pid")
    check_equal(daemon.get("/comm/mine/memusage?format=json").json()["pid"], MINE, "pid")
    answer = daemon.get("/comm/checkout/memusage")
    check_error(answer, 409, "ambiguous")
    check_equal(answer.json()["error"]["pids"], [PID, NAMESAKE], "pids")
    check("4242, 4243" in answer.json()["error"]["message"], answer.text())
    check_error(daemon.get("/comm/nobody"), 404, "no_such_process")


@suite.test("paths that do not exist, or not yet, say what there is")
def _():
    for path in ("/nowhere", "/pid", f"/pid/{PID}/x"):
        check_error(daemon.get(path), 404, "not_found")
    for path in ("/", "/metrics", "/sd", "/history", f"/pid/{PID}/threads",
                 "/comm/mine/leaks"):
        answer = daemon.get(path)
        check_error(answer, 404, "not_found")
        check("not available in this version" in answer.json()["error"]["message"], answer.text())


@suite.test("errors on pprof's paths are text that go tool pprof shows")
def _():
    for path in ("/debug/pprof/profile", f"/pid/{PID}/debug/pprof/heap?debug=7",
                 f"/pid/{PID}/profile?depth=census", f"/pid/{PID}/memusage?format=pprof"):
        answer = daemon.get(path)
        check(answer.status in (400, 404), f"{path}: {answer.status}")
        check_equal(answer.headers["X-Go-Pprof"], "1", path)
        check(answer.headers["Content-Type"].startswith("text/plain"), path)
    check(daemon.get("/nowhere").headers["X-Go-Pprof"] is None, "elsewhere")


# ---- failures ----

@suite.test("every failure of the agent has its status and code")
def _():
    for number, (http_status, code) in enumerate(FAILURE_ANSWERS):
        answer = daemon.get(f"/pid/{FAILURES + number}/memusage")
        check_equal((answer.status, answer.error_code()), (http_status, code), f"failure {number}")
        error = answer.json()["error"]
        check_equal(error["pid"], FAILURES + number, "pid")
        if code != "internal":
            check_equal(error["message"], "the target said no", "message")


@suite.test("busy says when to come again")
def _():
    answer = daemon.get(f"/pid/{FAILURES + 16}/memusage")
    check_equal((answer.status, answer.headers["Retry-After"]), (429, "3"), "Retry-After")


@suite.test("an internal error has an id that is in the log")
def _():
    message = daemon.get(f"/pid/{FAILURES}/memusage").json()["error"]["message"]
    number = re.search(r"id=([0-9a-f]{8})", message).group(0)
    check(f"{number}: the target said no" in daemon.log(), "log")


@suite.test("a scan that takes too long is a timeout, and is cancelled")
def _():
    cancelled = daemon.log().count("fake: cancelled")
    check_error(daemon.get(f"/pid/{WAITS}/memusage?timeout=0.2"), 504, "timeout")
    eventually(lambda: daemon.log().count("fake: cancelled") > cancelled, "not cancelled")


@suite.test("a scan whose client leaves is cancelled")
def _():
    cancelled = daemon.log().count("fake: cancelled")
    with socket.create_connection(("127.0.0.1", daemon.port)) as client:
        client.sendall(f"GET /pid/{WAITS}/memusage HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        eventually(lambda: daemon.log().count(f"fake: scan pid={WAITS}") >= 2, "no scan")
    eventually(lambda: daemon.log().count("fake: cancelled") > cancelled, "not cancelled")


@suite.test("an agent that dies is agent_unavailable, and then there is another")
def _():
    check_error(daemon.get(f"/pid/{DIES}/memusage"), 503, "agent_unavailable")
    eventually(lambda: daemon.get("/readyz").status == 200, "no new agent")
    check_equal(daemon.get(f"/pid/{PID}/memusage").status, 200, "after the restart")


# ---- who may ask ----

@suite.test("over TCP the kernel says who asks, and each sees their own")
def _():
    need_root()
    check_equal(daemon.curl("/pids", user=USER), (200, '{"processes":[]}\n'), "a stranger's pids")
    code, body = daemon.curl(f"/pid/{PID}/memusage", user=USER)
    check_equal(code, 403, body)
    check('"forbidden"' in body, body)
    code, body = daemon.curl("/comm/mine", user=USER)
    check_equal(code, 404, body)
    check_equal(daemon.curl("/pids", user=0)[0], 200, "root's pids")


@suite.test("a user may see a process of theirs, over TCP and Unix socket")
def _():
    need_root()
    os.environ["FAKE_AGENT_UID"] = str(USER)
    try:
        own = FakeDaemon()
    finally:
        del os.environ["FAKE_AGENT_UID"]
    with own:
        os.chmod(own.run_dir, 0o755)
        for arguments in ((), ("--unix-socket", own.socket)):
            check_equal(own.curl(f"/pid/{MINE}/memusage", *arguments, user=USER)[0], 200, "mine")
            check_equal(own.curl("/comm/mine", *arguments, user=USER)[0], 200, "by name")
            check_equal(own.curl(f"/pid/{PID}/memusage", *arguments, user=USER)[0], 403, "root's")
            address = f"/pid/{MINE}/object/0xc000123000"
            check_equal(own.curl(address, *arguments, user=USER)[0], 200, "an object")
            code, body = own.curl(f"{address}?contents=1", *arguments, user=USER)
            check_equal(code, 403, "contents are root's")
            check("contents=1" in body, body)
            code, body = own.curl("/pids", *arguments, user=USER)
            check_equal(re.findall(r'"pid":(\d+)', body), [str(MINE)], "pids")
            check_equal(own.curl(f"/pid/{MINE}", *arguments, user=USER + 1)[0], 403, "another")


@suite.test("a page in a browser gets nothing")
def _():
    own = f"localhost:{daemon.port}"
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{daemon.port}"},
                    {"Origin": "http://evil.example"}, {"Origin": "null"},
                    {"Sec-Fetch-Site": "cross-site"}):
        answer = daemon.get(f"/pid/{PID}/memusage", headers=headers)
        check_error(answer, 403, "forbidden")
    for headers in ({"Host": own}, {"Host": own, "Origin": f"http://{own}"},
                    {"Host": own, "Sec-Fetch-Site": "same-origin"}):
        check_equal(daemon.get("/pids", headers=headers).status, 200, headers)


# ---- scans, shared, kept and spaced ----

@suite.test("requests for the same share a scan, max_age takes a kept one")
def _():
    ids = []

    def ask():
        ids.append(daemon.get(f"/pid/{SLOW}/memusage").json()["scan"]["id"])
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_equal(len(set(ids)), 1, ids)
    kept = daemon.get(f"/pid/{SLOW}/memusage?max_age=60").json()["scan"]
    check_equal((kept["id"], kept["cached"]), (ids[0], True), "kept")
    fresh = daemon.get(f"/pid/{SLOW}/memusage").json()["scan"]
    check(fresh["id"] != ids[0] and not fresh["cached"], fresh)


@suite.test("more scans at once than configured are busy")
def _():
    with FakeDaemon("max_scans = 1\n") as small:
        with socket.create_connection(("127.0.0.1", small.port)) as client:
            client.sendall(f"GET /pid/{WAITS}/memusage HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           .encode())
            eventually(lambda: "fake: scan" in small.log(), "no scan")
            answer = small.get(f"/pid/{PID}/memusage")
            check_error(answer, 429, "busy")
            check(int(answer.headers["Retry-After"]) >= 1, "Retry-After")
        eventually(lambda: small.get(f"/pid/{PID}/memusage").status == 200, "still busy")


@suite.test("between two stops of a target an interval passes")
def _():
    with FakeDaemon("min_stop_interval = 1.5\n") as spaced:
        check_equal(spaced.get(f"/pid/{PID}/memusage").status, 200, "first")
        begun = time.monotonic()
        answer = spaced.get(f"/pid/{PID}/memusage?timeout=0.2")
        check_error(answer, 429, "busy")
        check_equal(spaced.get(f"/pid/{PID}/memusage?max_age=60").status, 200, "kept")
        check_equal(spaced.get(f"/pid/{NAMESAKE}/memusage").status, 200, "another target")
        check_equal(spaced.get(f"/pid/{PID}/memusage").status, 200, "later")
        check(time.monotonic() - begun > 1.0, "it did not wait")


# ---- scans that are kept ----

def keep(running, pid, *parameters):
    answer = running.get(f"/pid/{pid}/memusage?" + "&".join(["keep=60", *parameters]))
    check_equal(answer.status, 200, answer.text()[:300])
    return answer.json()["scan"]["id"]


def listed(running, pid):
    return {scan["id"]: scan for scan in running.get(f"/pid/{pid}/scans").json()["scans"]}


@suite.test("a kept scan is answered from its result, and by its graph where that has nothing")
def _():
    kept = keep(daemon, PID)
    asked = daemon.log().count(f"fake: ask id={kept}")
    scans = daemon.log().count("fake: scan")
    for path in "memusage", "goroutines", "mappings":
        answer = daemon.get(f"/pid/{PID}/{path}?scan={kept}").json()
        check_equal((answer["scan"]["id"], answer["scan"]["cached"]), (kept, True), path)
        check_equal(answer["pid"], PID, path)
    check_equal(daemon.log().count(f"fake: ask id={kept}"), asked, "questions to the graph")
    answer = daemon.get(f"/pid/{PID}/profile?scan={kept}")
    check_equal((answer.status, answer.headers["Content-Type"]), (200, "application/octet-stream"),
                answer.body[:300])
    check_equal(daemon.log().count(f"fake: ask id={kept}"), asked + 1, "questions to the graph")
    check_equal(daemon.log().count("fake: scan"), scans, "stops")


@suite.test("what a result has of objects needs no graph")
def _():
    kept = daemon.get(f"/pid/{PID}/profile?keep=60")
    check_equal(kept.status, 200, kept.body[:300])
    found = next(iter(listed(daemon, PID)))
    asked = daemon.log().count("fake: ask id=")
    again = daemon.get(f"/pid/{PID}/profile?scan={found}")
    check_equal(again.body, kept.body, "the profile")
    check_equal(daemon.log().count("fake: ask id="), asked, "questions to the graph")
    check_equal(daemon.get(f"/pid/{PID}/profile?scan={found}&max_depth=3").status, 200, "another")
    check_equal(daemon.log().count("fake: ask id="), asked + 1, "questions to the graph")


@suite.test("requests that keep do not share with those that do not")
def _():
    ids = {}

    def ask(query):
        ids[query] = daemon.get(f"/pid/{SLOW}/memusage?{query}").json()["scan"]["id"]
    threads = [threading.Thread(target=ask, args=(query,))
               for query in ("keep=60", "keep=60&timeout=50", "timeout=50", "keep=61")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_equal(ids["keep=60"], ids["keep=60&timeout=50"], "the same is shared")
    check_equal(len(set(ids.values())), 3, ids)
    check(ids["timeout=50"] not in listed(daemon, SLOW), "it was not to be kept")


@suite.test("an id serves whoever may see its process, whatever the path's process is now")
def _():
    need_root()
    os.environ["FAKE_AGENT_UID"] = str(USER)
    try:
        own = FakeDaemon()
    finally:
        del os.environ["FAKE_AGENT_UID"]
    with own:
        mine, roots = keep(own, MINE), keep(own, PID)
        check_equal(own.curl(f"/pid/{MINE}/memusage?scan={mine}", user=USER)[0], 200, "mine")
        check_equal(own.curl(f"/comm/mine/memusage?scan={mine}", user=USER)[0], 200, "by name")
        for path, user, status, code in (
                (f"/pid/{PID}/memusage?scan={roots}", USER, 403, "forbidden"),
                (f"/pid/{MINE}/memusage?scan={mine}", USER + 1, 403, "forbidden"),
                (f"/pid/{MINE}/memusage?scan={roots}", USER, 404, "not_found"),
                (f"/pid/{PID}/memusage?scan={mine}", USER, 404, "not_found"),
                (f"/pid/{PID}/scans", USER, 403, "forbidden")):
            answer = own.curl(path, user=user)
            check(answer[0] == status and f'"{code}"' in answer[1], f"{path} as {user}: {answer}")
        status, body = own.curl(f"/pid/{MINE}/scans", user=USER)
        check(status == 200 and mine in body and roots not in body, body)


@suite.test("what the agent keeps no more is told by /scans and by the next question")
def _():
    with FakeDaemon() as running:
        kept = [keep(running, PID) for _ in range(34)]  # the fake agent keeps 32 graphs
        found = listed(running, PID)
        check_equal(list(found), kept[::-1], "the newest first")
        check_equal([found[one]["graph"] for one in kept], [False] * 2 + [True] * 32, "graphs")
        keep(running, PID)
        answer = running.get(f"/pid/{PID}/profile?scan={kept[2]}")
        check((answer.status, answer.text()[:9]) == (404, "not_found"), answer.body)
        check_equal(running.get(f"/pid/{PID}/memusage?scan={kept[2]}").status, 200, "its result")


@suite.test("a kept scan can be kept longer, and only longer")
def _():
    kept = keep(daemon, PID)
    until = listed(daemon, PID)[kept]["expires_at"]
    check_equal(daemon.get(f"/pid/{PID}/memusage?scan={kept}&keep=5").status, 200, "shorter")
    check_equal(listed(daemon, PID)[kept]["expires_at"], until, "shorter")
    check_equal(daemon.get(f"/pid/{PID}/memusage?scan={kept}&keep=600").status, 200, "longer")
    check(listed(daemon, PID)[kept]["expires_at"] > until, "not kept longer")
    check(f"fake: ask id={kept} drop=0 keep=600000" in daemon.log(), "the agent does not know")


# ---- robustness ----

def raw(request):
    """What comes back for raw bytes, until the daemon closes."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=20) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while True:
            part = client.recv(65536)
            if not part:
                return received
            received += part


@suite.test("odd requests are refused and harm nothing")
def _():
    for request in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /pids\r\n\r\n", b"\x16\x03\x01\x02\x00",
                    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET /pids HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                    b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET /pids HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
                    b"POST /pids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"):
        status_line = raw(request).split(b"\r\n")[0]
        check(not status_line or re.match(rb"HTTP/1\.[01] (4|5)\d\d ", status_line),
              f"{request[:40]!r}: {status_line!r}")
    check_equal(daemon.get("/healthz").status, 200, "still there")


@suite.test("a client that has finished sending still gets its answer")
def _():
    received = raw(b"GET /pids HTTP/1.0\r\n\r\n")
    check(received.startswith(b"HTTP/1.1 200") or received.startswith(b"HTTP/1.0 200"), received)


@suite.test("descriptors and threads do not grow with use")
def _():
    def count():
        return (len(os.listdir(f"/proc/{daemon.process.pid}/fd")),
                len(os.listdir(f"/proc/{daemon.process.pid}/task")))

    def use(times):
        for _ in range(times):
            daemon.get(f"/pid/{PID}/memusage")
            daemon.get(f"/pid/{FAILURES + 5}/memusage")
            daemon.get("/pids", unix=True)
            daemon.get("/nowhere")
    def settled():
        """The counts once closed connections are gone, which takes the daemon a moment."""
        counts = [count()]
        while len(counts) < 2 or counts[-1] != counts[-2]:
            time.sleep(0.3)
            counts.append(count())
        return counts[-1]
    use(3)
    before = settled()
    check(before[1] <= 8, before)
    use(30)
    eventually(lambda: all(now <= then for now, then in zip(count(), before)),
               f"before {before}, after {count()}")


# ---- beginning and end ----

@suite.test("root gives itself up, and only the launcher keeps it")
def _():
    need_root()
    fields = status(daemon.process.pid)
    check(all(uid != "0" for uid in fields["Uid"].split()), fields["Uid"])
    check(all(gid != "0" for gid in fields["Gid"].split()), fields["Gid"])
    check_equal((fields["Groups"], int(fields["CapPrm"], 16), int(fields["CapEff"], 16),
                 int(fields["CapAmb"], 16), fields["NoNewPrivs"]), ("", 0, 0, 0, "1"), "rights")
    check(fields["Uid"].split()[0] != "65534", "it became nobody")


@suite.test("SIGTERM ends it cleanly, requests that wait included")
def _():
    with FakeDaemon() as own:
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(own.get(f"/pid/{WAITS}/memusage")))
        thread.start()
        eventually(lambda: "fake: scan" in own.log(), "no scan")
        own.stop()
        thread.join()
        check_equal(answers[0].status, 503, "the request that waited")
        check(not own.socket.exists(), "the socket file is left")


@suite.test("a client that never finishes its request does not hold up the end")
def _():
    with FakeDaemon() as own:
        with socket.create_connection(("127.0.0.1", own.port)) as client:
            client.sendall(b"GET /pids HTTP/1.1\r\nHost: local")
            eventually(lambda: len(os.listdir(f"/proc/{own.process.pid}/task")) > 3,
                       "no thread for it")
            own.stop()


@suite.test("a daemon that is killed takes its agent along")
def _():
    with FakeDaemon() as own:
        below = own.descendants()
        check_equal(len(below), 2 if os.getuid() == 0 else 1, "launcher and agent")
        own.process.kill()
        own.process.wait()
        for pid in below:
            eventually(lambda pid=pid: not is_running(pid), f"process {pid} is left")
        if os.getuid() == 0:
            check(not own.socket.exists(), "the launcher removes the socket file")


@suite.test("a socket that a dead daemon left is replaced, a living one's is not")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-http-") as folder:
        path = pathlib.Path(folder, "x.sock")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        with FakeDaemon("", "--socket", path) as first:
            first.socket = path
            check_equal(first.get("/healthz", unix=True).status, 200, "over the socket")
            second = subprocess.run(
                [program("goheapd"), "--listen", "127.0.0.1:0", "--socket", path, "--run-dir",
                 folder, "--agent", program("tests/support/fake_agent")],
                stderr=subprocess.PIPE, check=False, timeout=20)
            check_equal(second.returncode, 1, "a second daemon")
            check(b"another goheapd listens" in second.stderr, second.stderr)
            check_equal(first.get("/healthz", unix=True).status, 200, "still there")


def fails(*arguments):
    done = subprocess.run([program("goheapd"), *map(str, arguments)], stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=False, timeout=20)
    return done.returncode, done.stderr.decode()


@suite.test("what is wrong with the command line or the configuration is said")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-http-") as folder:
        common = ("--run-dir", folder, "--agent", program("tests/support/fake_agent"))
        for arguments, expected, word in (
                (("--nonsense",), 2, "--help"),
                (("--listen", "0.0.0.0:1", *common), 1, "loopback"),
                (("--listen", "192.0.2.1:1", *common), 1, "loopback"),
                (("--listen", "localhost", *common), 1, "no address"),
                (("--config", "/nowhere", *common), 1, "/nowhere")):
            code, message = fails(*arguments)
            check_equal(code, expected, message)
            check(word in message, message)
        config = pathlib.Path(folder, "bad.conf")
        config.write_text("# first\nmax_scans = 3\nmax_scanz = 4\n")
        code, message = fails("--config", config, *common)
        check_equal(code, 1, message)
        check("bad.conf:3: " in message and "max_scanz" in message, message)


@contextlib.contextmanager
def daemon_at(agent_socket, folder):
    """A daemon that uses the agent on that socket; yields a function from path to status code, and
    the daemon's pid."""
    log_path = pathlib.Path(folder, "log")
    with open(log_path, "wb") as log:
        process = subprocess.Popen([program("goheapd"), "--listen", "127.0.0.1:0", "--run-dir",
                                    folder, "--agent-socket", agent_socket], stderr=log)
    try:
        eventually(lambda: "ready version" in log_path.read_text(), "it does not start", 30)
        url = re.search(r"listening on (http://127.0.0.1:\d+)", log_path.read_text()).group(1)

        def code(path):
            return int(subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                       url + path], stdout=subprocess.PIPE, check=True).stdout)
        yield code, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        check_equal(process.wait(20), 0, "exit status")


@suite.test("an agent that runs already is used, and waited for")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-http-") as folder:
        path = pathlib.Path(folder, "agent.sock")
        with daemon_at(path, folder) as (code, _):
            check_equal((code("/healthz"), code("/readyz")), (200, 503), "without agent")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen()
                agent = subprocess.Popen(
                    ["sh", "-c", f'exec "{program("tests/support/fake_agent")}" --socket-fd=0'],
                    stdin=listener.accept()[0])
                eventually(lambda: code("/readyz") == 200, "the agent is not found")
        check_equal(agent.wait(20), 0, "the agent's exit status")


@suite.test("an agent of root's takes the daemon that root has started")
def _():
    need_root()
    with tempfile.TemporaryDirectory(prefix="goheapd-http-") as folder:
        path = pathlib.Path(folder, "agent.sock")
        agent = subprocess.Popen([program("goheap-agent"), "--listen", path, "--cache-dir",
                                  folder], stderr=subprocess.DEVNULL)
        try:
            eventually(path.exists, "no socket of the agent")
            with daemon_at(path, folder) as (code, pid):
                check(status(pid)["Uid"].split()[0] != "0", "still root")
                check_equal((code("/readyz"), code("/pids")), (200, 200), "answers")
        finally:
            agent.terminate()
            check_equal(agent.wait(20), 0, "the agent's exit status")


@suite.test("sockets that systemd passes are served, and no others")
def _():
    with tempfile.TemporaryDirectory(prefix="goheapd-http-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            script = 'LISTEN_PID=$$ LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS; exec "$@"'

            def pass_on():
                os.dup2(listener.fileno(), 3)
            process = subprocess.Popen(
                ["sh", "-c", script, "sh", program("goheapd"), "--run-dir", folder, "--agent",
                 program("tests/support/fake_agent")],
                stderr=subprocess.PIPE, pass_fds=(3,), preexec_fn=pass_on)
        try:
            def answers():
                return subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/healthz"],
                                      stdout=subprocess.PIPE, check=False).stdout == b"ok\n"
            eventually(answers, "no answer", 20)
            check(not pathlib.Path(folder, "goheapd.sock").exists(), "a socket of its own")
        finally:
            process.send_signal(signal.SIGTERM)
            check_equal(process.wait(20), 0, "exit status")
            process.stderr.close()


with FakeDaemon() as daemon:
    suite.run()
