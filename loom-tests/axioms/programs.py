"""Small concurrent programs: what the threads of a litmus test do, and every path that each may take.

A thread is a generator. It yields operations, and is sent the value that a read returns; so an
`if` on that value is a guarded event. It returns its registers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple


class Order(Enum):
    """A memory ordering; `NONE` is a fence that was taken out, `PLAIN` a non-atomic access."""

    NONE = "none"
    PLAIN = "plain"
    RLX = "Relaxed"
    REL = "Release"
    ACQ = "Acquire"
    ACQREL = "AcqRel"
    SC = "SeqCst"

    @property
    def releases(self) -> bool:
        return self in (Order.REL, Order.ACQREL, Order.SC)

    @property
    def acquires(self) -> bool:
        return self in (Order.ACQ, Order.ACQREL, Order.SC)


NONE, PLAIN, RLX, REL, ACQ, ACQREL, SC = Order


class Access(NamedTuple):
    """An ordering, and the name of the place in the program that has it."""

    site: str
    order: Order


class Op(NamedTuple):
    """A step of a thread. `new` computes what a read-modify-write stores; `None` means that it fails."""

    kind: str
    loc: str
    access: Access
    value: int = 0
    new: Callable[[int], int | None] | None = None


class Event(NamedTuple):
    """A node of an execution. A read-modify-write is a read and, right after it, a write."""

    thread: int
    kind: str
    order: Order
    loc: str
    value: int
    site: str
    is_rmw: bool = False


Steps = Generator[Op, int, dict[str, int] | None]
Thread = Callable[[Any], Steps]


class Stuck(Exception):
    """The path cannot happen: the thread waits at that point for another value."""


def _access(at: Access | Order) -> Access:
    return at if isinstance(at, Access) else Access("", at)


def read(loc: str, at: Access | Order) -> Op:
    return Op("R", loc, _access(at))


def write(loc: str, value: int, at: Access | Order) -> Op:
    return Op("W", loc, _access(at), value)


def fence(at: Access | Order) -> Op:
    return Op("F", "", _access(at))


def swap(loc: str, value: int, at: Access | Order) -> Op:
    return Op("U", loc, _access(at), new=lambda _: value)


def update(loc: str, new: Callable[[int], int | None], at: Access | Order) -> Op:
    return Op("U", loc, _access(at), new=new)


def cas(loc: str, old: int, new: int, at: Access | Order) -> Op:
    """A compare-and-swap. It has succeeded if the value that it is sent is `old`; if not, it is a relaxed load."""
    return update(loc, lambda seen: new if seen == old else None, at)


def wait_for(is_met: bool) -> None:
    """The thread does not go on from here with other values: they are not of interest, or it waits."""
    if not is_met:
        raise Stuck


class Path(NamedTuple):
    """One way through a thread."""

    events: tuple[Event, ...]
    registers: dict[str, int]
    is_stuck: bool = False


@dataclass(frozen=True)
class Program:
    """A litmus test: threads, the orderings of their places, and the outcome that must not be."""

    name: str
    threads: tuple[Thread, ...]
    bad: Callable[[SimpleNamespace], bool]
    """Whether the registers of all threads are a bad outcome."""
    bad_memory: Callable[[dict[str, int]], bool] = lambda _: True
    """Whether the last value of each location is one as well."""
    init: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)

    def with_order(self, site: str, order: Order) -> Program:
        return replace(self, orders={**self.orders, site: order})

    def bodies(self) -> list[Callable[[], Steps]]:
        accesses = SimpleNamespace(**{site: Access(site, order) for site, order in self.orders.items()})
        return [lambda body=body: body(accesses) for body in self.threads]

    def paths(self) -> list[list[Path]]:
        """All paths of each thread, for all values that any thread may write.

        A value may depend on others; a chain of such values is no longer than there are writes.
        """
        values: dict[str, set[int]] = {}
        paths: list[list[Path]] = []
        rounds = 0
        while True:
            before = sum(map(_most_writes, paths))
            paths = [list(_paths(body, number, values, self.init)) for number, body in enumerate(self.bodies())]
            found, rounds = _values_written(paths), rounds + 1
            if found == values or rounds > 1 + before:
                return [[path for path in thread if not path.is_stuck] for thread in paths]
            values = found


def _most_writes(paths: list[Path]) -> int:
    return max((sum(event.kind == "W" for event in path.events) for path in paths), default=0)


def _values_written(paths: list[list[Path]]) -> dict[str, set[int]]:
    values: dict[str, set[int]] = {}
    for event in (event for thread in paths for path in thread for event in path.events):
        if event.kind == "W":
            values.setdefault(event.loc, set()).add(event.value)
    return values


def _paths(
    body: Callable[[], Steps], thread: int, values: Mapping[str, set[int]], init: Mapping[str, int]
) -> Iterator[Path]:
    pending: list[tuple[int, ...]] = [()]
    while pending:
        choices = pending.pop()
        outcome = _run(body(), thread, choices)
        if isinstance(outcome, str):
            seen = values.get(outcome, set()) | {init.get(outcome, 0)}
            pending.extend((*choices, value) for value in sorted(seen, reverse=True))
        else:
            yield outcome


def _run(steps: Steps, thread: int, choices: tuple[int, ...]) -> Path | str:
    """Runs a thread with the values that its reads return. A location: it reads that one next."""
    events: list[Event] = []
    left, sent = list(choices), None
    try:
        while True:
            op = steps.send(sent)
            sent = None
            if op.kind in "RU":
                if not left:
                    return op.loc
                sent = left.pop(0)
            events.extend(_events(op, thread, sent or 0))
    except StopIteration as end:
        return Path(tuple(events), end.value or {})
    except Stuck:
        return Path(tuple(events), {}, is_stuck=True)


def _events(op: Op, thread: int, seen: int) -> list[Event]:
    site, order = op.access
    if op.kind == "F":
        return [] if order is NONE else [Event(thread, "F", order, "", 0, site)]
    if op.kind != "U":
        return [Event(thread, op.kind, order, op.loc, seen if op.kind == "R" else op.value, site)]
    stored = op.new(seen) if op.new else None
    if stored is None:
        return [Event(thread, "R", RLX, op.loc, seen, site)]
    reads = order if order in (ACQ, ACQREL, SC) else RLX
    writes = order if order in (REL, ACQREL, SC) else RLX
    return [
        Event(thread, "R", ACQ if reads is ACQREL else reads, op.loc, seen, site, True),
        Event(thread, "W", REL if writes is ACQREL else writes, op.loc, stored, site, True),
    ]
