"""The orderings as the crate's source has them, so that no model keeps an ordering that has changed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from programs import Order

ROOT = Path(__file__).resolve().parents[2]


class Site(NamedTuple):
    """An ordering in the source: the first (or `nth`) that follows `code` in a function of a file.

    The function has this code once. Without a function, the file has it once.
    """

    file: str
    function: str
    code: str
    nth: int = 0

    def order(self) -> Order:
        body = function_body(self.file, self.function)
        if body.count(self.code) != 1:
            raise LookupError(f"{self}: it stands there {body.count(self.code)} times")
        found = re.findall(r"Ordering::(\w+)", body[body.index(self.code) :])
        return Order(found[self.nth])

    def __str__(self) -> str:
        return f"src/{self.file}, `{self.function}`: `{self.code}`"


@cache
def function_body(file: str, function: str) -> str:
    """The text of the first function of that name, without its line comments."""
    text = re.sub(r"//.*", "", (ROOT / "src" / file).read_text())
    if not function:
        return text
    begin = re.search(rf"fn {re.escape(function)}\b", text)
    if begin is None:
        raise LookupError(f"src/{file} has no function {function}")
    start = text.index("{", begin.end())
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start : at + 1]
    raise LookupError(f"src/{file}: {function} does not end")
