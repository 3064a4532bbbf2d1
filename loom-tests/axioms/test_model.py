"""The checks of the memory model: first of itself, then of the crate's protocols."""

import unittest
from collections.abc import Iterator
from typing import NamedTuple

import protocols
from litmus import TESTS
from programs import ACQ, ACQREL, NONE, REL, RLX, SC, Order
from protocols import Place, Protocol
from rc11 import RC11, WEAKEST, Execution, Model, counterexample, describe
from source import Assumed, Site

PROTOCOLS = [make() for make in protocols.ALL]
# With 21 events, this one takes seconds for each weaker ordering.
LARGE = {protocols.two_producers_against_flush().program.name}

UNNEEDED = {
    "src/fallible.rs, `swap`: `place.swap(`: SeqCst to AcqRel":
        "Both sides swap the slot: a swap that finds nothing is acquired by the one that puts the box in.",
    "src/delay_queue/waiters.rs, `register`: `is_awaited.swap(`: AcqRel to Acquire":
        "The mutex orders the waker: no shard takes the lock before the consumer whose flag it has seen.",
    "src/delay_queue/waiters.rs, `wake_all`: `is_awaited.swap(`: AcqRel to Release": "The same.",
    "src/delay_queue/entry.rs, `note_end`: `has_ended.store(`: Release to Relaxed":
        "A take that misses a push is acquired by it, so it cannot have seen what follows the push.",
    "src/delay_queue/entry.rs, `has_ended`: `has_ended.load(`: Acquire to Relaxed": "The same.",
}  # fmt: skip


WEAKER = {SC: (ACQREL,), ACQREL: (REL, ACQ), REL: (RLX,), ACQ: (RLX,)}


def is_fence(place: Place) -> bool:
    text = place.reason if isinstance(place, Assumed) else place.code
    return "fence(" in text or "membarrier" in text or isinstance(place, Site) and place.nth > 0


def without(protocol: Protocol, site: str, model: Model = WEAKEST) -> Execution | None:
    """What goes wrong without the fence, or with a relaxed access instead of that ordering."""
    order = NONE if is_fence(protocol.sites[site]) else RLX
    return counterexample(protocol.program.with_order(site, order), model)


class Weakening(NamedTuple):
    """An ordering of the source and a weaker one."""

    place: Site
    order: Order

    def __str__(self) -> str:
        return f"{self.place}: {self.place.order().value} to {'no fence' if self.order is NONE else self.order.value}"


def weakenings(place: Site) -> Iterator[Weakening]:
    """The next weaker orderings."""
    order = place.order()
    if is_fence(place):
        yield from (Weakening(place, weaker) for weaker in (ACQREL, NONE))
    else:
        yield from (Weakening(place, weaker) for weaker in WEAKER.get(order, ()))


def unneeded(protocols: list[Protocol]) -> list[Weakening]:
    """The weakenings that no protocol with that ordering notices."""
    places = dict.fromkeys(place for each in protocols for place in each.sites.values() if isinstance(place, Site))
    return [each for place in places for each in weakenings(place) if not _is_noticed(each, protocols)]


def _is_noticed(weakening: Weakening, protocols: list[Protocol]) -> bool:
    sites = ((each, site) for each in protocols for site, place in each.sites.items() if place == weakening.place)
    changed = (each.program.with_order(site, weakening.order) for each, site in sites)
    return any(counterexample(program, WEAKEST) is not None for program in changed)


class KnownVerdicts(unittest.TestCase):
    """The models agree with what is published."""

    def test_verdicts(self) -> None:
        for litmus in TESTS:
            for model, allowed in litmus.verdicts().items():
                with self.subTest(litmus.program.name, model=model.name):
                    self.assertEqual(counterexample(litmus.program, model) is not None, allowed)


class Protocols(unittest.TestCase):
    """No execution of a protocol ends badly, and each ordering that matters is missed."""

    def test_they_hold(self) -> None:
        # The weakest model allows each execution that the others allow.
        for each in PROTOCOLS:
            with self.subTest(each.program.name):
                found = counterexample(each.program, WEAKEST)
                self.assertIsNone(found, found and describe(found))

    def test_each_needs_its_orderings(self) -> None:
        for each in PROTOCOLS:
            for site in each.needed:
                with self.subTest(each.program.name, without=site):
                    self.assertIsNotNone(without(each, site))

    def test_each_pair_needs_both_fences_in_the_published_model(self) -> None:
        for make in protocols.PAIRS:
            each = make()
            fences = [site for site in each.needed if site.endswith("fence")]
            self.assertEqual(len(fences), 2, each.program.name)
            for site in fences:
                with self.subTest(each.program.name, without=site):
                    self.assertIsNotNone(without(each, site, RC11))

    def test_each_ordering_that_could_be_weaker_has_a_reason(self) -> None:
        few = [each for each in PROTOCOLS if each.program.name not in LARGE]
        self.assertEqual([str(each) for each in unneeded(few)], list(UNNEEDED))


if __name__ == "__main__":
    unittest.main()
