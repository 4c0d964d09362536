"""The tool that reads the heap of a process with the code under test, and answers questions."""

import contextlib
import json
import subprocess

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


@contextlib.contextmanager
def heap_facts(pid):
    facts = HeapFacts(pid)
    try:
        yield facts
    finally:
        facts.close()
