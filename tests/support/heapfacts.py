"""The tool that reads the heap of a process with the code under test, and answers questions."""

import contextlib
import json
import os
import signal
import subprocess
import time

import harness
from tap import check


class HeapFacts:
    """tests/support/heap_facts, running; totals is what it says first."""

    def __init__(self, pid):
        self.process = subprocess.Popen([harness.program("tests/support/heap_facts"), str(pid)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.totals = self.read_line()

    def read_line(self):
        line = self.process.stdout.readline()
        check(line, "heap_facts ended")
        return json.loads(line)

    def ask(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return self.read_line()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def wait_stopped(pid):
    """Until all of a process that was sent SIGSTOP stands still."""
    while True:
        states = set()
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as file:
                states.add(file.read().rpartition(")")[2].split()[0])
        if states == {"T"}:
            return
        time.sleep(0.0005)


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_stopped(pid)


def resume(pid):
    os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def heap_facts(pid):
    facts = HeapFacts(pid)
    try:
        yield facts
    finally:
        facts.close()
