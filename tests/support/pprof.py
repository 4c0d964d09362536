"""Reads profiles as the format's own readers do, straight from the bytes on the wire: it shares
nothing with what writes them."""

import gzip
import re

from tap import check, check_equal

# What Pyroscope takes.
MAX_BYTES, MAX_SAMPLES, MAX_LABELS = 4 << 20, 16000, 100
LEGAL_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            check(shift <= 70, "a number of more than ten bytes")
            return value, at


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields_of(data):
    """The fields of a message: lists by number, of numbers and of bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            check_equal(key & 7, 2, "wire type")
            size, at = read_varint(data, at)
            value = data[at:at + size]
            check_equal(len(value), size, "bytes of a field")
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def number(fields, field):
    return signed(fields.get(field, [0])[-1])


def numbers(fields, field):
    """Packed or one by one."""
    found = []
    for item in fields.get(field, []):
        if isinstance(item, int):
            found.append(signed(item))
            continue
        at = 0
        while at < len(item):
            value, at = read_varint(item, at)
            found.append(signed(value))
    return found


class Sample:
    def __init__(self, profile, fields):
        self.values = numbers(fields, 2)
        self.chain = [profile.frames[place] for place in reversed(numbers(fields, 1))]
        self.names = [name for name, _, _ in self.chain]
        self.labels, self.numbers = {}, {}
        for label in map(fields_of, fields.get(3, [])):
            key = profile.text(label, 1)
            if number(label, 2):
                self.labels.setdefault(key, []).append(profile.text(label, 2))
            else:
                self.numbers[key] = (number(label, 3), profile.text(label, 4))


class Profile:
    """Decoded, and held to the rules of the format."""

    def __init__(self, body):
        self.plain = gzip.decompress(body)
        top = fields_of(self.plain)
        check(set(top) <= set(range(1, 15)), f"fields {set(top)}")
        self.strings = [item.decode() for item in top[6]]
        check_equal(self.strings[0], "", "the first text")
        self.types = [(self.text(t, 1), self.text(t, 2)) for t in map(fields_of, top[1])]
        self.period_type = next((self.text(t, 1), self.text(t, 2))
                                for t in map(fields_of, top[11]))
        self.period, self.default_type = number(top, 12), self.strings[number(top, 14)]
        self.time, self.duration = number(top, 9), number(top, 10)
        self.comments = [self.strings[place] for place in numbers(top, 13)]
        self.mappings = [fields_of(item) for item in top[3]]
        self.mapping_file, self.build_id = (self.text(self.mappings[0], field) for field in (5, 6))
        functions = self.by_id(top.get(5, []))
        self.frames = {place: self.frame(location, functions)
                       for place, location in self.by_id(top.get(4, [])).items()}
        self.samples = [Sample(self, fields_of(item)) for item in top.get(2, [])]
        self.check_rules(top)

    def text(self, fields, field):
        return self.strings[number(fields, field)]

    @staticmethod
    def by_id(items):
        found = {number(item, 1): item for item in map(fields_of, items)}
        check_equal(len(found), len(items), "different ids")
        check(0 not in found, "an id is 0")
        return found

    def frame(self, location, functions):
        check_equal(number(location, 2), number(self.mappings[0], 1), "mapping of a location")
        lines = [fields_of(item) for item in location[4]]
        check_equal(len(lines), 1, "lines of a location")
        function = functions[number(lines[0], 1)]
        return self.text(function, 2), self.text(function, 4), number(lines[0], 2)

    def check_rules(self, top):
        check_equal(set(top) & {7, 8}, set(), "frames that viewers drop")
        for flag in 7, 8, 9, 10:
            check_equal(number(self.mappings[0], flag), 1, f"flag {flag} of the mapping")
        for sample in self.samples:
            check_equal(len(sample.values), len(self.types), "values of a sample")
            check(sample.chain, "a sample without a chain")

    def check_limits(self, samples=MAX_SAMPLES):
        check(len(self.plain) <= MAX_BYTES, f"{len(self.plain)} bytes")
        check(len(self.samples) <= samples, f"{len(self.samples)} samples")
        for sample in self.samples:
            check(len(sample.labels) + len(sample.numbers) <= MAX_LABELS, "labels")
            check(len(sample.chain) <= 1025, "frames")
            for key in [*sample.labels, *sample.numbers]:
                check(LEGAL_KEY.fullmatch(key), f"key {key!r}")
        check(all(len(text.encode()) <= 65535 for text in self.strings), "a long text")

    def totals(self):
        return [sum(sample.values[i] for sample in self.samples)
                for i in range(len(self.types))]

    def values_of(self, *names):
        """Of the samples with exactly this chain, added up."""
        found = [sample.values for sample in self.samples if sample.names == list(names)]
        check(found, f"no chain {names}")
        return [sum(values) for values in zip(*found)]
