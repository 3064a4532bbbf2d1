"""The same axioms once more, as formulas for z3: a second opinion on `rc11`.

The two share the paths of the threads, and nothing of the axioms. Here reads-from and the order of
the writes are unknowns. A derived relation, such as happens-before, is any relation that contains
what it must contain; since each axiom and each bad outcome only becomes harder to satisfy with a
larger relation, z3 finds an execution exactly if the least relations allow one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import z3
from programs import PLAIN, Program
from rc11 import Frame, Model, frames

Cells = dict[tuple[int, int], z3.BoolRef]


class Formulas:
    """The formulas that say that an execution of a frame is consistent and ends badly."""

    def __init__(self, program: Program, frame: Frame, model: Model) -> None:
        self.program, self.frame, self.model = program, frame, model
        self.events, self.solver = frame.events, z3.Solver()
        self.size = range(len(frame.events))
        self.place = [z3.Int(f"mo{at}") for at in self.size]
        self.rf: Cells = {}
        self._reads_from()
        self._modification_order()
        self.hb = self._happens_before()
        self.mo = {(i, j): self.place[i] < self.place[j] for i, j in self._pairs("W", "W")}
        self.rb = self._reads_before()
        self.eco = self._extended_coherence()
        self._coherence_and_atomicity()
        self._sequential_consistency()
        if model.has_no_thin_air:
            self._no_thin_air()
        self.solver.add(z3.Or(self._ends_badly(), self._races()))

    def is_before(self, i: int, j: int) -> bool:
        return bool(self.frame.sb[i] >> j & 1)

    def _pairs(self, one: str, other: str) -> list[tuple[int, int]]:
        """Pairs of accesses of one location and of these kinds."""

        def fits(i: int, j: int) -> bool:
            kinds = (self.events[i].kind, self.events[j].kind) == (one, other)
            return kinds and i != j and self.events[i].loc == self.events[j].loc

        return [(i, j) for i in self.size for j in self.size if fits(i, j)]

    def _relation(self, name: str) -> Cells:
        return {(i, j): z3.Bool(f"{name}{i}_{j}") for i in self.size for j in self.size}

    def _reads_from(self) -> None:
        for i, j in self._pairs("W", "R"):
            if self.events[i].value == self.events[j].value:
                self.rf[i, j] = z3.Bool(f"rf{i}_{j}")
        for j in self.frame.reads:
            sources = [cell for (_, read), cell in self.rf.items() if read == j]
            self.solver.add(z3.PbEq([(cell, 1) for cell in sources], 1) if sources else False)

    def _modification_order(self) -> None:
        for writes in self.frame.writes.values():
            self.solver.add(z3.Distinct([self.place[at] for at in writes]))
            self.solver.add([self.place[writes[0]] < self.place[at] for at in writes[1:]])

    def _sequences(self) -> dict[tuple[int, int], z3.BoolRef]:
        """Whether a write is in the release sequence of another, by the longest chain there can be."""
        writes = [at for at in self.size if self.events[at].kind == "W"]
        rmws = [at for at in writes if self.events[at].is_rmw]

        def begins(i: int, j: int) -> bool:
            own = self.model.has_long_release_sequences and self.events[i].thread >= 0 and self.is_before(i, j)
            same = self.events[i].loc == self.events[j].loc
            return self.events[j].order is not PLAIN and (i == j or own and same)

        cells = {(i, j): z3.BoolVal(begins(i, j)) for i in writes for j in writes}
        for _ in rmws:
            for i in writes:
                for j in rmws:
                    more = [z3.And(cells[i, k], self.rf[k, j - 1]) for k in writes if (k, j - 1) in self.rf]
                    cells[i, j] = z3.simplify(z3.Or(cells[i, j], *more))
        return cells

    def _happens_before(self) -> Cells:
        """Closed under one more step to the right, so it contains each path of steps."""
        hb = self._relation("hb")
        for (j, k), step in self._steps():
            self.solver.add(z3.Implies(step, hb[j, k]))
            self.solver.add([z3.Implies(z3.And(hb[i, j], step), hb[i, k]) for i in self.size])
        self.solver.add([z3.Not(hb[i, i]) for i in self.size])
        return hb

    def _steps(self) -> Iterator[tuple[tuple[int, int], z3.BoolRef]]:
        """The next event of a thread, and what synchronizes."""
        for i, j in product(self.size, self.size):
            if self.is_before(i, j) and not any(self.is_before(i, k) and self.is_before(k, j) for k in self.size):
                yield (i, j), z3.BoolVal(True)
        sequences = self._sequences()
        for (k, read), cell in self.rf.items():
            heads = [(head, within) for (head, end), within in sequences.items() if end == k]
            if self.events[read].order is PLAIN:
                continue
            for head, within in heads:
                for pair in product(self._release_ends(head), self._acquire_ends(read)):
                    yield pair, z3.And(within, cell)

    def _release_ends(self, head: int) -> list[int]:
        fences = [i for i in self.size if self.events[i].kind == "F" and self.is_before(i, head)]
        return [i for i in [head, *fences] if self.events[i].order.releases]

    def _acquire_ends(self, read: int) -> list[int]:
        fences = [i for i in self.size if self.events[i].kind == "F" and self.is_before(read, i)]
        return [i for i in [read, *fences] if self.events[i].order.acquires]

    def _reads_before(self) -> Cells:
        def before(read: int, write: int) -> z3.BoolRef:
            return z3.Or(
                [z3.And(cell, self.place[i] < self.place[write]) for (i, j), cell in self.rf.items() if j == read]
            )

        return {(i, j): before(i, j) for i, j in self._pairs("R", "W")}

    def _extended_coherence(self) -> Cells:
        eco = self._relation("eco")
        for base in (self.rf, self.mo, self.rb):
            self.solver.add([z3.Implies(cell, eco[pair]) for pair, cell in base.items()])
        for (i, j), cell in eco.items():
            if not self.events[i].loc or self.events[i].loc != self.events[j].loc:
                self.solver.add(z3.Not(cell))
                continue
            here = [k for k in self.size if self.events[k].loc == self.events[i].loc]
            self.solver.add([z3.Implies(z3.And(cell, eco[j, k]), eco[i, k]) for k in here])
        return eco

    def _coherence_and_atomicity(self) -> None:
        self.solver.add([z3.Not(z3.And(self.hb[i, j], self.eco[j, i])) for i, j in self.hb])
        for (read, between), cell in self.rb.items():
            if self.events[read].is_rmw and between != read + 1:
                self.solver.add(z3.Not(z3.And(cell, self.place[between] < self.place[read + 1])))

    def _sequential_consistency(self) -> None:
        """psc has no cycle: its events can be numbered so that it only rises."""
        rank = [z3.Int(f"psc{at}") for at in self.size]
        if not self.frame.sc:
            return
        scb = self._scb()
        fences = [i for i in self.size if self.frame.sc_fences >> i & 1]
        before = {i: [(i, z3.BoolVal(True))] for i in self.size if self.frame.sc >> i & 1}
        after = {i: [(i, z3.BoolVal(True))] for i in before}
        for i in fences:
            before[i] += [(j, self.hb[i, j]) for j in self.size]
            after[i] += [(j, self.hb[j, i]) for j in self.size]
        for i in before:
            for j in after:
                base = [z3.And(one, scb[a, b], other) for a, one in before[i] for b, other in after[j]]
                self.solver.add(z3.Implies(z3.Or(base), rank[i] < rank[j]))
        for i in fences:
            for j in fences:
                self.solver.add(z3.Implies(self.hb[i, j], rank[i] < rank[j]))
                through = [z3.And(self.hb[i, a], cell, self.hb[b, j]) for (a, b), cell in self.eco.items()]
                self.solver.add(z3.Implies(z3.Or(through), rank[i] < rank[j]))

    def _scb(self) -> Cells:
        def elsewhere(i: int, j: int) -> bool:
            return self.is_before(i, j) and not (self.events[i].loc and self.events[i].loc == self.events[j].loc)

        def cell(i: int, j: int) -> z3.BoolRef:
            ends = [(a, b) for a in self.size if elsewhere(i, a) for b in self.size if elsewhere(b, j)]
            around = [self.hb[pair] for pair in ends]
            here = [self.hb[i, j]] if self.events[i].loc and self.events[i].loc == self.events[j].loc else []
            derived = [cells[i, j] for cells in (self.mo, self.rb) if (i, j) in cells]
            return z3.Or(z3.BoolVal(self.is_before(i, j)), *around, *here, *derived)

        return {(i, j): cell(i, j) for i in self.size for j in self.size}

    def _no_thin_air(self) -> None:
        rank = [z3.Int(f"time{at}") for at in self.size]
        self.solver.add([rank[i] < rank[j] for i in self.size for j in self.size if self.is_before(i, j)])
        self.solver.add([z3.Implies(cell, rank[i] < rank[j]) for (i, j), cell in self.rf.items()])

    def _ends_badly(self) -> z3.BoolRef:
        if not self.program.bad(self.frame.registers):
            return z3.BoolVal(False)
        return z3.Or(
            [
                z3.And(
                    [
                        self.place[at] <= self.place[last]
                        for last in chosen
                        for at in self.frame.writes[self.events[last].loc]
                    ]
                )
                for chosen in self._last_writes()
                if self.program.bad_memory(
                    self.frame.registers, {self.events[at].loc: self.events[at].value for at in chosen}
                )
            ]
        )

    def _last_writes(self) -> list[tuple[int, ...]]:
        chosen: list[tuple[int, ...]] = [()]
        for writes in self.frame.writes.values():
            chosen = [(*before, last) for before in chosen for last in writes]
        return chosen

    def _races(self) -> z3.BoolRef:
        races = []
        for i, j in combinations(self.size, 2):
            one, other = self.events[i], self.events[j]
            is_conflict = one.loc and one.loc == other.loc and "W" in (one.kind, other.kind)
            if is_conflict and PLAIN in (one.order, other.order) and one.thread != other.thread:
                races.append(z3.Not(z3.Or(self.hb[i, j], self.hb[j, i])))
        return z3.Or(races)


def is_reachable(program: Program, model: Model) -> bool:
    """Whether z3 finds a consistent execution that ends badly."""
    return any(Formulas(program, frame, model).solver.check() == z3.sat for frame in frames(program))
