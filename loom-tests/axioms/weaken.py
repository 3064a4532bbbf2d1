"""Weaker orderings: each one that a protocol's source could have instead, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from programs import ACQ, ACQREL, NONE, REL, RLX, SC, Order
from protocols import Place, Protocol
from rc11 import WEAKEST, Execution, Model, counterexample
from source import Assumed, Site

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
