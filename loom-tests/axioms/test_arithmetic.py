"""Proofs about the crate's arithmetic, for all inputs; and the comparison with the crate's results."""

import os
import unittest
from collections import Counter
from collections.abc import Callable
from functools import cache
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
    Choice,
    EarlyCascade,
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
    least,
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
        """Where `next_occupied` looks at the finest wheel alone."""
        for geometry in map(Geometry, SIZES):
            is_first = z3.And(z3.ULT(A ^ B, geometry.size), z3.Not(geometry.starts_overflow_bucket(A)))
            between = z3.And(z3.ULE(A, C), z3.ULE(C, B), geometry.starts_overflow_bucket(C))
            self.prove(z3.Not(z3.And(is_first, between)))

    def test_starts_within(self) -> None:
        """B is the number of a bucket, A that of the first one, C that of the last."""
        for geometry in map(Geometry, SIZES):
            count, is_inside = geometry.count(A, C), z3.And(z3.ULE(A, B), z3.ULE(B, C))
            is_counted = z3.And(z3.UGE(B, A), z3.ULT(B - A, count))
            self.prove(z3.Implies(is_counted, is_inside))
            self.prove(z3.Implies(is_inside, z3.Or(is_counted, count == geometry.size)))
            for level in range(geometry.levels):
                exists, first = geometry.first_from(level, A)
                number = shr(B, level * geometry.bits)
                is_start = B & (1 << level * geometry.bits) - 1 == 0
                self.prove(z3.UGE(B, A) == z3.And(exists, z3.UGE(number, first)), is_start)
                self.prove(z3.ULE(B, C) == z3.ULE(number, geometry.number(word(level), C)), is_start)
                # Where there is none, none is counted.
                self.prove(z3.Or(exists, z3.ULT(number, MAX)))


class Cascades(Proof):
    """What the advancer empties at an expiration, and what it moves early."""

    def test_no_overflow_bucket_is_left_out(self) -> None:
        """`cascade` goes up to the first level at which no bucket expires; none does above."""
        for geometry in map(Geometry, SIZES):
            for level in range(1, geometry.levels):
                expires = geometry.expiration(word(level), geometry.number(word(level), A)) == A
                below = geometry.expiration(word(level - 1), geometry.number(word(level - 1), A)) == A
                self.prove(z3.Implies(expires, below))
            some = geometry.has_overflow_start(A, B)
            start = z3.If(geometry.starts_overflow_bucket(A), A, B & ~word(geometry.size - 1))
            is_start = z3.And(z3.ULE(A, start), z3.ULE(start, B), geometry.starts_overflow_bucket(start))
            self.prove(z3.Implies(some, is_start), z3.ULE(A, B))
            inside = z3.And(z3.ULE(A, C), z3.ULE(C, B), geometry.starts_overflow_bucket(C))
            self.prove(z3.Implies(inside, some))

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

    def test_a_timer_is_moved_once_for_each_digit(self) -> None:
        """
        The loop of `cascades`: from the expiration of a bucket, `place` goes to the highest digit that
        is left. So it makes as many moves as there are digits that are not 0.
        """
        for geometry in map(Geometry, SIZES):
            for log in range(BITS):
                level = log // geometry.bits
                # Up to this bit, the buckets above have expired.
                for bits in {(level + 1) * geometry.bits, BITS}:
                    rest = A & ((1 << min(bits, BITS)) - 1)
                    found, number = (z3.simplify(part) for part in geometry.place(A - rest, A, word(log)))
                    expiration = geometry.expiration(found, number)
                    cleared = A & ~word((1 << level * geometry.bits) - 1)
                    self.prove(z3.And(found == level, expiration == cleared), has_log(rest, log))

    def test_each_tick_of_a_lead_counts_once(self) -> None:
        # A is where a lead began, B the last step, C the clock.
        moved, given = EarlyCascade.moved(B, C, A), (z3.ULT(B, C), z3.ULE(A, C))
        self.prove(z3.And(moved != 0, z3.ULE(moved, C - B)), *given)
        self.prove(moved == C - B, z3.UGE(B, A), *given)
        self.prove(moved == C - A, z3.ULE(B, A), z3.ULT(A, C), *given)
        for geometry in map(Geometry, SIZES):
            for level in range(1, geometry.levels):
                early = EarlyCascade(geometry, level)
                exists, number = geometry.first_from(level, A + 1)
                expiration = geometry.expiration(word(level), number)
                lead = early.lead(expiration)
                has_begun = z3.And(z3.ULE(lead, A), lead == expiration - early.span)
                self.prove(has_begun, exists, A != MAX)
                # No nodes are more than 2^32.
                each = early.each(B)
                self.prove(z3.And(z3.UGE(each, 64), z3.ULE(each, 64 + B + shr(B, 2))), z3.ULE(B, 1 << 32))

    def test_a_bucket_is_empty_after_four_fifths_of_its_lead(self) -> None:
        """In real numbers: a fourth and a quotient are less than 1 below the exact ones."""
        ticks, span, pending, fourth, quotient = z3.Reals("ticks span pending fourth quotient")
        rounded = (
            pending >= 0, span >= 1, ticks >= 1,
            4 * fourth > pending - 4, quotient * span > pending + fourth - span,
        )  # fmt: skip
        self.prove(ticks * (64 + quotient) >= pending, *rounded, 5 * ticks >= 4 * span)

    def test_a_rest_ends_before_a_lead_begins(self) -> None:
        for geometry in map(Geometry, SIZES):
            early = EarlyCascade(geometry, 1)
            for rest in {1, early.rest}:
                after = early.next_step(A, rest)
                self.prove(z3.And(z3.UGE(after, A), z3.ULE(after - A, rest), z3.Or(after != A, A == MAX)))
                inside = z3.And(z3.ULT(A, B), z3.ULT(B, after))
                self.prove(z3.Not(z3.And(inside, geometry.starts_overflow_bucket(B))))


class Chosen(Proof):
    """`choose`: the first tick of a window that needs the fewest cascades."""

    def test_it_chooses_the_best_candidate(self) -> None:
        """
        By induction over the candidates, whatever they cost. A is where the search begins, B the
        window's end. After some candidates, `seen` is any of them within the window.
        """
        before = Choice(*z3.Bools("is_open is_found"), *z3.BitVecs("best best_cost", BITS))
        seen, seen_cost, tick, cost = z3.BitVecs("seen seen_cost tick cost", BITS)
        exists = z3.Bool("exists")

        def holds(choice: Choice, other: Word, other_cost: Word) -> z3.BoolRef:
            is_earlier = z3.And(choice.cost == other_cost, z3.ULE(choice.tick, other))
            is_best = z3.Or(z3.ULT(choice.cost, other_cost), is_earlier)
            return z3.And(choice.is_found, z3.ULE(A, choice.tick), z3.ULE(choice.tick, B), is_best)

        after, is_inside = before.after(exists, tick, cost, B), z3.And(exists, z3.ULE(tick, B))
        given = (z3.ULE(A, tick), z3.Implies(before.is_found, holds(before, before.tick, before.cost)))
        self.prove(z3.Implies(is_inside, holds(after, tick, cost)), before.is_open, *given)
        self.prove(holds(after, seen, seen_cost), holds(before, seen, seen_cost), *given)
        self.prove(after.is_open == z3.Or(z3.Not(exists), z3.ULE(tick, B)), before.is_open)
        self.prove(z3.Not(after.is_found), z3.Not(before.is_found), z3.Not(is_inside))
        self.is_best_at_the_end(before, holds)

    def is_best_at_the_end(self, choice: Choice, holds: Callable[..., z3.BoolRef]) -> None:
        """The window's begin costs C; a window in the past ends before A."""
        chosen, cost = choice.end(least(A, B), C)
        found = z3.Implies(choice.is_found, holds(choice, choice.tick, choice.cost))
        claim = z3.And(z3.ULE(A, chosen), z3.ULE(chosen, B), z3.ULE(cost, C), z3.Or(cost != C, chosen == A))
        self.prove(claim, found, z3.ULE(A, B))
        self.prove(z3.Implies(choice.is_found, z3.ULE(cost, choice.cost)))
        self.prove(chosen == B, found, z3.ULT(B, A))

    def test_no_candidate_comes_after_one_beyond_the_window(self) -> None:
        for geometry in map(Geometry, SIZES):
            for level in range(1, geometry.levels):
                (exists, number), (has_below, below) = (geometry.first_from(at, A) for at in (level, level - 1))
                tick, former = geometry.expiration(word(level), number), geometry.expiration(word(level - 1), below)
                self.prove(z3.And(has_below, z3.ULE(A, former), z3.ULE(former, tick)), exists)

    def test_a_candidate_is_as_good_as_any_tick(self) -> None:
        """
        A tick B after the start A differs from it first at some digit. The candidate of that level
        comes no later, and where it has a digit that is not 0, B has one. Its level is no higher, so
        it needs no more cascades (`Cascades`).
        """
        for geometry in map(Geometry, SIZES):
            for level in range(geometry.levels):
                exists, number = geometry.first_from(level, A)
                tick = geometry.expiration(word(level), number)
                above = shr(A ^ B, (level + 1) * geometry.bits) == 0
                differs = geometry.number(word(level), A) != geometry.number(word(level), B)
                digits = [
                    z3.Or(geometry.digit(at, tick) == 0, geometry.digit(at, B) != 0) for at in range(geometry.levels)
                ]
                claim = z3.And(exists, z3.ULE(A, tick), z3.ULE(tick, B), *digits)
                self.prove(claim, z3.ULT(A, B), above, differs)
                self.is_lower(geometry, level)

    def is_lower(self, geometry: Geometry, level: int) -> None:
        """From A, an earlier deadline B fits into each level that takes a later one C, and those above."""

        def ahead(at: int, deadline: Word) -> Word:
            return geometry.number(word(at), deadline) - geometry.number(word(at), A)

        given = [z3.ULE(A, B), z3.ULE(B, C), z3.ULT(ahead(level, C), geometry.size)]
        self.prove(z3.And(z3.ULT(ahead(level, B), geometry.size), z3.ULT(ahead(level + 1, C), geometry.size)), *given)


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


def _place_private(bits: int, start: int, deadline: int) -> list[Word]:
    geometry = Geometry(bits)
    level, number = geometry.place_private(word(start), word(deadline))
    return [level, number, geometry.expiration(level, number), number & (geometry.private_size - 1)]


def _choose(bits: int, start: int, first: int, last: int) -> list[Word]:
    geometry = Geometry(bits)

    @cache
    def cost_of(tick: int) -> Word:
        return z3.simplify(geometry.cascades(word(start), word(tick)))

    def cost(tick: Word) -> Word:
        return cost_of(z3.simplify(tick).as_long())

    chosen = geometry.choose(word(start), word(first), word(last), cost)
    return [chosen, cost(chosen)]


def _starts(bits: int, level: int, start: int, end: int) -> list[Word]:
    geometry = Geometry(bits)
    has = z3.If(geometry.has_overflow_start(word(start), word(end)), word(1), word(0))
    return [has, geometry.starts_within(level, word(start), word(end))]


def _early_step(bits: int, level: int, last: int, now: int, pending: int, inside: int) -> list[Word]:
    """Of `inside` nodes in the next bucket, how many are placed, and when the next step is."""
    early = EarlyCascade(Geometry(bits), level)
    _, number = early.geometry.first_from(level, word(now + 1))
    expiration = early.geometry.expiration(word(level), number)
    moved = early.moved(word(last), word(now), early.lead(expiration))
    share = early.share(moved, word(pending))
    is_done = z3.UGT(share, inside)
    after = z3.If(is_done, early.next_step(word(now), early.rest), early.next_step(word(now), 1))
    return [z3.If(is_done, word(inside), share), after]


def _divisor(value: int, n: int) -> list[Word]:
    down = z3.simplify(divide(word(n), word(value), word(MAX // value)))
    return [down, divide_up(word(n), word(value), down)]


def _word(raw: int, extension: int) -> list[Word]:
    before = NodeWord(word(raw))
    changes = [
        before.with_status(word(6)),
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
    "place_private": _place_private,
    "choose": _choose,
    "starts": _starts,
    "early_step": _early_step,
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
