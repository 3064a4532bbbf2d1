"""The checks of the memory model: first of itself, then of the crate's protocols."""

import unittest

from litmus import TESTS, program
from programs import ACQREL, RLX, SC
from protocols import ALL
from rc11 import counterexample, describe


class KnownVerdicts(unittest.TestCase):
    """The model agrees with what is published."""

    def test_verdicts(self) -> None:
        for name, allowed, threads, outcome in TESTS:
            with self.subTest(name):
                self.assertEqual(counterexample(program(name, threads, outcome)) is not None, allowed)


class Protocols(unittest.TestCase):
    """No execution of a protocol ends badly, and each ordering that matters is missed."""

    def test_they_hold(self) -> None:
        for each in ALL:
            with self.subTest(each.program.name):
                found = counterexample(each.program)
                self.assertIsNone(found, found and describe(found))

    def test_each_needs_its_orderings(self) -> None:
        for each in ALL:
            for site in each.needed:
                weaker = ACQREL if each.program.orders[site] is SC else RLX
                with self.subTest(each.program.name, weaker=site):
                    self.assertIsNotNone(counterexample(each.program.with_order(site, weaker)))


if __name__ == "__main__":
    unittest.main()
