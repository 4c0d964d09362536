"""Damages the runtime of a process that stands still, so that it can be scanned and then made well
again: every byte that was overwritten is put back."""

import collections
import contextlib
import random
import struct
import subprocess

import harness
from tap import check, check_equal

Place = collections.namedtuple("Place", "kind address size")

HUGE = [2 ** 64 - 1, 2 ** 63, 2 ** 63 - 1, 2 ** 47, 2 ** 47 - 8, 2 ** 32, 2 ** 32 - 1, 2 ** 31,
        2 ** 31 - 1, 2 ** 24, 2 ** 16 - 1]
WORDS_MAX = 64  # that one damage overwrites
NEAR = 4096  # most structures keep what matters at their beginning


def places_of(pid):
    """Where the structures are that a scan reads, by kind."""
    done = subprocess.run([harness.program("tests/support/runtime_places"), str(pid)],
                          stdout=subprocess.PIPE, check=False)
    check_equal(done.returncode, 0, "exit status of runtime_places")
    found = {}
    for line in done.stdout.decode().splitlines():
        kind, address, size = line.split()
        found.setdefault(kind, []).append(Place(kind, int(address), int(size)))
    return found


class Damage:
    """One seed's damage to a stopped process, over an open /proc/PID/mem."""

    def __init__(self, memory, places, seed):
        self.memory, self.places, self.seed = memory, places, seed
        self.random = random.Random(seed)
        self.undo, self.story = [], []
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 5])):
            self.add()

    def add(self):
        kind = self.random.choice(sorted(self.places))
        place = self.random.choice(self.places[kind])
        how = self.random.choice(self.WAYS)
        with contextlib.suppress(OSError):  # nothing is mapped there
            how(self, place)
            self.story.append(f"{kind} {place.address:#x}+{place.size}: {how.__name__}")

    # ---- reading and writing ----

    def read(self, address, size):
        self.memory.seek(address)
        return self.memory.read(size)

    def write(self, address, data):
        before = self.read(address, len(data))
        self.memory.seek(address)
        self.memory.write(data)
        self.undo.append((address, before))

    def repair(self):
        for address, before in reversed(self.undo):
            self.memory.seek(address)
            self.memory.write(before)
        self.undo = []

    def word_in(self, place):
        """The address of one of its words, most likely one at the beginning of a large place."""
        size = place.size
        if size > NEAR and self.random.random() < 0.5:
            size = NEAR
        return place.address + self.random.randrange((size + 7) // 8) * 8

    def words_in(self, place):
        count = self.random.choice([1, 1, 1, 2, 4, 16])
        return [self.word_in(place) for _ in range(count)]

    def write_word(self, address, value):
        self.write(address, struct.pack("<Q", value % 2 ** 64))

    def any_place(self, kind=None):
        kind = kind or self.random.choice(sorted(self.places))
        return self.random.choice(self.places[kind])

    # ---- the ways ----

    def random_words(self, place):
        for address in self.words_in(place):
            self.write_word(address, self.random.getrandbits(64))

    def small_numbers(self, place):
        for address in self.words_in(place):
            self.write_word(address, self.random.randrange(1 << self.random.choice([1, 4, 8, 20])))

    def huge_numbers(self, place):
        for address in self.words_in(place):
            self.write_word(address, self.random.choice(HUGE) + self.random.choice([-1, 0, 0, 1]))

    def huge_halves(self, place):
        for address in self.words_in(place):
            self.write(address + self.random.choice([0, 4]),
                       struct.pack("<I", self.random.choice(HUGE) % 2 ** 32))

    def flipped_bits(self, place):
        for address in self.words_in(place):
            word, = struct.unpack("<Q", self.read(address, 8))
            self.write_word(address, word ^ 1 << self.random.randrange(64))

    def off_by_little(self, place):
        for address in self.words_in(place):
            word, = struct.unpack("<Q", self.read(address, 8))
            self.write_word(address, word + self.random.choice([-8, -1, 1, 2, 8, 64, 4096]))

    def pointers_elsewhere(self, place):
        for address in self.words_in(place):
            self.write_word(address, self.word_in(self.any_place()))

    def pointers_to_kin(self, place):
        """Makes lists that run in circles and structures that are there twice."""
        for address in self.words_in(place):
            self.write_word(address, self.any_place(place.kind).address)

    def pointers_to_itself(self, place):
        for address in self.words_in(place):
            self.write_word(address, place.address)

    def zeros(self, place):
        start = self.word_in(place)
        size = min(self.random.choice([8, 16, 64, 512]), place.address + place.size - start)
        self.write(start, bytes(size))

    def noise(self, place):
        start = self.word_in(place)
        size = min(self.random.randrange(1, WORDS_MAX) * 8, place.address + place.size - start)
        self.write(start, self.random.randbytes(size))

    def overlaid(self, place):
        """Another of its kind, or anything, laid over it."""
        other = self.any_place(self.random.choice([place.kind, None]))
        size = min(place.size, other.size, WORDS_MAX * 8)
        self.write(place.address, self.read(other.address, size))

    WAYS = [random_words, small_numbers, huge_numbers, huge_halves, flipped_bits, off_by_little,
            pointers_elsewhere, pointers_to_kin, pointers_to_itself, zeros, noise, overlaid]


@contextlib.contextmanager
def damaged(memory, places, seed):
    damage = Damage(memory, places, seed)
    try:
        yield damage
    finally:
        damage.repair()


def open_memory(pid):
    return open(f"/proc/{pid}/mem", "r+b", buffering=0)
