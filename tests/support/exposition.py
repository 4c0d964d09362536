"""Reads metrics as strictly as the formats are written: Prometheus's text 0.0.4 and OpenMetrics 1.0.0.

    samples = exposition.parse(text, open_metrics=False)   # {(name, labels): value}

labels is a frozenset of pairs. What a scraper would refuse, or read otherwise than it was meant, is an
AssertionError.
"""

import re

from tap import check, check_equal

NAME = re.compile(r"goheapd_[a-z0-9_]+")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(r"(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)(?:\{(?P<labels>.+)\})? (?P<value>[0-9]+(?:\.[0-9]+)?)")
# No quote, which OpenMetrics would have escaped.
HELP = re.compile(r'[^"\\\n]+\.')
UNITS = ("bytes", "seconds")
ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def unescape(value):
    return re.sub(r'\\["\\n]', lambda match: ESCAPES[match.group()], value)


def parse_labels(text):
    """The pairs, in any order; a name that comes twice is an error."""
    found, position = {}, 0
    while True:
        match = LABEL.match(text, position)
        check(match, f"labels {text[position:]!r}")
        check(match.group(1) not in found, f"label {match.group(1)} twice in {text!r}")
        check(not match.group(1).startswith("__"), match.group(1))
        found[match.group(1)] = unescape(match.group(2))
        position = match.end()
        if position == len(text):
            return frozenset(found.items())
        check_equal(text[position], ",", f"behind a label of {text!r}")
        position += 1


class Parser:
    def __init__(self, open_metrics):
        self.open_metrics = open_metrics
        self.families = {}  # name: type
        self.samples = {}
        self.family = None
        self.heading = []

    def comment(self, line):
        word, name, rest = line.removeprefix("# ").split(" ", 2)
        check(NAME.fullmatch(name), line)
        if name != self.family:
            check(name not in self.families, f"{name} comes a second time")
            self.end_family()
            self.family, self.heading = name, []
            self.families[name] = None
        check(word not in self.heading, line)
        self.heading.append(word)
        if word == "TYPE":
            check(rest in ("gauge", "info" if self.open_metrics else "gauge"), line)
            self.families[name] = rest
        elif word == "UNIT":
            check(rest in UNITS and name.endswith(f"_{rest}"), line)
        else:
            check_equal(word, "HELP", line)
            check(HELP.fullmatch(rest), line)

    def end_family(self):
        if self.family is None:
            return
        check(any(self.owns(name) for name, _ in self.samples), f"{self.family} has no sample")

    def owns(self, name):
        suffix = "_info" if self.families.get(self.family) == "info" else ""
        return name == self.family + suffix

    def check_heading(self):
        if not self.open_metrics:
            check_equal(self.heading, ["HELP", "TYPE"], self.family)
        elif self.family.endswith(tuple(f"_{unit}" for unit in UNITS)):
            check_equal(self.heading, ["TYPE", "UNIT", "HELP"], self.family)
        else:
            check_equal(self.heading, ["TYPE", "HELP"], self.family)

    def sample(self, line):
        match = SAMPLE.fullmatch(line)
        check(match, f"sample {line!r}")
        name = match.group("name")
        check(self.family and self.owns(name), f"{name} stands under {self.family}")
        self.check_heading()
        check(not name.endswith(("_total", "_sum", "_count", "_bucket")), name)
        labels = parse_labels(match.group("labels")) if match.group("labels") else frozenset()
        given = frozenset((key, value) for key, value in labels if value)  # empty is none
        check((name, given) not in self.samples, f"{line!r} is there twice")
        value = match.group("value")
        self.samples[name, given] = float(value) if "." in value else int(value)


def parse(text, open_metrics):
    parser = Parser(open_metrics)
    check(text.endswith("\n"), "the last line is not ended")
    lines = text.removesuffix("\n").split("\n")
    if open_metrics:
        check_equal(lines.pop(), "# EOF", "the last line")
    for line in lines:
        check(line and line == line.strip(), f"line {line!r}")
        if line.startswith("#"):
            parser.comment(line)
        else:
            parser.sample(line)
    parser.end_family()
    return parser.samples
