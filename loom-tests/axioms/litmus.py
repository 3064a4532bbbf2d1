"""Litmus tests with published verdicts: what the checker must say before it is believed.

The verdicts are those of the RC11 paper where it has the test, and follow from its theorems
elsewhere. `published` says whether RC11 allows the outcome. `weaker` and `weakest` say so for the
same model with the release sequences of C++20, and then without the axiom of no thin air, where that
differs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

from programs import (
    ACQ,
    ACQREL,
    NONE,
    PLAIN,
    REL,
    RLX,
    SC,
    Op,
    Order,
    Program,
    Steps,
    Thread,
    cas,
    fence,
    read,
    update,
    write,
)
from rc11 import CPP20, RC11, WEAKEST, Model

F = fence
W = write


def R(register: str, loc: str, order: Order) -> tuple[str, Op]:
    return register, read(loc, order)


def add(register: str, loc: str, amount: int, order: Order) -> tuple[str, Op]:
    return register, update(loc, lambda old: old + amount, order)


def thread(*steps: Op | tuple[str, Op]) -> Thread:
    """A thread without a branch. A step with a register keeps what it reads there."""

    def body(_: SimpleNamespace) -> Steps:
        registers: dict[str, int] = {}
        for step in steps:
            if isinstance(step, Op):
                yield step
            else:
                registers[step[0]] = yield step[1]
        return registers

    return body


@dataclass(frozen=True)
class Litmus:
    program: Program
    published: bool
    weaker: bool | None = None
    weakest: bool | None = None

    def verdicts(self) -> dict[Model, bool]:
        """Whether each model allows the outcome."""
        weaker = self.published if self.weaker is None else self.weaker
        return {RC11: self.published, CPP20: weaker, WEAKEST: weaker if self.weakest is None else self.weakest}


def test(
    name: str, allowed: bool, threads: tuple[Thread, ...], weaker: bool | None = None, /, **outcome: int
) -> Litmus:
    """A test whose outcome is these values: registers, and `m_x` for the last value of `x`."""
    registers = {name: value for name, value in outcome.items() if not name.startswith("m_")}
    memory = {name[2:]: value for name, value in outcome.items() if name.startswith("m_")}
    return Litmus(
        Program(
            name,
            threads,
            bad=lambda seen: registers.items() <= vars(seen).items(),
            bad_memory=lambda _, last: memory.items() <= last.items(),
        ),
        allowed,
        weaker,
    )


def sb(name: str, allowed: bool, w: Order, f: Order, g: Order, r: Order) -> Litmus:
    one = thread(W("x", 1, w), F(f), R("a", "y", r))
    return test(name, allowed, (one, thread(W("y", 1, w), F(g), R("b", "x", r))), a=0, b=0)


def mp(name: str, allowed: bool, f: Order, w: Order, r: Order, g: Order) -> Litmus:
    return test(
        name,
        allowed,
        (thread(W("x", 1, RLX), F(f), W("y", 1, w)), thread(R("a", "y", r), F(g), R("b", "x", RLX))),
        a=1,
        b=0,
    )


def lb(name: str, r: Order, f: Order, w: Order, weakest: bool = False) -> Litmus:
    one = thread(R("a", "x", r), F(f), W("y", 1, w))
    found = test(name, False, (one, thread(R("b", "y", r), F(f), W("x", 1, w))), a=1, b=1)
    return replace(found, weakest=weakest)


def iriw(name: str, allowed: bool, w: Order, r: Order, f: Order, s: Order) -> Litmus:
    readers = (thread(R("a", "x", r), F(f), R("b", "y", s)), thread(R("c", "y", r), F(f), R("d", "x", s)))
    return test(name, allowed, (thread(W("x", 1, w)), thread(W("y", 1, w)), *readers), a=1, b=0, c=1, d=0)


def two_plus_two_w(name: str, allowed: bool, w: Order, f: Order, g: Order) -> Litmus:
    one = thread(W("x", 1, w), F(f), W("y", 2, w))
    return test(name, allowed, (one, thread(W("y", 1, w), F(g), W("x", 2, w))), m_x=1, m_y=1)


def wrc(name: str, allowed: bool, w: Order, r: Order) -> Litmus:
    threads = thread(W("x", 1, RLX)), thread(R("a", "x", r), W("y", 1, w)), thread(R("b", "y", r), R("c", "x", RLX))
    return test(name, allowed, threads, a=1, b=1, c=0)


def rwc(name: str, allowed: bool, f: Order, g: Order) -> Litmus:
    threads = (
        thread(W("x", 1, RLX)),
        thread(R("a", "x", RLX), F(f), R("b", "y", RLX)),
        thread(W("y", 1, RLX), F(g), R("c", "x", RLX)),
    )
    return test(name, allowed, threads, a=1, b=0, c=0)


def plain_mp(name: str, allowed: bool, w: Order, r: Order) -> Litmus:
    """A reader that looks at plain data only after it has seen the flag: a data race is the bad outcome."""

    def reader(_: SimpleNamespace) -> Steps:
        if (yield read("flag", r)):
            yield read("data", PLAIN)
        return {}

    return Litmus(Program(name, (thread(W("data", 1, PLAIN), W("flag", 1, w)), reader), bad=lambda _: False), allowed)


def two_swaps(name: str, allowed: bool, order: Order) -> Litmus:
    """Two threads compare and swap one word: both succeed."""

    def swapper(register: str) -> Thread:
        def body(_: SimpleNamespace) -> Steps:
            return {register: (yield cas("x", 0, 1, order))}

        return body

    return test(name, allowed, (swapper("a"), swapper("b")), a=0, b=0)


def sequence(name: str, allowed: bool, weaker: bool, *middle: Thread, own: bool) -> Litmus:
    """Message passing where the flag is changed once more, relaxed, before the reader looks."""
    steps = [W("x", 1, RLX), W("y", 1, REL), *([W("y", 2, RLX)] if own else [])]
    reader = thread(R("a", "y", ACQ), R("b", "x", RLX))
    return test(name, allowed, (thread(*steps), *middle, reader), weaker, a=2, b=0)


TESTS = [
    sb("SB, relaxed", True, RLX, NONE, NONE, RLX),
    sb("SB, SeqCst accesses", False, SC, NONE, NONE, SC),
    sb("SB, SeqCst fences", False, RLX, SC, SC, RLX),
    sb("SB, AcqRel fences", True, RLX, ACQREL, ACQREL, RLX),
    mp("MP, relaxed", True, NONE, RLX, RLX, NONE),
    mp("MP, release and acquire", False, NONE, REL, ACQ, NONE),
    mp("MP, release and acquire fences", False, REL, RLX, RLX, ACQ),
    mp("MP, a release fence and an acquire", False, REL, RLX, ACQ, NONE),
    lb("LB, relaxed (C++ and processors allow it)", RLX, NONE, RLX, True),
    lb("LB, acquire and release", ACQ, NONE, REL),
    iriw("IRIW, release and acquire", True, REL, ACQ, NONE, ACQ),
    iriw("IRIW, SeqCst fences between the loads", False, RLX, RLX, SC, RLX),
    iriw("IRIW, SeqCst stores and an acquire first (C11 forbids it)", True, SC, ACQ, NONE, SC),
    two_plus_two_w("2+2W, release", True, REL, NONE, NONE),
    two_plus_two_w("2+2W, SeqCst fences", False, RLX, SC, SC),
    wrc("WRC, release and acquire", False, REL, ACQ),
    rwc("RWC, SeqCst fences (C11 allows it)", False, SC, SC),
    test("CoRR", False, (thread(W("x", 1, RLX)), thread(R("a", "x", RLX), R("b", "x", RLX))), a=1, b=0),
    test("CoWW", False, (thread(W("x", 1, RLX), W("x", 2, RLX)),), m_x=1),
    test("CoWR", False, (thread(W("x", 1, RLX), R("a", "x", RLX)), thread(W("x", 2, RLX))), a=2, m_x=1),
    test("CoRW", False, (thread(R("a", "x", RLX), W("x", 1, RLX)), thread(W("x", 2, RLX))), a=2, m_x=2),
    two_swaps("atomicity: two swaps of one word", False, RLX),
    test("atomicity: two additions", False, (thread(add("a", "x", 1, RLX)), thread(add("b", "x", 1, RLX))), m_x=1),
    test(
        "SB, AcqRel read-modify-writes of one word between",
        False,
        (
            thread(W("x", 1, RLX), add("c", "z", 1, ACQREL), R("a", "y", RLX)),
            thread(W("y", 1, RLX), add("d", "z", 1, ACQREL), R("b", "x", RLX)),
        ),
        a=0,
        b=0,
    ),
    sequence(
        "a release sequence: a relaxed addition of a third thread",
        False,
        False,
        thread(add("c", "y", 1, RLX)),
        own=False,
    ),
    sequence("a release sequence: a later store of the same thread", False, True, own=True),
    plain_mp("data race: MP, release only", True, REL, RLX),
    plain_mp("data race: MP, release and acquire", False, REL, ACQ),
]
