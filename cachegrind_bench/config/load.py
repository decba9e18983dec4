"""Finding the project's configuration and reading it. Touches nothing but the files it names; runs nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from cachegrind_bench.config.benchmarks import specs
from cachegrind_bench.config.readers import values
from cachegrind_bench.config.schema import BENCHMARK_TABLE, DEFAULTS, Kind
from cachegrind_bench.config.source import OWN_FILE, PYPROJECT, concerns_us, read
from cachegrind_bench.config.suggestions import nearest
from cachegrind_bench.config.values import Configuration
from cachegrind_bench.model.text import matches
from cachegrind_bench.vcs.checkout import folders_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.config.source import Source
    from cachegrind_bench.config.values import BenchmarkSpec


def find(cwd: Path) -> Path | None:
    """Return the configuration nearest to `cwd`, from there up to the top of its git work tree, or to the root.

    In one folder cg-bench.toml goes before pyproject.toml, which counts only if it speaks to us.
    """
    for folder in folders_up(cwd):
        if os.path.isfile(folder / OWN_FILE):
            return folder / OWN_FILE
        if os.path.isfile(folder / PYPROJECT) and concerns_us(folder / PYPROJECT):
            return folder / PYPROJECT
    return None


def load(path: Path, *, check_files: bool = True) -> Configuration:
    """Return what this file says. FileFormatError with the line of the first mistake, UsageError if it cannot be read.

    Without `check_files`, folders and input files that benchmarks name need not be there.
    """
    source = read(path)
    found = values(source, DEFAULTS, source.table())
    tables = found.pop(BENCHMARK_TABLE, ())
    names = {key.name: key.option for key in DEFAULTS}
    benchmarks = specs(source, tables, check_files=check_files)
    _check_patterns(source, found, benchmarks)
    return Configuration(
        path=path,
        root=path.parent,
        defaults={names[name]: _as_typed(value) for name, value in found.items()},
        benchmarks=benchmarks,
    )


def ignored(path: Path) -> Path | None:
    """Return the file beside this one that speaks to us as well and is not read, if there is one."""
    other = path.parent / PYPROJECT
    return other if path.name == OWN_FILE and os.path.isfile(other) and concerns_us(other) else None


def _check_patterns(source: Source, found: Mapping[str, Any], benchmarks: Sequence[BenchmarkSpec]) -> None:
    """Refuse thresholds and limits for benchmarks that there are not, in a file that has some."""
    ids = [spec.id for spec in benchmarks]
    known = {f"{spec.id.partition('[')[0]}*": spec.parameters for spec in benchmarks}
    words = {name.rstrip("*"): name for name, parameters in known.items() if parameters} | {name: name for name in ids}
    for key in DEFAULTS if benchmarks else ():
        for place, text in enumerate(found.get(key.name, ()) if key.kind is Kind.TEXTS else ()):
            pattern = str(key.check(text, key.name))
            if not any(matches(identity, pattern) for identity in ids):
                meant = nearest(pattern.replace("*", "").replace("?", ""), words)
                source.fail(
                    f"{key.name} {text!r} fits no benchmark of this file: {pattern!r}",
                    *(key.name, place),
                    hint=f"did you mean {meant!r}?" if meant else _some(ids),
                )


def _some(ids: Sequence[str]) -> str:
    return f"there are: {', '.join(ids[:10])}{' and more' if len(ids) > 10 else ''}"


def _as_typed(value: Any) -> object:
    """Return a value as the command line takes it: options that can be repeated want a list."""
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
