"""Prints the verdicts, and a counterexample for each fence or ordering that is taken out.

python3 show.py           each protocol and what it needs
python3 show.py sleep     also the counterexamples of those whose name has this word
"""

import sys

import protocols
from litmus import TESTS
from rc11 import CPP20, RC11, WEAKEST, counterexample, describe
from weaken import unneeded, without

WORDS = {True: "allowed", False: "forbidden"}


def show_litmus() -> None:
    print(f"{'litmus test':64} published  C++20      no axiom of thin air")
    for litmus in TESTS:
        verdicts = [WORDS[counterexample(litmus.program, model) is not None] for model in (RC11, CPP20, WEAKEST)]
        print(f"{litmus.program.name:64} {verdicts[0]:10} {verdicts[1]:10} {verdicts[2]}")


def show_protocol(each: protocols.Protocol, in_full: bool) -> None:
    holds = counterexample(each.program, WEAKEST) is None
    print(f"{each.program.name}: {'holds' if holds else 'FAILS'}")
    for site in each.needed:
        found = without(each, site)
        print(f"  without `{site}` ({each.sites[site]}): {'fails' if found else 'HOLDS'}")
        if found and in_full:
            print(describe(found))


def main(words: list[str]) -> None:
    show_litmus()
    every = [make() for make in protocols.ALL]
    for each in every:
        show_protocol(each, any(word in each.program.name for word in words))
    print("no protocol notices:")
    for each in unneeded([each for each in every if "two producers" not in each.program.name]):
        print(f"  {each}")


if __name__ == "__main__":
    main(sys.argv[1:])
