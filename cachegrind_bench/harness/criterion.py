"""Benchmarks of Criterion (Rust), from 0.3 on: `Bencher` calls `Instant::now` and `Instant::elapsed` around what it measures.

With --profile-time it first executes one iteration, then as many as its clock says are left; no statistics follow.
"""

from __future__ import annotations

import json
import mmap
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import Harness, exactly, output_of
from cachegrind_bench.hermetic.launch import SECONDS_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

# In the symbol table, mangled in the old way (with a hash at its end) or in the new one.
_INSTANT = re.compile(rb"\0(_(?:ZN|R)[\w.$]*3std4time[\w.$]*7Instant(3now|7elapsed)(?:17h[0-9a-f]{16}E)?)(?=\0)")
_CRITERION = b"9criterion7bencher"
_DEPENDENCY = re.compile(rb"^ *(criterion\b|\[.*dependencies\.criterion\])|codspeed-criterion-compat", re.MULTILINE)
_LISTED = re.compile(r"(.+): bench(?:mark)?")
# Bencher reads the clock when it begins, around each batch, and when it ends; once for the warm-up, once for the rest.
_ORDER = "(b(be)+e){1,2}"
_READ = 3  # seconds, of which one passes at each reading, that a call of the benchmark takes if it is one batch


class Criterion(Harness):
    """Cargo builds the programs, and they list their benchmarks. An id begins with the name of its bench target."""

    def detect(self, root: Path) -> str | None:
        """Look for Criterion among the dependencies of a package or workspace."""
        manifests = [root / "Cargo.toml", *sorted(root.glob("*/Cargo.toml")), *sorted(root.glob("*/*/Cargo.toml"))]
        texts = (path.read_bytes() for path in manifests if path.is_file())
        return "." if (root / "Cargo.toml").is_file() and any(map(_DEPENDENCY.search, texts)) else None

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take `cargo bench` with options, or a folder."""
        return (".", *command[2:]) if tuple(command[:2]) == ("cargo", "bench") else tuple(command)

    def build(self, entry: Entry) -> str:
        """Return the command that builds all."""
        return " ".join(_cargo(entry))

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask Cargo for its programs, and those of Criterion for what they have."""
        programs = _programs(entry, environ)
        targets = Counter(program["target"]["name"] for program in programs)
        found: list[BenchmarkSpec] = []
        for program in programs:
            target, executable = program["target"]["name"], program["executable"]
            folder = Path(program["manifest_path"]).parent
            loop = _loop(executable)
            if loop is None:
                note(
                    f"{entry.each.place}: the bench target {target} of {folder.name} is left out: it is not one of Criterion"
                )
                continue
            problem = f"{executable} did not list its benchmarks"
            text = output_of(entry, (executable, "--bench", "--list"), environ, problem, cwd=folder)
            group = f"{folder.name}/{target}" if targets[target] > 1 else target
            for line in text.splitlines():
                if match := _LISTED.fullmatch(line):
                    command = (executable, "--bench", exactly(match[1]))
                    variables = (*entry.each.env, f"CARGO_MANIFEST_DIR={folder}")
                    found.append(
                        entry.spec(printable(f"{group}/{match[1]}"), command, cwd=folder, env=variables, loop=loop)
                    )
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: Cargo built no benchmarks of Criterion in {_folder(entry)}",
                hint="they are programs of a [[bench]] table with harness = false",
            )
        return found


def _folder(entry: Entry) -> Path:
    return entry.each.cwd / str(entry.keys["criterion"][0])


def _cargo(entry: Entry, *options: str) -> tuple[str, ...]:
    folder, *others = entry.keys["criterion"]
    return ("cargo", "bench", "--no-run", f"--manifest-path={folder}/Cargo.toml", *options, *others)


def _programs(entry: Entry, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what Cargo says of its bench targets, in the order of their packages and names."""
    command = _cargo(entry, "--message-format=json")
    text = output_of(entry, command, environ, "Cargo could not build the benchmarks")
    messages = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    programs = (item for item in messages if item.get("executable") and "bench" in item["target"]["kind"])
    return sorted(programs, key=lambda item: (item["manifest_path"], item["target"]["name"]))


def _loop(executable: str) -> Loop | None:
    """Return how the iterations of this program are counted, None if it is not one of Criterion."""
    with open(executable, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(_CRITERION) < 0:
            return None
        names: dict[bytes, list[str]] = {}
        for match in _INSTANT.finditer(data):
            names.setdefault(match[2], []).append(match[1].decode())
    begin, end = (tuple(f"{when}:{name}" for name in sorted(set(names.get(key, ())))) for when, key in _CLOCK)
    return Loop(
        words={number: ("--profile-time", str(_READ * (number + 1))) for number in (1, 10, 100)},
        native=("--test",),
        sections=Sections(begin=begin, end=end, skip=1, order=_ORDER),
        clock=SECONDS_CLOCK,
    )


_CLOCK = (("after", b"3now"), ("before", b"7elapsed"))

HARNESS = Criterion()
