"""What frameworks of JavaScript have in common: scripts of ours, run by Node with theirs, list and count their benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench.harness.protocol import listed_once, output_of
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

SCRIPTS = Path(__file__).with_name("node_scripts")
# The compiler then works on the thread of the program, when a count of executed bytecodes says so, which is a tenth of the usual.
NODE = ("node", "--single-threaded", "--predictable", "--interrupt-budget=13000")
_LISTED = re.compile(r'cg-bench: (".*")')
_LOOP = Loop(
    words={number: (f"--cg-bench-iterations={number}",) for number in (1, 10, 100, 1000)},
    native=("--cg-bench-iterations=1",),
    sections=Sections(begin=("before:setpriority",), end=("before:getpriority",)),
    clock=PINNED_CLOCK,
)


def specs(
    entry: Entry,
    command: Sequence[str],
    environ: Mapping[str, str],
    note: Callable[[str], object],
    cwd: Path,
) -> list[BenchmarkSpec]:
    """Return the benchmarks that this command lists; it takes what `node_scripts/measure.mjs` does."""
    text = output_of(entry, command, environ, note, f"{entry.harness} could not list its benchmarks", cwd=cwd)
    names = [json.loads(match[1]) for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
    return [
        entry.spec(printable(name), (*command, f"--cg-bench-task={name}"), cwd=cwd, loop=_LOOP)
        for name in listed_once(entry, names, note)
    ]


def depends(root: Path, package: str) -> bool:
    """Return whether the package.json of this project names a package."""
    path = root / "package.json"
    return path.is_file() and f'"{package}"'.encode() in path.read_bytes()
