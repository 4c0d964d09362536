"""Starts what an integration test needs: fixtures, the daemon, a client to it."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import gobuild
import procfs
from tap import Skip, check, check_equal, note

STRESS = os.environ.get("GOHEAPD_STRESS") == "1"


def repeat_count(usual, stress):
    """How often to repeat what only repetition shows: fewer in `make check` than in `make stress`."""
    return stress if STRESS else usual


def top_builddir():
    return gobuild.build_root()


def program(name):
    path = top_builddir() / name
    check(os.access(path, os.X_OK), f"{path} is not built")
    return path


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def build_fixture(*arguments, **keywords):
    """gobuild.build, where a missing toolchain is a skipped test."""
    try:
        return gobuild.build(*arguments, **keywords)
    except gobuild.ToolchainMissing as error:
        raise Skip(str(error)) from error


class Fixture:
    """A running fixture: prints one JSON line when it is ready, then obeys lines on its stdin."""

    def __init__(self, command, wrapper=(), env=None, ready=True):
        self.process = subprocess.Popen(
            [*map(str, wrapper), *map(str, command)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        try:
            self.hello = self.read_line() if ready else None
            if wrapper:
                self.pid = self.innermost_child()
        except BaseException:
            self.close()
            raise

    def read_line(self):
        line = self.process.stdout.readline()
        check(line, f"the fixture ended: {self.process.poll()}")
        return json.loads(line)

    def innermost_child(self):
        """The fixture itself, below wrappers such as unshare, by its pid in our namespace."""
        pid = self.process.pid
        while True:
            below = procfs.children(pid)
            if len(below) != 1:
                return pid
            pid = below.pop()

    def command(self, text):
        """Sends one command and returns the JSON line that answers it."""
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return self.read_line()

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # a fixture ends with its input
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in {self.pid, self.process.pid}:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Answer:
    """One HTTP answer, read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode()

    def error_code(self):
        return self.json()["error"]["code"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    """goheapd with folders of its own, and an agent that it starts itself unless a socket is given."""

    def __init__(self, *arguments, agent_socket=None):
        self.folder = tempfile.TemporaryDirectory(prefix="goheapd-test-")
        root = pathlib.Path(self.folder.name)
        root.chmod(0o755)  # the daemon gives up root
        self.run_dir, self.cache_dir, self.state_dir = root / "run", root / "cache", root / "state"
        self.socket, self.log_path = self.run_dir / "goheapd.sock", root / "log"
        self.port = free_port()
        self.arguments = [
            program("goheapd"), "--listen", f"127.0.0.1:{self.port}", "--socket", self.socket,
            "--run-dir", self.run_dir, "--cache-dir", self.cache_dir,
            "--state-dir", self.state_dir]
        self.arguments += (["--agent-socket", agent_socket] if agent_socket
                           else ["--agent", program("goheap-agent")])
        self.arguments += arguments  # last: a test may name an agent of its own
        self.process = None
        self.start()

    def start(self):
        for folder in (self.run_dir, self.cache_dir, self.state_dir):
            folder.mkdir(exist_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(list(map(str, self.arguments)), stderr=log,
                                            stdin=subprocess.DEVNULL)
        try:
            procfs.eventually(self.is_ready, "the daemon does not get ready", 20)
        except BaseException:
            self.show_log()
            self.close()
            raise

    def is_ready(self):
        check(self.process.poll() is None, f"the daemon ended: {self.process.poll()}")
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False

    def connection(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, headers=None, unix=False):
        connection = UnixConnection(self.socket, 120) if unix else self.connection()
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            return Answer(connection.getresponse())

    def get(self, path, **keywords):
        return self.request("GET", path, **keywords)

    def scan(self, pid, endpoint="memusage", **parameters):
        """The JSON of a scan that must succeed. Waits out the minimal time between two stops."""
        query = "&".join(f"{key}={value}" for key, value in
                         {"max_pause": 10, **parameters}.items())
        answer = self.get(f"/pid/{pid}/{endpoint}?format=json&{query}")
        check_equal(answer.status, 200, f"answer {answer.body[:500]!r} has the status")
        return answer.json()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def show_log(self):
        note("log of the daemon:")
        note("\n".join(self.log().splitlines()[-40:]))

    def descendants(self):
        """Every process below the daemon, agent, keepers and decoders included."""
        found, todo = [], [self.process.pid]
        while todo:
            with contextlib.suppress(OSError):
                below = sorted(procfs.children(todo.pop()))
                found += below
                todo += below
        return found

    def stop(self):
        """Ends it as systemd would; it must go cleanly and take its agent along."""
        below = self.descendants()
        self.process.send_signal(signal.SIGTERM)
        check_equal(self.process.wait(20), 0, "exit status of the daemon")
        for pid in below:
            procfs.eventually(lambda pid=pid: not procfs.is_running(pid),
                              f"process {pid} outlived the daemon")

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind and getattr(error, "code", 1) != 0:  # sys.exit(0) is not a failure
            self.show_log()
        self.close()


def find_node(tree, identifier):
    """The node of that id in a memory tree; an error if it is not there."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if node["id"] == identifier:
            return node
        todo += node.get("children") or []
    raise AssertionError(f"the tree has no node {identifier}")


def check_sums(node):
    """A node with children is exactly their sum, in both figures, and nothing is negative."""
    for figure in ("bytes", "resident_bytes"):
        check(node[figure] >= 0, f"{figure} of {node['id']} is {node[figure]}")
        if node.get("children"):
            check_equal(sum(child[figure] for child in node["children"]), node[figure],
                        f"sum of the children's {figure} of {node['id']}")
    for child in node.get("children") or []:
        check_sums(child)


def processes_of(executable):
    """Every process that runs this file; a snapshot that was left behind would be among them."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.path.samefile(f"/proc/{name}/exe", executable):
                    found.add(int(name))
    return found
