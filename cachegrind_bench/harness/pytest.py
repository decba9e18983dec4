"""Benchmarks in pytest: listed by its own collection, and measured by the plugin, in the Python of the project."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import Batch, Harness, last_lines
from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.result import PYTEST, Benchmark

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.measure.session import ValgrindSetup

_NO_TESTS = 5  # pytest's exit code


class Pytest(Harness):
    """Benchmarks are those of `pytest --cg-bench`, by the ids of their nodes."""

    together = True

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Let pytest collect, and return the benchmarks."""
        del note
        with tempfile.TemporaryDirectory(prefix="cg-bench-") as folder:
            target = Path(folder, "benchmarks.json")
            done = process.run(
                command(entry, environ, "--collect-only", "-q", f"--cg-bench-list={target}"),
                env=environ,
                cwd=entry.each.cwd,
            )
            if done.status not in (0, _NO_TESTS) or not target.exists():
                raise MeasurementError(
                    f"{entry.each.place}: pytest could not collect the benchmarks", hint=last_lines(done)
                )
            found: list[dict[str, Any]] = json.loads(target.read_bytes())
        return [
            entry.spec(
                item["id"],
                (*PYTEST, item["id"]),
                parameters=item["parameters"],
                tags=tuple(dict.fromkeys((*entry.each.tags, *item["tags"]))),
            )
            for item in found
        ]

    def measure(self, batch: Batch, ready: ValgrindSetup, done: Callable[[Benchmark, bytes], object]) -> None:
        """Let the plugin measure these, and read its result."""
        specs = {spec.name: spec for spec in batch.specs}
        with tempfile.TemporaryDirectory(prefix="cg-bench-") as folder:
            target, chosen = Path(folder, "result.json"), Path(folder, "chosen.json")
            chosen.write_text(json.dumps(list(specs)), encoding="utf-8")
            options = {
                "output": target,
                "select": chosen,
                "jobs": batch.jobs,
                "model": batch.model.name,
                "layouts": batch.layouts,
                "valgrind": ready.valgrind.launcher,
            }
            words = [f"--cg-bench-{name}={value}" for name, value in options.items()]
            words += [f"--cg-bench-env={item}" for item in batch.env]
            words += ["--cg-bench-call-tree"] * batch.call_tree
            ended = process.run(command(batch.entry, batch.environ, *words), env=batch.environ, cwd=batch.cwd)
            if not target.exists():
                raise MeasurementError("pytest measured nothing", hint=last_lines(ended))
            result = decode(target.read_bytes(), str(target))
        for item in result.benchmarks:
            if item.id in specs:
                done(item, b"")


def command(entry: Entry, environ: Mapping[str, str], *options: str) -> list[str]:
    """Return the words that start the pytest of this entry with the plugin."""
    return [python_of(entry, environ), "-P", "-m", "pytest", "--cg-bench", *options, *entry.keys["pytest"]]


def python_of(entry: Entry, environ: Mapping[str, str]) -> str:
    """Return the Python that has pytest and the project. MeasurementError if no such Python is found."""
    named: str | None = entry.keys.get("python")
    if named is None:
        environment = environ.get("VIRTUAL_ENV")
        if environment and os.access(f"{environment}/bin/python", os.X_OK):
            return f"{environment}/bin/python"
        if find_spec("pytest") is not None:
            return sys.executable
        named = "python3"
    path = environ.get("PATH", os.defpath)
    found = os.path.join(entry.each.cwd, named) if os.sep in named else process.which(named, path)
    if found is None or not os.access(found, os.X_OK):
        raise MeasurementError(f"{entry.each.place}: there is no Python {named}", hint="python = names the one to use")
    return found


HARNESS = Pytest()
