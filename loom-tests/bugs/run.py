#!/usr/bin/env python3
"""Puts bugs that this project has had back into a copy of the tree, one at a time, and runs the tools on each.

    run.py [--quick] [--planted] [--dir DIR] [--limit SECONDS] [BUG ...]

A BUG is the beginning of a patch's name, as `03`; without one, all of them. `--quick` runs only the first tool that
should find the bug. `--planted` takes the patches in `planted/`: mistakes that were put in on purpose, for Shuttle. DIR
has the copy and the builds; without it, they go when the program ends.

The lines on top of each patch say what went wrong, and what each tool should do: `# found: TOOL ARGUMENTS` or
`# missed: TOOL ARGUMENTS`. The program fails if a patch does not apply, if a tool cannot be built, or if a tool finds
or misses a bug against these lines.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# What the program itself sets, so that a build does not depend on the caller.
SET = {"CARGO_INCREMENTAL": "0", "CARGO_TERM_COLOR": "never", "RUST_BACKTRACE": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class Tool(NamedTuple):
    """A command, relative to a folder of the tree. `{args}` are the words after the tool's name in a patch."""

    folder: str
    command: str
    environment: dict[str, str]
    # A test that does not end has failed; a model that does not end has only more executions.
    hang_is_found: bool = True


LOOM = {"RUSTFLAGS": "--cfg shardwheel_loom"}
SHUTTLE = {
    "RUSTFLAGS": "--cfg shardwheel_shuttle --cfg shardwheel_model",
    "SHARDWHEEL_SCHEDULES": os.environ.get("SHARDWHEEL_SCHEDULES", "3000"),
}
# The bodies of loom's models, natively: each with four schedules of Miri's.
MIRI = {
    "RUSTFLAGS": "--cfg shardwheel_model",
    "SHARDWHEEL_RUNS": "1",
    "MIRIFLAGS": "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-tree-borrows -Zmiri-many-seeds=0..4",
}
SANITIZER = "-Cunsafe-allow-abi-mismatch=sanitizer --cfg crossbeam_sanitize"
ASAN = {"RUSTFLAGS": f"-Zsanitizer=address {SANITIZER}", "ASAN_OPTIONS": "detect_leaks=1"}
TSAN = {
    "RUSTFLAGS": f"-Zsanitizer=thread {SANITIZER} --cfg crossbeam_sanitize_thread --cfg shardwheel_model",
    "TSAN_OPTIONS": "halt_on_error=1",
}
# As in .ci/run: the same profiles and flags.
TOOLS = {
    "tests": Tool(".", "cargo test --locked {args}", {}),
    "simulation": Tool(".", "cargo test --locked --release --test simulation {args}", {"SHARDWHEEL_SIM_SEEDS": "1000"}),
    "stall": Tool(".", "cargo test --locked --release {args}", {"WITH_CFG": "shardwheel_stall"}),
    "loom": Tool("loom-tests", "cargo test --release --locked {args}", LOOM, hang_is_found=False),
    "shuttle": Tool("loom-tests/shuttle", "cargo test --release --locked {args}", SHUTTLE),
    "miri": Tool("loom-tests", "cargo +nightly miri test --locked {args}", MIRI, hang_is_found=False),
    "asan": Tool(".", "cargo +nightly test --locked --target host-tuple {args}", ASAN),
    "tsan": Tool(".", "cargo +nightly test -Zbuild-std --locked --target host-tuple {args}", TSAN),
    # Needs no build. SHARDWHEEL_PYTHON is an interpreter that has z3.
    "axioms": Tool("loom-tests/axioms", "{python} -m unittest -v {args}", {}),
}


class Line(NamedTuple):
    """What a patch says of one tool."""

    is_found: bool
    tool: str
    args: str

    def __str__(self) -> str:
        return f"{self.tool} {self.args}".strip()


@dataclass
class Bug:
    """A patch, and the lines on top of it."""

    name: str
    path: Path
    lines: list[Line]

    @staticmethod
    def read(path: Path) -> Bug:
        lines = []
        for line in path.read_text().splitlines():
            if line.startswith("diff "):
                break
            if match := re.fullmatch(r"# (found|missed): (\S+) ?(.*)", line):
                if match[2] not in TOOLS:
                    sys.exit(f"{path.name}: there is no tool {match[2]}")
                lines.append(Line(match[1] == "found", match[2], match[3]))
        if not any(line.is_found for line in lines) and path.parent == HERE:
            sys.exit(f"{path.name}: no line says which tool finds it")
        return Bug(path.stem, path, lines)


class Outcome(NamedTuple):
    is_found: bool
    seconds: float
    # The test that has failed first, or what else has happened.
    by: str


def copy_tree(tree: Path) -> None:
    """Makes `tree` like the checkout. A file that is the same stays, so that its crate is not built again."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    kept = {tree / name for name in names if name and (ROOT / name).is_file()}
    for file in kept:
        content = (ROOT / file.relative_to(tree)).read_bytes()
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod((ROOT / file.relative_to(tree)).stat().st_mode)
    for folder in ("src", "tests", "loom-tests", "examples", "benches", "compat"):
        for file in (tree / folder).rglob("*.*"):
            if file.is_file() and file not in kept:
                file.unlink()


def apply(bug: Bug, tree: Path) -> bool:
    """Puts the bug into the tree; false if the patch does not fit the code any more."""
    # The tree may lie in a checkout, which git would otherwise take it for.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(["git", "apply", bug.path], cwd=tree, env=environment).returncode == 0


def prepare(line: Line, tree: Path, builds: Path) -> tuple[list[str], Path, dict[str, str]]:
    """The command of a tool, where it runs, and its environment."""
    tool = TOOLS[line.tool]
    environment = os.environ | SET | tool.environment
    # Those without flags of the compiler share what they have built.
    environment["CARGO_TARGET_DIR"] = str(builds / (line.tool if "RUSTFLAGS" in tool.environment else "native"))
    if (cfg := environment.pop("WITH_CFG", None)) is not None:
        wrapper = builds / "cfg" / cfg
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        wrapper.unlink(missing_ok=True)
        wrapper.symlink_to(tree / ".ci/rustc-with-cfg")
        environment["RUSTC_WORKSPACE_WRAPPER"] = str(wrapper)
    python = os.environ.get("SHARDWHEEL_PYTHON", sys.executable)
    command = tool.command.format(args=line.args, python=python)
    return command.split(), tree / tool.folder, environment


def build(line: Line, command: list[str], folder: Path, environment: dict[str, str]) -> bool:
    if line.tool == "axioms":
        return True
    cut = command.index("--") if "--" in command else len(command)
    built = subprocess.run(
        [*command[:cut], "--no-run"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if built.returncode != 0:
        print(built.stdout[-3000:], file=sys.stderr)
    return built.returncode == 0


# A line of libtest or of unittest about a test that has failed.
FAILED = re.compile(r"^test (\S+).*\bFAILED$|^\s*(\w+) \(.*\)(?: \[.*\])? \.\.\. (?:FAIL|ERROR)$|^---- (\S+) stdout ----$")
RUNNING_LONG = re.compile(r"^test (\S+) has been running for over")


def run(line: Line, command: list[str], folder: Path, environment: dict[str, str], limit: float, log: Path) -> Outcome:
    """Runs the tool until a test fails, until all have passed, or until the time is up."""
    begin, is_late = time.monotonic(), threading.Event()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip

    def stop() -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end() -> None:
        is_late.set()
        stop()

    timer = threading.Timer(limit, end)
    timer.start()
    failed, slow = None, ""
    try:
        with log.open("w") as output:
            for text in process.stdout:
                output.write(text)
                if match := FAILED.match(text.rstrip()):
                    failed = next(group for group in match.groups() if group)
                    break
                if match := RUNNING_LONG.match(text):
                    slow = match[1]
            else:
                process.wait()
    finally:
        # Nothing of it goes on, also where this program is stopped.
        timer.cancel()
        stop()
    code = process.wait()
    seconds = time.monotonic() - begin
    if failed:
        return Outcome(True, seconds, failed)
    if is_late.is_set():
        return Outcome(TOOLS[line.tool].hang_is_found, seconds, f"{slow or 'a test'} does not end")
    return Outcome(code != 0, seconds, "" if code == 0 else f"the process ends: {code}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bugs", nargs="*", metavar="BUG")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--limit", type=float, default=300)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    patches = sorted((HERE / "planted" if options.planted else HERE).glob("*.patch"))
    chosen = [path for path in patches if path.name.startswith(tuple(options.bugs or [""]))]
    bugs = [Bug.read(path) for path in chosen]
    if not bugs:
        sys.exit("there is no such bug")
    with tempfile.TemporaryDirectory() as temporary:
        directory = (options.dir or Path(temporary)).resolve()
        tree, builds = directory / "tree", directory / "builds"
        builds.mkdir(parents=True, exist_ok=True)
        wrong = []
        print("| bug | tool | found | s | by |\n|---|---|---|---|---|", flush=True)
        for bug in bugs:
            wrong += check(bug, tree, builds, options.quick, options.limit)
    for what in wrong:
        print(f"WRONG: {what}")
    return 1 if wrong else 0


def check(bug: Bug, tree: Path, builds: Path, is_quick: bool, limit: float) -> list[str]:
    """Runs the tools on one bug. Returns what is not as its patch says."""
    copy_tree(tree)
    if not apply(bug, tree):
        return [f"{bug.name} does not apply any more"]
    wrong = []
    first = [line for line in bug.lines if line.is_found][:1] or bug.lines
    lines = first if is_quick else bug.lines
    for line in lines:
        command, folder, environment = prepare(line, tree, builds)
        if not build(line, command, folder, environment):
            wrong.append(f"{bug.name}: {line} does not build")
            continue
        log = builds / f"{bug.name}.{line.tool}.log"
        outcome = run(line, command, folder, environment, limit, log)
        found = "yes" if outcome.is_found else "no"
        print(f"| {bug.name} | {line} | {found} | {outcome.seconds:.1f} | {outcome.by} |", flush=True)
        if outcome.is_found != line.is_found:
            wrong.append(f"{bug.name}: {line}: found: {found}; the output is in {log}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
