#!/usr/bin/env python3
"""Weakens one memory ordering of the crate at a time, and runs what ORDERINGS.md names beside it.

    orderings.py                 whether the table has each ordering of the source, and no other: seconds
    orderings.py PATTERN ...     tries the rows that have one of the patterns (regular expressions) in them
    orderings.py --rows          what the table should have, a row for each weaker ordering

A row says what notices a weaker ordering: `loom FILE MODEL`, `tsan lib TEST`, `tsan shard TEST`, or `axioms` with the
protocol's name in brackets. Of a row that says `nothing` or `untried`, all models are run (with one preemption)
and the axioms; of `nothing` none may fail. The source is changed in place and restored, also where the program is
stopped. It fails where a row is not as the table has it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TABLE = HERE / "ORDERINGS.md"

STRONG = re.compile(r"\bOrdering::(Acquire|Release|AcqRel|SeqCst)\b")
WEAKER = {"Acquire": ("Relaxed",), "Release": ("Relaxed",), "AcqRel": ("Acquire", "Release"), "SeqCst": ("AcqRel",)}
# What ThreadSanitizer needs, as in .ci/run.
TSAN = (
    "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg crossbeam_sanitize --cfg crossbeam_sanitize_thread"
    " --cfg shardwheel_model"
)
LOOM = {"RUSTFLAGS": "--cfg shardwheel_loom"}


class Row(NamedTuple):
    """A weaker ordering, and where it stands: the file, the function, the line, and which of equal lines."""

    file: str
    function: str
    code: str
    weaker: str

    def __str__(self) -> str:
        code = self.code.replace("|", "\\|")
        return f"| `{self.function}` | `{code}` | {self.weaker} |"


class Place(NamedTuple):
    """Where the ordering begins and ends in the text of its file, and what it becomes."""

    begin: int
    end: int
    becomes: str


def code_of(file: Path) -> str:
    """The text of a file, with spaces in place of comments; what is for tests alone is left out."""
    text = re.split(r"^#\[cfg\((?:all\()?test\b.*\]\n(?:#.*\n)*mod \w+ \{", file.read_text(), flags=re.MULTILINE)[0]
    return re.sub(r"//.*", lambda comment: " " * len(comment[0]), text)


def weaker(order: str, line: str) -> tuple[str, ...]:
    """The next weaker orderings that the operation of a line allows."""
    if "fence(" in line:
        return {"SeqCst": ("AcqRel", "removed"), "AcqRel": ("Acquire", "Release", "removed")}.get(order, ("removed",))
    if order == "SeqCst" and ".load(" in line:
        return ("Acquire",)
    return ("Release",) if order == "SeqCst" and ".store(" in line else WEAKER[order]


def rows_of(file: Path) -> Iterator[tuple[Row, Place]]:
    text, seen = code_of(file), Counter()
    for found in STRONG.finditer(text):
        begin, end = text.rfind("\n", 0, found.start()) + 1, text.index("\n", found.end())
        before, line = text[:begin], text[begin:end].strip()
        owners = re.findall(r"^impl(?:<[^{]*?>)? (?:[\w:]+(?:<[^{]*?>)? for )?(\w+)", before, re.MULTILINE)
        names = re.findall(r"\bfn (\w+)", text[:end])
        is_free = re.search(r"^(?:pub(?:\([^)]*\))? )?(?:unsafe |const )*fn \w+(?![\s\S]*^impl)", before, re.MULTILINE)
        function = names[-1] if is_free or not owners else f"{owners[-1]}::{names[-1]}"
        order = found[1]
        for next_one in weaker(order, line):
            is_fence = next_one == "removed"
            start, stop = (text.rindex(line, 0, end), end) if is_fence else found.span(1)
            row = Row(file.relative_to(ROOT).as_posix(), function, line, f"{order} -> {next_one}")
            seen[row] += 1
            if seen[row] > 1:
                row = row._replace(weaker=f"{row.weaker} ({seen[row]})")
            yield row, Place(start, stop, "" if is_fence else next_one)


def of_source() -> dict[Row, Place]:
    files = sorted(ROOT.glob("src/**/*.rs"))
    return dict(each for file in files if "tests" not in (file.stem, file.parent.name) for each in rows_of(file))


def of_table() -> dict[Row, str]:
    """What notices each weaker ordering."""
    rows, file = {}, ""
    for line in TABLE.read_text().splitlines():
        if match := re.fullmatch(r"## (src/\S+)", line):
            file = match[1]
        elif match := re.fullmatch(r"\| `(.+?)` \| `(.+?)` \| (\w+ -> [^|]+?) \| (.+) \|", line):
            function, code, weakened, noticed = match.groups()
            rows[Row(file, function, code.replace("\\|", "|"), weakened)] = noticed
    return rows


def commands(noticed: str) -> list[tuple[list[str], Path, dict[str, str]]]:
    """What is run for a row: each command, its folder and its environment."""
    axioms = ([sys.executable, "-m", "unittest", "test_model.Protocols.test_they_hold"], HERE / "axioms", {})
    models = ["cargo", "test", "--release", "--locked"]
    tool, *words = noticed.split(":")[0].replace("`", "").split()
    match tool:
        case "loom":
            return [([*models, "--test", words[0], words[1]], HERE, LOOM)]
        case "tsan":
            target = ["--lib"] if words[0] == "lib" else ["--test", words[0]]
            host = re.search(r"host: (\S+)", subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout)[1]
            command = ["cargo", "+nightly", "test", "-Zbuild-std", "--locked", "--target", host, *target, words[1]]
            own = {"RUSTFLAGS": TSAN, "CARGO_TARGET_DIR": str(ROOT / "target/thread"), "TSAN_OPTIONS": "halt_on_error=1"}
            return [(command, ROOT, own)]
        case "axioms":
            return [axioms]
        case "nothing" | "untried":
            return [(models, HERE, LOOM | {"LOOM_MAX_PREEMPTIONS": "1"}), axioms]
    raise ValueError(f"there is no tool {tool!r}")


def is_noticed(row: Row, place: Place, noticed: str) -> str:
    """The command that fails with the weaker ordering; empty if all pass."""
    path = ROOT / row.file
    text = path.read_text()
    try:
        path.write_text(text[: place.begin] + place.becomes + text[place.end :])
        for command, folder, environment in commands(noticed):
            environment = os.environ | {"RUST_BACKTRACE": "0"} | environment
            ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if "error: could not compile" in ran.stderr:
                sys.exit(f"{row} does not build:\n{ran.stderr[-3000:]}")
            if ran.returncode == 0 and "cargo" in command[0] and not re.search(r"\b[1-9]\d* passed", ran.stdout):
                sys.exit(f"{row}: there is no such test: {noticed}")
            if ran.returncode != 0:
                return " ".join(command)
    finally:
        path.write_text(text)
    return ""


def check(source: dict[Row, Place], table: dict[Row, str]) -> bool:
    missing, stale = [row for row in source if row not in table], [row for row in table if row not in source]
    for what, rows in (("is not in the table", missing), ("is not in the source", stale)):
        for row in rows:
            print(f"{what}: {row.file}: {row}")
    return not missing and not stale


def main(patterns: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    source, table = of_source(), of_table()
    if patterns == ["--rows"]:
        file = ""
        for row in source:
            if row.file != file:
                print(f"\n## {row.file}\n\n| function | line | weakened | noticed by |\n|---|---|---|---|")
            file = row.file
            print(row, table.get(row, "?"), "|")
        return 0
    if not patterns:
        is_whole = check(source, table)
        print(f"{len(table)} rows:", dict(Counter(how.split()[0].strip("`:") for how in table.values())))
        return 0 if is_whole else 1
    wrong = 0
    for row, how in table.items():
        if row in source and any(re.search(pattern, f"{row.file} {row} {how}") for pattern in patterns):
            by = is_noticed(row, source[row], how)
            as_said = bool(by) != how.startswith("nothing") or how.startswith("untried")
            wrong += not as_said
            said, seen = "as the table has it" if as_said else "WRONG", f"noticed by {by}" if by else "not noticed"
            print(f"{said}: {row.file}: {row} {seen}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
