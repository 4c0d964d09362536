"""An agent of a test's own, with one session open to it: for what the wire says and HTTP does not."""

import contextlib
import pathlib
import subprocess
import tempfile

import harness
import procfs
from wire import Client


class Agent:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="goheapd-agent-")
        root = pathlib.Path(self.folder.name)
        self.path = root / "socket"
        (root / "config").write_text("min_stop_interval = 0\n")
        with open(root / "log", "wb") as log:
            self.process = subprocess.Popen(
                [harness.program("goheap-agent"), "--listen", self.path, "--config",
                 root / "config", "--cache-dir", root / "cache"],
                stdin=subprocess.DEVNULL, stderr=log)
        try:
            self.client = procfs.eventually(self.first_session, "the agent does not listen", 20)
        except BaseException:
            self.process.kill()
            raise

    def first_session(self):
        with contextlib.suppress(OSError):
            client = Client.connect(self.path)
            client.hello()
            return client
        return None

    def ask_scan(self, pid, mode="MODE_FORK", depth="DEPTH_FULL", **wanted):
        """The answer to a scan, whichever it is."""
        return self.client.ask("scan", pid=pid, start_ticks=procfs.start_ticks(pid), mode=mode,
                               depth=depth, max_pause_us=5000000, timeout_ms=60000, caller_uid=0,
                               path=b"/test", **wanted)

    def scan(self, pid, **parameters):
        answer = self.ask_scan(pid, **parameters)
        assert "scan" in answer, answer
        return answer["scan"]

    def close(self):
        self.client.close()
        self.process.terminate()
        self.process.wait(20)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
