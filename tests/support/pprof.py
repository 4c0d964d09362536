"""Reads what `go tool pprof` reads: profile.proto, gzipped. It shares nothing with what writes it."""

import collections
import gzip
import os
import subprocess
import tempfile

import gobuild
from wire import read_varint

# Fields that are used, by message: number → (name, kind). A list of kinds is a repeated field.
MESSAGES = {
    "Profile": {1: ("sample_type", ["ValueType"]), 2: ("sample", ["Sample"]),
                3: ("mapping", ["Mapping"]), 4: ("location", ["Location"]),
                5: ("function", ["Function"]), 6: ("string_table", ["bytes"]),
                9: ("time_nanos", "int"), 10: ("duration_nanos", "int"),
                11: ("period_type", "ValueType"), 12: ("period", "int"), 13: ("comment", ["int"]),
                14: ("default_sample_type", "int")},
    "ValueType": {1: ("type", "int"), 2: ("unit", "int")},
    "Sample": {1: ("location_id", ["int"]), 2: ("value", ["int"]), 3: ("label", ["Label"])},
    "Label": {1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("num_unit", "int")},
    "Mapping": {1: ("id", "int"), 2: ("memory_start", "int"), 3: ("memory_limit", "int"),
                4: ("file_offset", "int"), 5: ("filename", "int"), 6: ("build_id", "int"),
                7: ("has_functions", "int"), 8: ("has_filenames", "int"),
                9: ("has_line_numbers", "int"), 10: ("has_inline_frames", "int")},
    "Location": {1: ("id", "int"), 2: ("mapping_id", "int"), 3: ("address", "int"),
                 4: ("line", ["Line"])},
    "Line": {1: ("function_id", "int"), 2: ("line", "int"), 3: ("column", "int")},
    "Function": {1: ("id", "int"), 2: ("name", "int"), 3: ("system_name", "int"),
                 4: ("filename", "int"), 5: ("start_line", "int")},
}


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def decode(message, data):
    fields = MESSAGES[message]
    values = {name: [] if isinstance(kind, list) else None if kind in MESSAGES else 0
              for name, kind in fields.values()}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        name, kind = fields[key >> 3]
        inner = kind[0] if isinstance(kind, list) else kind
        if key & 7 == 0:
            value, at = read_varint(data, at)
            found = [signed(value)]
        else:
            assert key & 7 == 2, f"{message}.{name} has wire type {key & 7}"
            size, at = read_varint(data, at)
            assert at + size <= len(data), f"{message}.{name} is cut off"
            found, at = read_bytes(inner, data[at:at + size]), at + size
        if isinstance(kind, list):
            values[name] += found
        else:
            values[name] = found[-1]
    return values


def read_bytes(kind, data):
    if kind in MESSAGES:
        return [decode(kind, data)]
    if kind == "bytes":
        return [data]
    values, at = [], 0  # packed
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(signed(value))
    return values


Sample = collections.namedtuple("Sample", "frames values labels numbers")


class Profile:
    """
    What a profile says: samples are (frames, values, labels, numbers), where frames begin with the
    root and values are by sample type.
    """

    def __init__(self, packed):
        data = gzip.decompress(packed)
        self.size = len(data)
        self.raw = decode("Profile", data)
        self.strings = [text.decode() for text in self.raw["string_table"]]
        assert self.strings[0] == "", "the first string must be empty"
        self.functions = {each["id"]: each for each in self.raw["function"]}
        self.locations = {each["id"]: each for each in self.raw["location"]}
        self.types = [(self.strings[each["type"]], self.strings[each["unit"]])
                      for each in self.raw["sample_type"]]
        self.comments = [self.strings[each] for each in self.raw["comment"]]
        self.samples = [self.sample(each) for each in self.raw["sample"]]

    def frames_of(self, location):
        """Inlined ones come first in a location."""
        return [self.strings[self.functions[line["function_id"]]["name"]]
                for line in self.locations[location]["line"]]

    def sample(self, raw):
        frames = [name for location in raw["location_id"] for name in self.frames_of(location)]
        labels, numbers = {}, {}
        for label in raw["label"]:
            key = self.strings[label["key"]]
            if label["str"]:
                labels.setdefault(key, []).append(self.strings[label["str"]])
            else:
                numbers.setdefault(key, []).append(label["num"])
        names = [name for name, _ in self.types]
        assert len(raw["value"]) == len(names), "values and sample types differ in number"
        return Sample(tuple(reversed(frames)), dict(zip(names, raw["value"])), labels, numbers)

    def total(self, name):
        return sum(sample.values[name] for sample in self.samples)

    def by_chain(self, name):
        """{frames: value}, whatever their labels."""
        sums = collections.Counter()
        for sample in self.samples:
            sums[sample.frames] += sample.values[name]
        return sums


def go_tool(packed, *arguments, base=None, version="1.27"):
    """What `go tool pprof` prints of a profile."""
    tool = gobuild.build_command("pprof", version)
    with tempfile.TemporaryDirectory(prefix="goheapd-pprof-") as folder:
        def written(name, content):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            return path
        options = [f"-diff_base={written('base.pb.gz', base)}"] if base else []
        done = subprocess.run(
            [tool, *options, *arguments, written("profile.pb.gz", packed)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "HOME": folder, "PPROF_TMPDIR": folder}, check=False)
        assert done.returncode == 0, f"pprof {arguments}: {done.stderr}"
        return done.stdout
