"""Benchmarks of tinybench, from 2.5 on: a script of ours replaces how its `Bench` runs them, in the process that does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.node import SCRIPTS, check_package, depends, listing, node, specs
from cachegrind_bench.harness.protocol import Harness, Listed, starts, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry


class Tinybench(Harness):
    """The benchmarks of a script. All it does before it runs one of them is done, and nothing of what would follow."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for scripts that import it, in the folders where such scripts usually are."""
        if not depends(root, "tinybench"):
            return ()
        folders = (root, *(root / name for name in ("bench", "benches", "benchmark", "benchmarks")))
        paths = (
            path for folder in folders for kind in ("*.mjs", "*.js", "*.cjs") for path in sorted(folder.glob(kind))
        )
        found = (path.relative_to(root) for path in paths if b"tinybench" in text_of(path))
        return list(map(str, found))

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `node`."""
        return tuple(command[1:] if starts(command, "node") else command)

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Run the script, which executes each benchmark once."""
        words = entry.keys["tinybench"]
        if all(word.startswith("-") for word in words):
            raise UsageError(
                f"{entry.each.place}: {' '.join(('node', *words))} does not name a script",
                hint="as in: node bench/index.mjs",
            )
        cwd = entry.each.cwd
        command = (*node(entry, environ, note, cwd), "--import", str(SCRIPTS / "tinybench.mjs"), *words)
        script = next(word for word in words if not word.startswith("-"))
        check_package(entry, "tinybench", (cwd / script).resolve().parent, ("5", "6.2"), note)
        found = Listed(entry, specs(entry, command, listing(entry, command, environ, note, cwd), note, cwd))
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: {' '.join(words)} ran no benchmarks of tinybench",
                hint="they are those of the tinybench in the nearest node_modules above the script",
            )
        return found


HARNESS = Tinybench()
