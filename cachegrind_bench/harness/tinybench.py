"""Benchmarks of tinybench, from 2.5 on: a script of ours replaces how its `Bench` runs them, in the process that does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.node import SCRIPTS, check_package, depends, listing, node, of_script, specs
from cachegrind_bench.harness.protocol import Harness, starts, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry


_OTHERS = ("npx", "npm", "pnpm", "yarn", "tsx", "ts-node", "bun", "deno")
# Options of Node whose value is the next word.
_WITH_A_WORD = re.compile(
    "--(import|require|loader|experimental-loader|conditions|input-type|env-file(-if-exists)?|title)|-[rC]"
)


def _script(words: Sequence[str]) -> str | None:
    """Return the script among the words that follow `node`."""
    pairs = pairwise(("", *words))
    return next((word for last, word in pairs if word[:1] != "-" and not _WITH_A_WORD.fullmatch(last)), None)


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

    def started(self, command: Sequence[str], cwd: Path) -> Sequence[str]:
        """Look into package.json."""
        return of_script(command, cwd)

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `node`. UsageError for another program that starts it."""
        if command[0] in _OTHERS:
            hint = "as in: node --import tsx bench/index.ts"
            raise UsageError(
                f"--harness tinybench: {command[0]} starts Node itself, out of the sight of cg-bench", hint=hint
            )
        return tuple(command[1:] if starts(command, "node") else command)

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Run the script, which executes each benchmark once."""
        words = entry.keys["tinybench"]
        script = _script(words)
        if script is None:
            raise UsageError(
                f"{entry.each.place}: {' '.join(('node', *words))} does not name a script",
                hint="as in: node bench/index.mjs",
            )
        cwd = entry.each.cwd
        command = (*node(entry, environ, cwd), "--import", str(SCRIPTS / "tinybench.mjs"), *words)
        check_package(entry, "tinybench", (cwd / script).resolve().parent, ("5", "6.2"))
        found = [*specs(entry, command, listing(entry, command, environ, cwd), cwd)]
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: {' '.join(words)} ran no benchmarks of tinybench",
                hint="they are those of the tinybench in the nearest node_modules above the script",
            )
        return found


HARNESS = Tinybench()
