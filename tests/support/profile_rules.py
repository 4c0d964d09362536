"""Profiles held to the rules of their format, and to what Pyroscope takes."""

import re

from pprof import Profile
from tap import check, check_equal

MAX_BYTES, MAX_SAMPLES, MAX_LABELS, MAX_DEPTH = 4 << 20, 16000, 100, 1025
MAX_TEXT_BYTES = 65535
LEGAL_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class CheckedProfile(Profile):
    def __init__(self, packed):
        super().__init__(packed)
        raw = self.raw
        self.default_type = self.strings[raw["default_sample_type"]]
        self.period = raw["period"]
        self.period_type = tuple(self.strings[raw["period_type"][part]]
                                 for part in ("type", "unit"))
        self.time, self.duration = raw["time_nanos"], raw["duration_nanos"]
        self.mapping = raw["mapping"][0]
        self.mapping_file = self.strings[self.mapping["filename"]]
        self.build_id = self.strings[self.mapping["build_id"]]
        self.check_rules()

    def check_rules(self):
        for ids, list_name in ((self.functions, "function"), (self.locations, "location")):
            check_equal(len(ids), len(self.raw[list_name]), f"different ids of {list_name}s")
            check(0 not in ids, f"a {list_name} has the id 0")
        for flag in "functions", "filenames", "line_numbers", "inline_frames":
            check_equal(self.mapping[f"has_{flag}"], 1, flag)
        for location in self.raw["location"]:
            check_equal(location["mapping_id"], self.mapping["id"], "mapping of a location")
            check_equal(len(location["line"]), 1, "lines of a location")
        for function in self.raw["function"]:
            # go tool pprof would take names apart that look like those of C++
            check_equal(function["system_name"], 0, "system name")
        check(all(sample.frames for sample in self.samples), "a sample without a chain")

    def check_limits(self, samples=MAX_SAMPLES):
        check(self.size <= MAX_BYTES, f"{self.size} bytes")
        check(len(self.samples) <= samples, f"{len(self.samples)} samples")
        for sample in self.samples:
            check(len(sample.labels) + len(sample.numbers) <= MAX_LABELS, "labels")
            check(len(sample.frames) <= MAX_DEPTH, "frames")
            for key in [*sample.labels, *sample.numbers]:
                check(LEGAL_KEY.fullmatch(key), f"key {key!r}")
        check(all(len(text.encode()) <= MAX_TEXT_BYTES for text in self.strings), "a long text")

    def totals(self):
        """In the order of the sample types."""
        return [self.total(name) for name, _ in self.types]

    def values_of(self, *frames):
        """The same of the samples with exactly this chain."""
        check(any(sample.frames == frames for sample in self.samples), f"no chain {frames}")
        return [self.by_chain(name)[frames] for name, _ in self.types]

    def place_of(self, frame):
        """File and line."""
        for location in self.raw["location"]:
            line = location["line"][0]
            function = self.functions[line["function_id"]]
            if self.strings[function["name"]] == frame:
                return self.strings[function["filename"]], line["line"]
        raise AssertionError(f"no frame {frame!r}")

    def units(self):
        """Of the numeric labels, by key."""
        return {self.strings[label["key"]]: self.strings[label["num_unit"]]
                for sample in self.raw["sample"] for label in sample["label"] if not label["str"]}
