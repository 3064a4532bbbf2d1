"""The crate's arithmetic as formulas over bit vectors of 64 bits.

Each function is written once. z3 proves its properties for all inputs, and evaluates it on the
inputs for which the crate's unit tests print what its own code computes (`tests/support/vectors.rs`).
"""

from __future__ import annotations

from collections.abc import Callable
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


def least(one: Word, other: Word) -> Word:
    return z3.If(z3.ULT(one, other), one, other)


def greatest(one: Word, other: Word) -> Word:
    return z3.If(z3.UGT(one, other), one, other)


def add(one: Word, other: Word) -> Word:
    """`saturating_add`."""
    return z3.If(z3.UGT(one, MAX - other), word(MAX), one + other)


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
        digits = self.digits(start, deadline, log)
        level = z3.If(self.is_near(digits, start, deadline, self.size), digits, digits + 1)
        return level, self.number(level, deadline)

    def digits(self, start: Word, deadline: Word, log: Word | None = None) -> Word:
        return z3.simplify(shr((ilog2(deadline - start) if log is None else log) * self.reciprocal, 16))

    def is_near(self, level: Word, start: Word, deadline: Word, size: int) -> z3.BoolRef:
        """Whether a level's wheel of a size reaches the deadline."""
        return z3.ULT(self.number(level, deadline) - self.number(level, start), size)

    @property
    def private_size(self) -> int:
        return 2 << self.bits

    def place_private(self, start: Word, deadline: Word, log: Word | None = None) -> tuple[Word, Word]:
        """`place_private`: the slot in the private wheels, which have twice as many buckets."""

        def lower(level: Word) -> Word:
            is_near = self.is_near(level - 1, start, deadline, self.private_size)
            return z3.If(z3.And(level != 0, is_near), level - 1, level)

        digits = self.digits(start, deadline, log)
        is_near = self.is_near(digits, start, deadline, self.size)
        found = z3.If(is_near, lower(digits), lower(digits + 1))
        found = z3.If(z3.ULT(deadline - start, self.private_size), word(0), found)
        return found, self.number(found, deadline)

    def cascades(self, start: Word, deadline: Word) -> Word:
        """`cascades`, without its loop: the digits of the deadline below its level that are not 0."""
        level, _ = self.place(least(start, deadline), deadline)
        moves = word(0)
        for at in range(self.levels):
            is_move = z3.And(z3.ULT(at, level), self.digit(at, deadline) != 0)
            moves = moves + z3.If(is_move, word(1), word(0))
        return moves

    def digit(self, at: int, tick: Word) -> Word:
        return self.number(word(at), tick) & (self.size - 1)

    def choose(self, start: Word, first: Word, last: Word, cost: Callable[[Word], Word]) -> Word:
        """`choose`, by the cost of each tick (`cascades` from `start`)."""
        begin, choice = greatest(first, start), Choice.NONE
        for level in range(1, self.levels):
            exists, number = self.first_from(level, begin)
            tick = self.expiration(word(level), number)
            choice = choice.after(exists, tick, cost(tick), last)
        return choice.end(least(begin, last), cost(least(begin, last)))[0]

    def starts_overflow_bucket(self, tick: Word) -> z3.BoolRef:
        return tick & (self.size - 1) == 0

    def has_overflow_start(self, start: Word, end: Word) -> z3.BoolRef:
        return z3.Or(self.starts_overflow_bucket(start), shr(start, self.bits) != shr(end, self.bits))

    def starts_within(self, level: int, start: Word, end: Word) -> Word:
        """`starts_within`: how many buckets of a level start in a span, but at most a wheel."""
        exists, number = self.first_from(level, start)
        return self.count(z3.If(exists, number, word(MAX)), self.number(word(level), end))

    def count(self, first: Word, last: Word) -> Word:
        more = z3.If(last - first == MAX, word(MAX), last - first + 1)
        return least(z3.If(z3.UGT(first, last), word(0), more), word(self.size))

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


class Choice(NamedTuple):
    """How far `choose` has got: the best candidate so far, if there is one."""

    is_open: z3.BoolRef | bool
    """False after a candidate beyond the window: no more are looked at (`take_while`)."""
    is_found: z3.BoolRef | bool
    tick: Word
    cost: Word

    def after(self, exists: z3.BoolRef, tick: Word, cost: Word, last: Word) -> Choice:
        """After one more candidate (`min_by_key`)."""
        is_open = z3.And(self.is_open, z3.Or(z3.Not(exists), z3.ULE(tick, last)))
        is_candidate = z3.And(is_open, exists)
        is_less = z3.Or(z3.ULT(cost, self.cost), z3.And(cost == self.cost, z3.ULT(tick, self.tick)))
        is_better = z3.And(is_candidate, z3.Or(z3.Not(self.is_found), is_less))
        is_found = z3.Or(self.is_found, is_candidate)
        return Choice(is_open, is_found, z3.If(is_better, tick, self.tick), z3.If(is_better, cost, self.cost))

    def end(self, begin: Word, cost: Word) -> tuple[Word, Word]:
        """The tick that is chosen, and its cost."""
        is_better = z3.And(self.is_found, z3.ULT(self.cost, cost))
        return z3.If(is_better, self.tick, begin), z3.If(is_better, self.cost, cost)


Choice.NONE = Choice(True, False, word(0), word(0))

EARLY_NODES, EARLY_RESTS = 64, 8


class EarlyCascade(NamedTuple):
    """A step of `src/shard/advancer/early_cascade.rs`, for one level."""

    geometry: Geometry
    level: int

    @property
    def span(self) -> int:
        return 1 << self.level * self.geometry.bits

    def lead(self, expiration: Word) -> Word:
        """Where the lead begins (`saturating_sub`)."""
        return z3.If(z3.UGE(expiration, self.span), expiration - self.span, word(0))

    @staticmethod
    def moved(last: Word, now: Word, lead: Word) -> Word:
        """The ticks for which a share is placed: since the last step, or since the lead began."""
        return now - least(greatest(last, lead), now - 1)

    def each(self, pending: Word) -> Word:
        """The share of a tick."""
        return EARLY_NODES + shr(pending + shr(pending, 2), self.level * self.geometry.bits)

    def share(self, moved: Word, pending: Word) -> Word:
        wide = z3.ZeroExt(BITS, moved) * z3.ZeroExt(BITS, self.each(pending))
        return z3.If(z3.UGT(wide, MAX), word(MAX), z3.Extract(BITS - 1, 0, wide))

    def next_step(self, now: Word, rest: int) -> Word:
        """`next_cascade`."""
        return least(add(now, word(rest)), add(now | self.geometry.size - 1, word(1)))

    @property
    def rest(self) -> int:
        """Where nothing is left to place."""
        return max(self.geometry.size // EARLY_RESTS, 1)


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
    """`roundest` in `src/timer/time/roundest.rs`."""
    highest = ilog2((first - 1) ^ last) if log is None else log
    return z3.If(first == 0, word(0), shl(shr(last, highest), highest))


PARTS_LOG = 4
PARTS = 1 << PARTS_LOG


def bucket_of(value: Word, log: Word | None = None) -> Word:
    """`bucket_of` in `src/timer/shard/counts.rs`."""
    log = ilog2(value | 1) if log is None else log
    shift = z3.If(z3.UGE(log, PARTS_LOG), log - PARTS_LOG, word(0))
    return shift * PARTS + shr(value, shift)


def values_of(bucket: Word) -> tuple[Word, Word]:
    """`values_of` in `src/timer/shard/counts.rs`."""
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
