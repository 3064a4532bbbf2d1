"""The crate's arithmetic as formulas over bit vectors of 64 bits.

Each function is written once. z3 proves its properties for all inputs, and evaluates it on the
inputs for which the crate's unit tests print what its own code computes (`tests/support/vectors.rs`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import z3

BITS = 64
MAX = (1 << BITS) - 1
Word = Any
"""A bit vector of z3."""


def word(value: int) -> Word:
    return z3.BitVecVal(value, BITS)


def shl(value: Word, by: Word | int) -> Word:
    return value << by


def shr(value: Word, by: Word | int) -> Word:
    return z3.LShR(value, by)


def ilog2(value: Word) -> Word:
    """The highest bit that is set; 0 if there is none (`checked_ilog2().unwrap_or(0)`)."""
    found = word(0)
    for bit in range(1, BITS):
        found = z3.If(z3.Extract(bit, bit, value) == 1, word(bit), found)
    return found


class Geometry(NamedTuple):
    """`Geometry` in `src/shard/wheel/geometry.rs`: wheels of `2^bits` buckets."""

    bits: int

    @property
    def levels(self) -> int:
        return -(-BITS // self.bits)

    @property
    def reciprocal(self) -> int:
        return -(-(1 << 16) // self.bits)

    @property
    def size(self) -> int:
        return 1 << self.bits

    def number(self, level: Word, tick: Word) -> Word:
        """`slot`: the number of the bucket of a level that contains a tick."""
        return shr(tick, level * self.bits)

    def place(self, start: Word, deadline: Word, log: Word | None = None) -> tuple[Word, Word]:
        """`place`: the level and the number of a timer's slot. A proof by cases gives the logarithm."""
        digits = shr((ilog2(deadline - start) if log is None else log) * self.reciprocal, 16)
        ahead = self.number(digits, deadline) - self.number(digits, start)
        level = z3.If(z3.ULT(ahead, self.size), digits, digits + 1)
        return level, self.number(level, deadline)

    def expiration(self, level: Word, number: Word) -> Word:
        return shl(number, level * self.bits)

    def index(self, number: Word) -> Word:
        return number & (self.size - 1)

    def round(self, number: Word) -> Word:
        return shr(number, self.bits) & ((1 << 32) - 1)

    def end_of_window(self, tick: Word) -> Word:
        return tick | (min(4, self.size // 2) - 1)

    def first_from(self, level: int, tick: Word) -> tuple[Word, Word]:
        """`first_from`: whether there is a slot that starts at or after the tick, and its number."""
        number = self.number(word(level), tick)
        starts = self.expiration(word(level), number) == tick
        following = number + 1
        exists = z3.ULE(following, MAX >> (level * self.bits))
        return z3.Or(starts, z3.And(exists, following != 0)), z3.If(starts, number, following)


def divide(n: Word, divisor: Word, multiplier: Word) -> Word:
    """`Divisor::divide`, with the multiplier that `Divisor::new` computes."""
    wide = z3.ZeroExt(BITS, n) * z3.ZeroExt(BITS, multiplier)
    return correct(n, divisor, z3.Extract(2 * BITS - 1, BITS, wide))


def correct(n: Word, divisor: Word, estimate: Word) -> Word:
    """The quotient, from an estimate that is exact or one less."""
    return estimate + z3.If(z3.UGE(n - estimate * divisor, divisor), word(1), word(0))


def divide_up(n: Word, divisor: Word, down: Word) -> Word:
    """`Divisor::divide_up`, from the result of `divide`."""
    return down + z3.If(z3.ULT(down * divisor, n), word(1), word(0))


def roundest(first: Word, last: Word, log: Word | None = None) -> Word:
    """`roundest` in `src/timer/window.rs`."""
    highest = ilog2((first - 1) ^ last) if log is None else log
    return z3.If(first == 0, word(0), shl(shr(last, highest), highest))


PARTS_LOG = 4
PARTS = 1 << PARTS_LOG


def bucket_of(value: Word, log: Word | None = None) -> Word:
    """`bucket_of` in `src/timer/stats.rs`."""
    log = ilog2(value | 1) if log is None else log
    shift = z3.If(z3.UGE(log, PARTS_LOG), log - PARTS_LOG, word(0))
    return shift * PARTS + shr(value, shift)


def values_of(bucket: Word) -> tuple[Word, Word]:
    """`values_of` in `src/timer/stats.rs`."""
    group = shr(bucket, PARTS_LOG)
    shift = z3.If(z3.UGE(group, 1), group - 1, word(0))
    first = shl(bucket - shift * PARTS, shift)
    return first, first + (shl(word(1), shift) - 1)


STATUS_MASK, DISPLACED, EXTENSION_SHIFT, VERSION_SHIFT = 7, 8, 4, 32
MAX_EXTENSION = (1 << 28) - 1


class NodeWord(NamedTuple):
    """`Word` in `src/shard/node/state.rs`."""

    raw: Word

    def status(self) -> Word:
        return self.raw & STATUS_MASK

    def version(self) -> Word:
        return shr(self.raw, VERSION_SHIFT)

    def extension(self) -> Word:
        return shr(self.raw & 0xFFFF_FFFF, EXTENSION_SHIFT)

    def is_displaced(self) -> Word:
        return self.raw & DISPLACED

    def with_status(self, status: Word) -> NodeWord:
        return NodeWord(self.raw & ~word(STATUS_MASK) | status)

    def displaced(self) -> NodeWord:
        return NodeWord(self.raw | DISPLACED)

    def with_extension(self, extension: Word) -> NodeWord:
        rest = self.raw & ~word(MAX_EXTENSION << EXTENSION_SHIFT)
        return NodeWord(rest | shl(extension, EXTENSION_SHIFT))

    def next_version(self, status: Word) -> NodeWord:
        return NodeWord(shl(self.version() + 1, VERSION_SHIFT) | status)

    def next_version_in_place(self, extension: Word) -> NodeWord:
        return NodeWord(self.next_version(word(1)).with_extension(extension).raw | self.raw & DISPLACED)

    def rearmed(self) -> NodeWord:
        return NodeWord(shl(self.version(), VERSION_SHIFT) | 1)


MARK = 1 << 63


def key_place(shard: Word, node: Word) -> Word:
    """`Key::new` in `src/shard/key.rs`: the shard's number is stored above the node."""
    return shl(shard, 32) | node


def is_of(place: Word, shard: Word) -> Word:
    return shr(place ^ shl(shard, 32), 32) == 0


def shards_after(place: Word, first: Word) -> Word:
    return shr((place - shl(first, 32)) & ~word(MARK), 32)


WINDOW_NANOS, FRACTION, MARGIN = 64_000, 32, 1_000


def clock_rate(measured: Word) -> Word:
    """`CycleCounter::calibrate` in `src/clock/fast.rs`: a quarter more than was measured."""
    return measured + shr(measured + 3, 2)


def clock_advance(steps: Word, rate: Word) -> Word:
    return shr(steps * rate, FRACTION)
