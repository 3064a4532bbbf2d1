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

    def starts_overflow_bucket(self, tick: Word) -> z3.BoolRef:
        return tick & (self.size - 1) == 0

    def expiration(self, level: Word, number: Word) -> Word:
        return shl(number, level * self.bits)

    def index(self, number: Word) -> Word:
        return number & (self.size - 1)

    def round(self, number: Word) -> Word:
        return shr(number, self.bits) & ((1 << 32) - 1)

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
