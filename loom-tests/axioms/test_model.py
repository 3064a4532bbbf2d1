"""The checks of the memory model: first of itself, then of the crate's protocols."""

import unittest

import protocols
from litmus import TESTS
from rc11 import RC11, WEAKEST, counterexample, describe
from smt import is_reachable
from weaken import unneeded, without

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


class KnownVerdicts(unittest.TestCase):
    """The models agree with what is published."""

    def test_enumeration(self) -> None:
        for litmus in TESTS:
            for model, allowed in litmus.verdicts().items():
                with self.subTest(litmus.program.name, model=model.name):
                    self.assertEqual(counterexample(litmus.program, model) is not None, allowed)

    def test_formulas(self) -> None:
        for litmus in TESTS:
            verdicts = litmus.verdicts()
            differing = {model: allowed for model, allowed in verdicts.items() if allowed != verdicts[RC11]}
            for model, allowed in {RC11: verdicts[RC11], **differing}.items():
                with self.subTest(litmus.program.name, model=model.name):
                    self.assertEqual(is_reachable(litmus.program, model), allowed)


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

    def test_formulas_agree(self) -> None:
        for each in (make() for make in protocols.PAIRS if make is not protocols.schedule_against_the_end):
            with self.subTest(each.program.name):
                self.assertFalse(is_reachable(each.program, WEAKEST))

    def test_each_ordering_that_could_be_weaker_has_a_reason(self) -> None:
        few = [each for each in PROTOCOLS if each.program.name not in LARGE]
        self.assertEqual([str(each) for each in unneeded(few)], list(UNNEEDED))


if __name__ == "__main__":
    unittest.main()
