"""Benchmarks of Vitest, from 2.1 on: its own Vite builds their files, and a script of ours runs what is built, without Vitest.

To start Vitest in each measured process takes billions of instructions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.node import SCRIPTS, check_package, depends, listing, node, of_script, printed, specs
from cachegrind_bench.harness.protocol import Harness, build_folder, files_below, output_of
from cachegrind_bench.store.baselines import make_store

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_VITEST = re.compile(r"(^|/)vitest(@[^/]*|\.mjs)?$")
_STARTERS = (
    *("npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "bun", "node"),
    *("exec", "dlx", "x", "--", "--yes", "-y", "--no-install"),
)
_BUILT = re.compile(r"cg-bench-file: (\[.*\])")


class Vitest(Harness):
    """An id begins with the path of the file, without its endings."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for files of benchmarks in a project that depends on Vitest."""
        has_some = depends(root, "vitest") and any(".bench." in os.path.basename(path) for path in files_below(root))
        return (".",) if has_some else ()

    def started(self, command: Sequence[str], cwd: Path) -> Sequence[str]:
        """Look into package.json."""
        return of_script(command, cwd)

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `vitest bench`, however it is started. UsageError for what is not known to start it only."""
        start = next((number for number, word in enumerate(command) if _VITEST.search(word)), None)
        unknown = [word for word in command[:start] if os.path.basename(word) not in _STARTERS]
        rest = command[(start or 0) + 1 :]
        if start is None or unknown or (rest and rest[0] != "bench"):
            raise UsageError(
                f"--harness vitest: {' '.join(command)} is not 'vitest bench'", hint="as in: npx vitest bench"
            )
        return (".", *(word for word in rest[1:] if word not in ("--run", "--")))

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Build all files, and have each list what it has."""
        folder, *options = entry.keys["vitest"]
        cwd = entry.each.cwd / folder
        if os.path.isdir(cwd):
            make_store(cwd / ".cg-bench")
        check_package(entry, "vitest", cwd.resolve(), ("4.1",))
        build = ("node", str(SCRIPTS / "vitest_build.mjs"), f".cg-bench/{build_folder(entry, *options)}", *options)
        problem = "Vitest could not build its benchmarks"
        text = output_of(entry, build, environ, problem, cwd=cwd, builds=True)
        run = (*node(entry, environ, cwd), str(SCRIPTS / "vitest_run.mjs"))
        files = printed(text, _BUILT, tuple[str, str])
        text = listing(entry, (*run, *(word for file in files for word in file)), environ, cwd)
        parts = text.split("\ncg-bench-next-file\n")[1:]
        if len(parts) < len(files):
            raise MeasurementError(
                f"{entry.each.place}: the benchmarks of {files[max(len(parts) - 1, 0)][0]} could not be listed: it ended the process",
                hint="does it call process.exit?",
            )
        pairs = zip(files, parts, strict=False)
        found = [spec for file, part in pairs for spec in specs(entry, (*run, *file), part, cwd)]
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: Vitest found no benchmarks in {cwd}",
                hint="they are in files such as parse.bench.ts; npm ci has to be run before",
            )
        return found


HARNESS = Vitest()
