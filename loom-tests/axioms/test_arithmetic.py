"""Proofs about the crate's arithmetic, for all inputs; and the comparison with the crate's results."""

import os
import unittest
from collections import Counter
from pathlib import Path

import z3
from arithmetic import (
    BITS,
    DISPLACED,
    FRACTION,
    MAX,
    MAX_EXTENSION,
    PARTS,
    WINDOW_NANOS,
    Geometry,
    NodeWord,
    Word,
    bucket_of,
    clock_advance,
    clock_rate,
    divide,
    divide_up,
    is_of,
    key_place,
    roundest,
    shards_after,
    shr,
    values_of,
    word,
)  # fmt: skip

SIZES = range(1, 16)
A, B, C = (z3.BitVec(name, BITS) for name in "abc")
VECTORS = "SHARDWHEEL_VECTORS"
"""The file with what the crate's tests have printed."""


class Proof(unittest.TestCase):
    def prove(self, claim: z3.BoolRef, *given: z3.BoolRef | bool) -> None:
        """Fails with z3's counterexample, or if z3 does not know."""
        solver = z3.Solver()
        solver.add(*given, z3.Not(claim))
        result = solver.check()
        self.assertEqual(result, z3.unsat, solver.model() if result == z3.sat else "")


def has_log(value: Word, log: int) -> z3.BoolRef:
    """Whether that is the value's highest bit; 0 also for the value 0."""
    at_least = z3.UGE(value, 1 << log) if log else z3.BoolVal(True)
    return z3.And(at_least, shr(value, log) <= 1, shr(value, log) >= 0)


class Slots(Proof):
    """`Geometry`, for each wheel size and every two ticks, by the highest bit of their difference."""

    def test_place(self) -> None:
        for geometry in map(Geometry, SIZES):
            for log in range(BITS):
                with self.subTest(geometry, log=log):
                    self.prove(self.is_right(geometry, A, B, log), z3.ULE(A, B), has_log(B - A, log))

    def is_right(self, geometry: Geometry, start: Word, deadline: Word, log: int) -> z3.BoolRef:
        level, number = (z3.simplify(part) for part in geometry.place(start, deadline, word(log)))
        expiration, ahead = geometry.expiration(level, number), number - geometry.number(level, start)
        below = geometry.number(level - 1, deadline) - geometry.number(level - 1, start)
        return z3.And(
            z3.ULT(level, geometry.levels),
            shr(expiration, level * geometry.bits) == number,  # No bit is lost.
            z3.ULE(expiration, deadline),  # The timer is moved or fired in time.
            z3.ULT(ahead, geometry.size),  # It is not a revolution late.
            z3.Or(level == 0, z3.UGT(expiration, start)),  # The bucket has not been flushed.
            z3.Or(level == 0, z3.UGE(below, geometry.size)),  # It is the lowest level.
        )

    def test_shifts_stay_below_the_width(self) -> None:
        for geometry in map(Geometry, SIZES):
            self.assertLess((geometry.levels - 1) * geometry.bits, BITS)
            for value in range(BITS):
                self.assertEqual(value * geometry.reciprocal >> 16, value // geometry.bits)
                self.assertLess(value * geometry.reciprocal, 1 << 32)

    def test_a_number_is_its_round_and_its_index(self) -> None:
        for geometry in map(Geometry, SIZES):
            low = geometry.round(A) << geometry.bits | geometry.index(A)
            self.prove(A == low, z3.ULT(A, word(1 << 32 + geometry.bits)))
            self.prove(z3.Implies(geometry.round(A) == geometry.round(B), shr(A ^ B, geometry.bits) & 0xFFFF_FFFF == 0))

    def test_first_from(self) -> None:
        """The first bucket of a level from a tick on, of which `choose` takes one within the window."""
        for geometry in map(Geometry, SIZES):
            for level in range(geometry.levels):
                exists, number = geometry.first_from(level, A)
                start, span = geometry.expiration(word(level), number), 1 << level * geometry.bits
                found = z3.And(z3.UGE(start, A), z3.ULT(start - A, span), start & (span - 1) == 0)
                self.prove(z3.Implies(exists, found))
                self.prove(z3.Implies(z3.And(z3.UGE(B, A), B & (span - 1) == 0), exists))

    def test_end_of_window(self) -> None:
        for geometry in map(Geometry, SIZES):
            end = geometry.end_of_window(A)
            self.prove(z3.And(z3.UGE(end, A), z3.ULT(end - A, 4), geometry.end_of_window(end) == end))


class Rounding(Proof):
    """`Divisor`. Products of 64 bits by 64 are beyond z3 as bits, and easy as real numbers."""

    def setUp(self) -> None:
        self.n, self.d, self.m, self.q = z3.Reals("n d m q")
        n, d, m, q = self.n, self.d, self.m, self.q
        width = 1 << BITS
        self.given = (
            0 <= n, n < width, 1 <= d, d < width, 0 <= m, 0 <= q,
            # The multiplier is (2^64 - 1) / d, rounded down; of whole numbers.
            m * d <= width - 1, (m + 1) * d >= width,
            # The estimate is n * m / 2^64, rounded down.
            q * width <= n * m, n * m < (q + 1) * width,
        )  # fmt: skip

    def test_the_estimate_is_the_quotient_or_one_less(self) -> None:
        self.prove(self.q * self.d <= self.n, *self.given)
        self.prove(self.n < (self.q + 2) * self.d, *self.given)

    def test_the_quotient_is_exact(self) -> None:
        """And `n - q * d` does not wrap, so bits compute the same as these numbers."""
        rest = self.n - self.q * self.d
        result = self.q + z3.If(rest >= self.d, z3.RealVal(1), z3.RealVal(0))
        near = (rest >= 0, rest < 2 * self.d, self.d >= 1)
        self.prove(z3.And(result * self.d <= self.n, self.n < (result + 1) * self.d), *near)

    def test_never_early_and_a_tick_late_at_most(self) -> None:
        """A deadline is rounded up, the clock down."""
        tick, deadline, now, up, down = z3.Reals("tick deadline now up down")
        rounded = (
            tick >= 1,
            up * tick >= deadline,
            (up - 1) * tick < deadline,
            down * tick <= now,
            (down + 1) * tick > now,
        )
        self.prove(now >= deadline, *rounded, down >= up)
        self.prove(z3.Not(down <= up - 1), *rounded, now >= deadline + tick)


class Fields(Proof):
    """The node's word, and keys."""

    def same(self, one: NodeWord, other: NodeWord, *names: str) -> z3.BoolRef:
        return z3.And([getattr(one, name)() == getattr(other, name)() for name in names])

    def test_each_change_of_a_word_leaves_its_other_fields(self) -> None:
        before, extension = NodeWord(A), z3.ULE(B, MAX_EXTENSION)
        changed = before.with_status(B)
        self.prove(
            z3.And(self.same(before, changed, "version", "extension", "is_displaced"), changed.status() == B),
            z3.ULE(B, 7),
        )
        changed = before.displaced()
        self.prove(z3.And(self.same(before, changed, "version", "extension", "status"), changed.is_displaced() != 0))
        changed = before.with_extension(B)
        self.prove(
            z3.And(self.same(before, changed, "version", "status", "is_displaced"), changed.extension() == B), extension
        )
        changed = before.rearmed()
        self.prove(z3.And(self.same(before, changed, "version"), changed.extension() == 0, changed.raw & 15 == 1))

    def test_a_next_version_is_another_one(self) -> None:
        before, is_not_last = NodeWord(A), shr(A, 32) != 0xFFFF_FFFF
        for changed in (before.next_version(word(1)), before.next_version_in_place(B)):
            self.prove(changed.version() == before.version() + 1, is_not_last, z3.ULE(B, MAX_EXTENSION))
        self.prove(changed.raw & DISPLACED == A & DISPLACED, is_not_last, z3.ULE(B, MAX_EXTENSION))

    def test_keys(self) -> None:
        shard, node, other = (z3.ULT(A, 1 << 31), A != 0), z3.ULE(B, 0xFFFF_FFFF), z3.ULT(C, 1 << 31)
        place = key_place(A, B)
        self.prove(z3.And(place & 0xFFFF_FFFF == B, place != 0, shr(place, 63) == 0), *shard, node)
        self.prove(is_of(place, C) == (A == C), *shard, node, other)
        self.prove(z3.Not(is_of(place | 1 << 63, C)), *shard, node, other)
        self.prove(shards_after(place, C) == A - C & (1 << 31) - 1, *shard, node, other)


class Figures(Proof):
    """Histogram buckets, round ticks and the fast clock."""

    def test_a_value_lies_in_its_bucket(self) -> None:
        for log in range(BITS):
            bucket = z3.simplify(bucket_of(A, word(log)))
            first, last = values_of(bucket)
            claim = z3.And(
                z3.ULE(first, A),
                z3.ULE(A, last),
                z3.ULT(bucket, (BITS - 4 + 1) * PARTS),
                z3.ULE(last - first, shr(first, 4)),
            )
            self.prove(claim, has_log(A, log))

    def test_the_roundest_tick(self) -> None:
        self.prove(roundest(word(0), B) == 0)
        for log in range(BITS):
            found = roundest(A, B, word(log))
            none_rounder = shr(B, log + 1) == shr(A - 1, log + 1) if log + 1 < BITS else z3.BoolVal(True)
            multiple = found & (1 << log) - 1 == 0
            claim = z3.And(z3.UGE(found, A), z3.ULE(found, B), none_rounder, multiple)
            self.prove(claim, A != 0, z3.ULE(A, B), has_log(A - 1 ^ B, log))

    def test_the_fast_clock_does_not_overflow(self) -> None:
        steps, window, rate = z3.Reals("steps window rate")
        given = (0 <= steps, steps < window, rate > 0, window * rate <= WINDOW_NANOS << FRACTION)
        self.prove(steps * rate < 1 << 48, *given)
        # A counter of less than a step in three seconds would be needed to pass this.
        self.prove(z3.And(z3.UGE(clock_rate(A), A), z3.UGE(clock_rate(A) - A, shr(A, 2))), z3.ULT(A, 1 << 63))


def _geometry(bits: int, start: int, deadline: int) -> list[Word]:
    geometry = Geometry(bits)
    level, number = geometry.place(word(start), word(deadline))
    slot = [geometry.expiration(level, number), geometry.index(number), geometry.round(number)]
    return [level, number, *slot, geometry.end_of_window(word(start))]


def _first_from(bits: int, level: int, tick: int) -> list[Word]:
    exists, number = Geometry(bits).first_from(level, word(tick))
    return [z3.If(exists, word(1), word(0)), z3.If(exists, number, word(0))]


def _divisor(value: int, n: int) -> list[Word]:
    down = z3.simplify(divide(word(n), word(value), word(MAX // value)))
    return [down, divide_up(word(n), word(value), down)]


def _word(raw: int, extension: int) -> list[Word]:
    before = NodeWord(word(raw))
    changes = [
        before.with_status(word(7)),
        before.displaced(),
        before.with_extension(word(extension)),
        before.rearmed(),
    ]
    changes += [before.next_version(word(1)), before.next_version_in_place(word(extension))]
    return [
        before.status(),
        before.version(),
        before.extension(),
        shr(before.is_displaced(), 3),
        *(each.raw for each in changes),
    ]


def _key(shard: int, node: int, first: int) -> list[Word]:
    place = key_place(word(shard), word(node))
    return [place, z3.If(is_of(place, word(first)), word(1), word(0)), shards_after(place, word(first))]


FORMULAS = {
    "geometry": _geometry,
    "first_from": _first_from,
    "divisor": _divisor,
    "word": _word,
    "key": _key,
    "bucket_of": lambda value: [bucket_of(word(value))],
    "values_of": lambda bucket: list(values_of(word(bucket))),
    "roundest": lambda first, last: [roundest(word(first), word(last))],
    "clock_rate": lambda measured: [clock_rate(word(measured))],
    "clock_advance": lambda steps, rate: [clock_advance(word(steps), word(rate))],
}


@unittest.skipUnless(VECTORS in os.environ, f"{VECTORS} names no file")
class Vectors(unittest.TestCase):
    """The formulas compute what the crate computes."""

    def test_they_agree(self) -> None:
        seen: Counter[str] = Counter()
        for line in Path(os.environ[VECTORS]).read_text().splitlines():
            # A test's first vector follows the test's name.
            _, is_vector, vector = line.partition("vector ")
            if not is_vector:
                continue
            call, results = vector.split("=")
            name, *arguments = call.split()
            found = [z3.simplify(each).as_long() for each in FORMULAS[name](*map(int, arguments))]
            self.assertEqual(found, [int(result) for result in results.split()], line)
            seen[name] += 1
        self.assertEqual(set(seen), set(FORMULAS), "each formula has vectors")
        print(f"{seen.total()} vectors: {dict(seen)}")


if __name__ == "__main__":
    unittest.main()
