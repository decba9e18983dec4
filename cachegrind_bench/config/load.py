"""Finding the project's configuration and reading it. Touches nothing but the files it names; runs nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from cachegrind_bench.config.benchmarks import specs
from cachegrind_bench.config.keys import BENCHMARK_TABLE, DEFAULTS
from cachegrind_bench.config.source import OWN_FILE, PYPROJECT, concerns_us, read
from cachegrind_bench.config.typed import values
from cachegrind_bench.config.values import Configuration

if TYPE_CHECKING:
    from pathlib import Path


def find(cwd: Path) -> Path | None:
    """Return the configuration nearest to `cwd`, from there up to the top of its git work tree, or to the root.

    In one folder cg-bench.toml goes before pyproject.toml, which counts only if it speaks to us.
    """
    for folder in (cwd, *cwd.parents):
        if os.path.isfile(folder / OWN_FILE):
            return folder / OWN_FILE
        if os.path.isfile(folder / PYPROJECT) and concerns_us(folder / PYPROJECT):
            return folder / PYPROJECT
        if os.path.lexists(folder / ".git"):
            return None
    return None


def load(path: Path, *, check_files: bool = True) -> Configuration:
    """Return what this file says. FileFormatError with the line of the first mistake, UsageError if it cannot be read.

    Without `check_files`, folders and input files that benchmarks name need not be there.
    """
    source = read(path)
    found = values(source, DEFAULTS, source.table())
    tables = found.pop(BENCHMARK_TABLE, ())
    names = {key.name: key.option for key in DEFAULTS}
    return Configuration(
        path=path,
        root=path.parent,
        defaults={names[name]: _as_typed(value) for name, value in found.items()},
        benchmarks=specs(source, tables, check_files=check_files),
    )


def _as_typed(value: Any) -> object:
    """Return a value as the command line takes it: options that can be repeated want a list."""
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
