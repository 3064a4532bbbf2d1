"""Proofs about the crate's arithmetic, for all inputs; and the comparison with the crate's results."""

import os
import unittest
from collections import Counter
from pathlib import Path

import z3
from arithmetic import BITS, MAX, Geometry, Word, divide, divide_up, shr, word

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


def is_in_time(geometry: Geometry, start: Word, deadline: Word, level: int, size: int) -> z3.BoolRef:
    """Whether a timer may wait at a level whose wheel has that size."""
    number = geometry.number(word(level), deadline)
    expiration = geometry.expiration(word(level), number)
    return z3.And(
        level < geometry.levels,
        shr(expiration, level * geometry.bits) == number,  # No bit is lost.
        z3.ULE(expiration, deadline),  # The timer is moved or fired in time.
        geometry.is_near(word(level), start, deadline, size),  # It is not a revolution late.
        z3.Or(level == 0, z3.UGT(expiration, start)),  # The bucket has not been flushed.
    )


class Slots(Proof):
    """`Geometry`, for each wheel size and every two ticks, by the highest bit of their difference."""

    def test_place(self) -> None:
        for geometry in map(Geometry, SIZES):
            for log in range(BITS):
                given = [z3.ULE(A, B), has_log(B - A, log)]
                level, _ = geometry.place(A, B, word(log))
                levels = [log // geometry.bits, log // geometry.bits + 1]
                with self.subTest(geometry, log=log):
                    cases = (z3.And(level == each, self.is_right(geometry, A, B, each)) for each in levels)
                    self.prove(z3.Or(*cases), *given)

    def is_right(self, geometry: Geometry, start: Word, deadline: Word, level: int) -> z3.BoolRef:
        # It is the lowest level.
        below = z3.Not(geometry.is_near(word(max(level, 1) - 1), start, deadline, geometry.size))
        return z3.And(is_in_time(geometry, start, deadline, level, geometry.size), z3.Or(level == 0, below))


class PrivateSlots(Proof):
    """`place_private`, and how the advancer finds what it has placed."""

    def test_place_private(self) -> None:
        """By the highest bit of the difference, and by the level that it gives."""
        for geometry in map(Geometry, SIZES):
            for log in range(BITS):
                given = [z3.ULE(A, B), has_log(B - A, log)]
                level, _ = geometry.place_private(A, B, word(log))
                digits = log // geometry.bits
                levels = {0, max(digits - 1, 0), digits, digits + 1}
                with self.subTest(geometry, log=log):
                    rights = (z3.And(level == each, self.is_right(geometry, A, B, each, digits)) for each in levels)
                    self.prove(z3.Or(*rights), *given)

    def is_right(self, geometry: Geometry, start: Word, deadline: Word, level: int, digits: int) -> z3.BoolRef:
        def is_near(level: int, size: int) -> z3.BoolRef:
            return geometry.is_near(word(level), start, deadline, size)

        size = geometry.private_size
        # Wheels of two buckets: a level too high at most.
        lower = level - 1 if geometry.bits > 1 else level - 2
        is_lowest = z3.Or(lower < 0, z3.Not(is_near(lower, size)) if lower >= 0 else True)
        if geometry.bits == 1:
            # And always below the level in the shared wheels, where the private wheel below reaches that far.
            shared = z3.If(is_near(digits, geometry.size), word(digits), word(digits + 1))
            below = z3.If(is_near(digits, geometry.size), is_near(digits - 1, size), is_near(digits, size))
            is_lower = z3.Implies(z3.And(shared != 0, below), z3.ULT(level, shared))
            is_lowest = z3.And(is_lowest, z3.ULE(level, shared), is_lower)
        return z3.And(is_in_time(geometry, start, deadline, level, size), is_lowest)

    def test_a_bucket_holds_one_slot_and_is_found(self) -> None:
        """
        Of either wheel: from any tick up to its expiration, the search finds the very slot. Two slots
        of one bucket are the same one.
        """
        for geometry in map(Geometry, SIZES):
            for level in range(geometry.levels):
                expiration = geometry.expiration(word(level), B)
                exists, first = geometry.first_from(level, A)
                # B is the number of a bucket that expires at A or later. The number of A's bucket is no
                # greater, so B is as near to `first`, and to that of a later clock up to the expiration.
                is_ahead = (shr(expiration, level * geometry.bits) == B, z3.UGE(expiration, A))
                here, later = (geometry.number(word(level), each) for each in (A, C))
                self.prove(z3.And(exists, z3.ULE(here, first), z3.ULE(first, B)), *is_ahead)
                is_between = z3.And(z3.ULE(here, later), z3.ULE(later, B))
                self.prove(is_between, *is_ahead, z3.UGE(C, A), z3.ULE(C, expiration))
            for mask in (geometry.size - 1, geometry.private_size - 1):
                # A is the number of the first bucket to look at.
                near = [z3.And(z3.UGE(each, A), z3.ULE(each - A, mask)) for each in (B, C)]
                self.prove(A + ((B & mask) - (A & mask) & mask) == B, near[0])
                self.prove(B == C, *near, B & mask == C & mask)

    def test_no_overflow_bucket_starts_before_the_finest(self) -> None:
        """Where `next_expiration` looks at the finest wheel alone."""
        for geometry in map(Geometry, SIZES):
            is_first = z3.And(z3.ULT(A ^ B, geometry.size), z3.Not(geometry.starts_overflow_bucket(A)))
            between = z3.And(z3.ULE(A, C), z3.ULE(C, B), geometry.starts_overflow_bucket(C))
            self.prove(z3.Not(z3.And(is_first, between)))


class Cascades(Proof):
    """What the advancer empties at an expiration, and what it moves early."""

    def test_no_overflow_bucket_is_left_out(self) -> None:
        """`cascade` goes up to the first level at which no bucket expires; none does above."""
        for geometry in map(Geometry, SIZES):
            for level in range(1, geometry.levels):
                expires = geometry.expiration(word(level), geometry.number(word(level), A)) == A
                below = geometry.expiration(word(level - 1), geometry.number(word(level - 1), A)) == A
                self.prove(z3.Implies(expires, below))

    def test_the_next_overflow_bucket_fits_below(self) -> None:
        """
        Seen from a tick on, every deadline of the next bucket of a level is within a revolution of
        that level, and of the private wheel below. So `place_private` takes it to a lower level (the
        last claim of `PrivateSlots`): at its expiration and before.
        """
        for geometry in map(Geometry, SIZES):
            for level in range(1, geometry.levels):
                exists, number = geometry.first_from(level, A)
                last = 1 << level * geometry.bits
                deadline = geometry.expiration(word(level), number) + B
                here, below = (
                    geometry.number(word(at), deadline) - geometry.number(word(at), A) for at in (level, level - 1)
                )
                claim = z3.And(
                    z3.UGE(deadline, A),  # Nothing wraps.
                    z3.ULT(here, geometry.size),
                    z3.ULT(below, geometry.private_size),
                )
                self.prove(claim, exists, z3.ULT(B, last))


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


def _geometry(bits: int, start: int, deadline: int) -> list[Word]:
    geometry = Geometry(bits)
    level, number = geometry.place(word(start), word(deadline))
    slot = [geometry.expiration(level, number), geometry.index(number), geometry.round(number)]
    return [level, number, *slot]


def _first_from(bits: int, level: int, tick: int) -> list[Word]:
    exists, number = Geometry(bits).first_from(level, word(tick))
    return [z3.If(exists, word(1), word(0)), z3.If(exists, number, word(0))]


def _place_private(bits: int, start: int, deadline: int) -> list[Word]:
    geometry = Geometry(bits)
    level, number = geometry.place_private(word(start), word(deadline))
    return [level, number, geometry.expiration(level, number), number & (geometry.private_size - 1)]


def _divisor(value: int, n: int) -> list[Word]:
    down = z3.simplify(divide(word(n), word(value), word(MAX // value)))
    return [down, divide_up(word(n), word(value), down)]


FORMULAS = {
    "geometry": _geometry,
    "first_from": _first_from,
    "place_private": _place_private,
    "divisor": _divisor,
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
