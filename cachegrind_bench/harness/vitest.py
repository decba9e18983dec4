"""Benchmarks of Vitest, from 2.1 on: its own Vite builds their files, and a script of ours runs what is built, without Vitest.

To start Vitest in each measured process takes billions of instructions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.node import NODE, SCRIPTS, depends, specs
from cachegrind_bench.harness.protocol import Harness, output_of

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_BUILT = re.compile(r"cg-bench-file: (\[.*\])")


class Vitest(Harness):
    """An id begins with the path of the file, without its endings."""

    def detect(self, root: Path) -> str | None:
        """Look for files of benchmarks in a project that depends on Vitest."""
        if not depends(root, "vitest"):
            return None
        found = (path.relative_to(root).parts for path in root.rglob("*.bench.*"))
        return "." if any("node_modules" not in parts for parts in found) else None

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `vitest bench`, however it is started."""
        words = tuple(command[command.index("bench") + 1 :] if "bench" in command else command)
        return (".", *(word for word in words if word != "--run"))

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Build all files, and have each list what it has."""
        folder, *options = entry.keys["vitest"]
        cwd = entry.each.cwd / folder
        build = ("node", str(SCRIPTS / "vitest_build.mjs"), ".cg-bench/vitest", *options)
        problem = "Vitest could not build its benchmarks"
        text = output_of(entry, build, environ, note, problem, cwd=cwd, builds=True)
        files = [json.loads(match[1]) for line in text.splitlines() if (match := _BUILT.fullmatch(line))]
        run = (*NODE, str(SCRIPTS / "vitest_run.mjs"))
        found = [spec for file in files for spec in specs(entry, (*run, *file), environ, note, cwd=cwd)]
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: Vitest found no benchmarks in {cwd}",
                hint="they are in files such as parse.bench.ts; npm ci has to be run before",
            )
        return found


HARNESS = Vitest()
