"""RC11, by enumeration: every execution of a small program, and whether the axioms allow it.

The axioms are those of Lahav, Vafeiadis, Kang, Hur and Dreyer, *Repairing Sequential Consistency in
C/C++11*, PLDI 2017: coherence, atomicity and SC (psc, with fences). A relation is a list of rows;
row `i` is a set of events as bits of an `int`.

The model is weaker than the published one twice over, so it allows each of its executions and more.
Rust has the memory model of C++20, whose release sequences lack the later stores of the same
thread. And neither Rust nor processors have the axiom of no thin air: they let a load take the
value of a store that depends on nothing before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from types import SimpleNamespace
from typing import NamedTuple

from programs import PLAIN, SC, Event, Path, Program

Relation = list[int]


def bits(row: int) -> Iterator[int]:
    while row:
        low = row & -row
        yield low.bit_length() - 1
        row ^= low


def compose(first: Relation, second: Relation) -> Relation:
    rows = []
    for row in first:
        reached = 0
        for step in bits(row):
            reached |= second[step]
        rows.append(reached)
    return rows


def union(*relations: Relation) -> Relation:
    rows = [0] * len(relations[0])
    for relation in relations:
        rows = [row | more for row, more in zip(rows, relation)]
    return rows


def optional(relation: Relation) -> Relation:
    return [row | 1 << at for at, row in enumerate(relation)]


def closure(relation: Relation) -> Relation:
    rows = list(relation)
    for middle in range(len(rows)):
        reached, bit = rows[middle], 1 << middle
        for at, row in enumerate(rows):
            if row & bit:
                rows[at] = row | reached
    return rows


def restrict(sources: int, relation: Relation, targets: int) -> Relation:
    return [row & targets if sources >> at & 1 else 0 for at, row in enumerate(relation)]


def is_acyclic(relation: Relation) -> bool:
    return not any(row >> at & 1 for at, row in enumerate(closure(relation)))


class Frame:
    """The events of one path of each thread: all that does not depend on who reads from where."""

    def __init__(self, program: Program, paths: tuple[Path, ...]) -> None:
        own = [event for path in paths for event in path.events]
        locations = sorted({event.loc for event in own if event.loc})
        initial = [Event(-1, "W", PLAIN, loc, program.init.get(loc, 0), "init") for loc in locations]
        self.events = initial + own
        self.registers = SimpleNamespace(**{name: value for path in paths for name, value in path.registers.items()})
        self.all = (1 << len(self.events)) - 1
        self.sb = self._sequenced_before()
        self.same_loc = self._same_location()
        self.writes = {
            loc: [at for at, e in enumerate(self.events) if e.kind == "W" and e.loc == loc] for loc in locations
        }
        self.reads = [at for at, e in enumerate(self.events) if e.kind == "R"]
        self.sc = self._set(lambda e: e.order is SC)
        self.sc_fences = self._set(lambda e: e.order is SC and e.kind == "F")

    def _set(self, has: Callable[[Event], bool]) -> int:
        return sum(1 << at for at, event in enumerate(self.events) if has(event))

    def _sequenced_before(self) -> Relation:
        def before(first: int, second: int) -> bool:
            one, other = self.events[first].thread, self.events[second].thread
            return one != other and one == -1 or one == other != -1 and first < second

        size = range(len(self.events))
        return [sum(1 << second for second in size if before(first, second)) for first in size]

    def _same_location(self) -> Relation:
        located: dict[str, int] = {}
        for at, event in enumerate(self.events):
            if event.loc:
                located[event.loc] = located.get(event.loc, 0) | 1 << at
        return [located.get(event.loc, 0) for event in self.events]

    def sources(self) -> Iterator[dict[int, int]]:
        """Each way in which the reads may get their values."""
        choices = []
        for at in self.reads:
            read = self.events[at]
            own = at + 1 if read.is_rmw else None
            choices.append([w for w in self.writes[read.loc] if self.events[w].value == read.value and w != own])
        for chosen in product(*choices):
            yield dict(zip(self.reads, chosen))

    def release_sequences(self, rf: dict[int, int]) -> Relation:
        """For each write, the writes whose readers synchronise with it: its own, and the changes of it in a row."""
        step = [0] * len(self.events)
        for read, write in rf.items():
            if self.events[read].is_rmw:
                step[write] |= 1 << (read + 1)
        return optional(closure(step))

    def synchronizes_with(self, rf: dict[int, int]) -> Relation:
        sw, sequences = [0] * len(self.events), self.release_sequences(rf)
        for read, write in rf.items():
            if self.events[read].order is PLAIN:
                continue
            targets = self._acquire_ends(read)
            for head in (at for at, row in enumerate(sequences) if row >> write & 1):
                for source in bits(self._release_ends(head)):
                    sw[source] |= targets
        return sw

    def _release_ends(self, head: int) -> int:
        if self.events[head].order is PLAIN:
            return 0
        ends = 1 << head if self.events[head].order.releases else 0
        for at, event in enumerate(self.events):
            if event.kind == "F" and event.order.releases and self.sb[at] >> head & 1:
                ends |= 1 << at
        return ends

    def _acquire_ends(self, read: int) -> int:
        ends = 1 << read if self.events[read].order.acquires else 0
        for at in bits(self.sb[read]):
            if self.events[at].kind == "F" and self.events[at].order.acquires:
                ends |= 1 << at
        return ends


class Orders(NamedTuple):
    """How the writes of one location follow each other, and what comes of it."""

    mo: Relation
    rb: Relation
    eco: Relation
    last: int


class Execution(NamedTuple):
    """A consistent execution."""

    frame: Frame
    rf: dict[int, int]
    hb: Relation
    orders: tuple[Orders, ...]

    def memory(self) -> dict[str, int]:
        last = [self.frame.events[orders.last] for orders in self.orders]
        return {event.loc: event.value for event in last}

    def race(self) -> tuple[int, int] | None:
        """Two accesses of one location, unordered, one of them a write and one of them plain."""
        events = self.frame.events
        for one, other in ((i, j) for j in range(len(events)) for i in range(j)):
            first, second = events[one], events[other]
            is_conflict = first.loc and first.loc == second.loc and "W" in (first.kind, second.kind)
            is_plain = PLAIN in (first.order, second.order) and first.thread != second.thread
            is_ordered = self.hb[one] >> other & 1 or self.hb[other] >> one & 1
            if is_conflict and is_plain and not is_ordered:
                return one, other
        return None


def _orders_of(frame: Frame, rf: dict[int, int], hb: Relation, writes: list[int]) -> Iterator[Orders]:
    """The orders of the writes of one location that coherence and atomicity allow."""
    for rest in permutations(writes[1:]):
        chain = [writes[0], *rest]
        if any(hb[later] >> earlier & 1 for at, later in enumerate(chain) for earlier in chain[:at]):
            continue
        orders = _follow(frame, rf, chain)
        is_coherent = not any(hb[to] >> at & 1 for at, row in enumerate(orders.eco) for to in bits(row | 1 << at))
        if is_coherent and _is_atomic(frame, rf, chain):
            yield orders


def _follow(frame: Frame, rf: dict[int, int], chain: list[int]) -> Orders:
    size = len(frame.events)
    mo, rb, from_writes = [0] * size, [0] * size, [0] * size
    for at, write in enumerate(chain):
        mo[write] = sum(1 << later for later in chain[at + 1 :])
    for read, write in rf.items():
        if write in chain:
            from_writes[write] |= 1 << read
            rb[read] = mo[write] & ~(1 << read)
    return Orders(mo, rb, closure(union(mo, rb, from_writes)), chain[-1])


def _is_atomic(frame: Frame, rf: dict[int, int], chain: list[int]) -> bool:
    """No write comes between the one that a read-modify-write reads and its own."""
    place = {write: at for at, write in enumerate(chain)}
    changed = [read for read in rf if frame.events[read].is_rmw and rf[read] in place]
    return all(place[read + 1] == place[rf[read]] + 1 for read in changed)


def _is_sc(frame: Frame, hb: Relation, orders: tuple[Orders, ...]) -> bool:
    """The axiom SC: psc has no cycle."""
    if not frame.sc:
        return True
    everything, mo = frame.all, union(*(each.mo for each in orders))
    rb, eco = union(*(each.rb for each in orders)), union(*(each.eco for each in orders))
    elsewhere = [row & ~same for row, same in zip(frame.sb, frame.same_loc)]
    here = [row & same for row, same in zip(hb, frame.same_loc)]
    scb = union(frame.sb, compose(compose(elsewhere, hb), elsewhere), here, mo, rb)
    identity = [1 << at for at in range(len(frame.events))]
    before = union(restrict(frame.sc, identity, everything), restrict(frame.sc_fences, optional(hb), everything))
    after = union(restrict(everything, identity, frame.sc), restrict(everything, optional(hb), frame.sc_fences))
    base = compose(compose(before, scb), after)
    between = union(hb, compose(compose(hb, eco), hb))
    return is_acyclic(union(base, restrict(frame.sc_fences, between, frame.sc_fences)))


def executions(frame: Frame) -> Iterator[Execution]:
    """All consistent executions of these paths."""
    for rf in frame.sources():
        hb = closure(union(frame.sb, frame.synchronizes_with(rf)))
        if any(row >> at & 1 for at, row in enumerate(hb)):
            continue
        each = [list(_orders_of(frame, rf, hb, writes)) for writes in frame.writes.values()]
        for orders in product(*each):
            if _is_sc(frame, hb, orders):
                yield Execution(frame, rf, hb, orders)


def counterexample(program: Program) -> Execution | None:
    """A consistent execution that ends badly, by its values or by a race; `None` if there is none."""
    for paths in product(*program.paths()):
        frame = Frame(program, paths)
        has_bad_registers = program.bad(frame.registers)
        if not has_bad_registers and not any(event.order is PLAIN for path in paths for event in path.events):
            continue
        for execution in executions(frame):
            if has_bad_registers and program.bad_memory(execution.memory()) or execution.race():
                return execution
    return None


def describe(execution: Execution) -> str:
    """The execution, a line for each event: what it does, and where its value comes from."""
    events, lines = execution.frame.events, []
    names = [f"{chr(ord('a') + at)}" if at < 26 else f"a{chr(ord('a') + at - 26)}" for at in range(len(events))]
    for at, event in enumerate(events):
        if event.thread < 0:
            lines.append(f"  {names[at]}: {event.loc} = {event.value} at first")
            continue
        source = f"  from {names[execution.rf[at]]}" if at in execution.rf else ""
        what = {"R": f"reads {event.loc} = {event.value}", "W": f"writes {event.loc} = {event.value}", "F": "fence"}
        rmw = " (read-modify-write)" if event.is_rmw else ""
        where = f"  [{event.site}]" if event.site else ""
        lines.append(
            f"  {names[at]}: thread {event.thread}: {what[event.kind]}, {event.order.value}{rmw}{source}{where}"
        )
    lines.append(f"  in the end: {execution.memory()}")
    if race := execution.race():
        lines.append(f"  data race: {names[race[0]]} and {names[race[1]]}")
    return "\n".join(lines)
