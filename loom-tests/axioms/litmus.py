"""Litmus tests with published verdicts: what the checker must say before it is believed.

There are tests for each axiom, of both verdicts. The verdicts are those of the RC11 paper where it has the test, and
follow from its theorems elsewhere; but two outcomes that RC11 forbids are allowed in this weaker model (`rc11.py`).

A thread is a line of steps: `W x 1 REL` writes, `R a x ACQ` reads `x` into the register `a`, `U a x RLX` adds one,
`S a x RLX` swaps 0 for 1, `F SC` is a fence; and after `? a` the thread goes on only if `a` is not 0.
"""

from __future__ import annotations

from types import SimpleNamespace

from programs import Order, Program, Steps, Thread, cas, fence, read, update, wait_for, write


def thread(line: str) -> Thread:
    def body(_: SimpleNamespace) -> Steps:
        registers: dict[str, int] = {}
        for step in line.split(", "):
            match step.split():
                case "F", order:
                    yield fence(Order[order])
                case "W", loc, value, order:
                    yield write(loc, int(value), Order[order])
                case "R", register, loc, order:
                    registers[register] = yield read(loc, Order[order])
                case "U", register, loc, order:
                    registers[register] = yield update(loc, lambda old: old + 1, Order[order])
                case "S", register, loc, order:
                    registers[register] = yield cas(loc, 0, 1, Order[order])
                case "?", register:
                    wait_for(registers[register] != 0)
        return registers

    return body


def program(name: str, threads: tuple[str, ...], outcome: dict[str, int]) -> Program:
    """The bad outcome is these values: registers, and `last_x` for the last value of `x`. Without any, it is a race."""
    memory = {name[5:]: value for name, value in outcome.items() if name.startswith("last_")}
    registers = {name: value for name, value in outcome.items() if not name.startswith("last_")}
    return Program(
        name,
        tuple(map(thread, threads)),
        bad=lambda seen: bool(outcome) and registers.items() <= vars(seen).items(),
        bad_memory=lambda last: memory.items() <= last.items(),
    )


Test = tuple[str, bool, tuple[str, ...], dict[str, int]]
"""A name, whether the outcome is allowed, the threads, and the outcome."""

BOTH_MISS = {"a": 0, "b": 0}
STALE = {"a": 1, "b": 0}
TESTS: list[Test] = [
    ("SB, relaxed", True, ("W x 1 RLX, R a y RLX", "W y 1 RLX, R b x RLX"), BOTH_MISS),
    ("SB, SeqCst accesses", False, ("W x 1 SC, R a y SC", "W y 1 SC, R b x SC"), BOTH_MISS),
    ("SB, fences", False, ("W x 1 RLX, F SC, R a y RLX", "W y 1 RLX, F SC, R b x RLX"), BOTH_MISS),
    ("SB, AcqRel fences", True, ("W x 1 RLX, F ACQREL, R a y RLX", "W y 1 RLX, F ACQREL, R b x RLX"), BOTH_MISS),
    (
        "RWC, fences (C11 allows it)",
        False,
        ("W x 1 RLX", "R a x RLX, F SC, R b y RLX", "W y 1 RLX, F SC, R c x RLX"),
        {"a": 1, "b": 0, "c": 0},
    ),
    (
        "IRIW, SeqCst stores, an acquire first (C11 forbids it)",
        True,
        ("W x 1 SC", "W y 1 SC", "R a x ACQ, R b y SC", "R c y ACQ, R d x SC"),
        {"a": 1, "b": 0, "c": 1, "d": 0},
    ),
    ("2+2W, fences", False, ("W x 1 RLX, F SC, W y 2 RLX", "W y 1 RLX, F SC, W x 2 RLX"), {"last_x": 1, "last_y": 1}),
    ("MP, relaxed", True, ("W x 1 RLX, W y 1 RLX", "R a y RLX, R b x RLX"), STALE),
    ("MP, release and acquire", False, ("W x 1 RLX, W y 1 REL", "R a y ACQ, R b x RLX"), STALE),
    ("MP, fences", False, ("W x 1 RLX, F REL, W y 1 RLX", "R a y RLX, F ACQ, R b x RLX"), STALE),
    ("LB, relaxed (RC11 forbids it)", True, ("R a x RLX, W y 1 RLX", "R b y RLX, W x 1 RLX"), {"a": 1, "b": 1}),
    ("LB, acquire and release", False, ("R a x ACQ, W y 1 REL", "R b y ACQ, W x 1 REL"), {"a": 1, "b": 1}),
    (
        "a release sequence: another thread adds",
        False,
        ("W x 1 RLX, W y 1 REL", "U c y RLX", "R a y ACQ, R b x RLX"),
        {"a": 2, "b": 0},
    ),
    (
        "a release sequence: a later store of the same thread (RC11 forbids it)",
        True,
        ("W x 1 RLX, W y 1 REL, W y 2 RLX", "R a y ACQ, R b x RLX"),
        {"a": 2, "b": 0},
    ),
    ("CoRR", False, ("W x 1 RLX", "R a x RLX, R b x RLX"), STALE),
    ("CoWW", False, ("W x 1 RLX, W x 2 RLX",), {"last_x": 1}),
    ("CoWR", False, ("W x 1 RLX, R a x RLX", "W x 2 RLX"), {"a": 2, "last_x": 1}),
    ("CoRW", False, ("R a x RLX, W x 1 RLX", "W x 2 RLX"), {"a": 2, "last_x": 2}),
    ("atomicity: two swaps", False, ("S a x RLX", "S b x RLX"), BOTH_MISS),
    ("a data race: release only", True, ("W d 1 PLAIN, W x 1 REL", "R a x RLX, ? a, R b d PLAIN"), {}),
    ("no data race", False, ("W d 1 PLAIN, W x 1 REL", "R a x ACQ, ? a, R b d PLAIN"), {}),
]
