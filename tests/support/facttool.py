"""A tool that reads a process with the code under test and answers questions, a line each."""

import contextlib
import json
import subprocess

import harness
from tap import check


class FactTool:
    def __init__(self, name, *arguments):
        self.name = name
        self.process = subprocess.Popen(
            [harness.program(f"tests/support/{name}"), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line, f"{self.name} ended")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextlib.contextmanager
def fact_tool(name, *arguments):
    tool = FactTool(name, *arguments)
    try:
        yield tool
    finally:
        tool.close()
