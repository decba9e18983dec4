"""What a suite would run, for people and for scripts: the benchmarks of a configuration, nothing measured."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import plain
from cachegrind_bench.render import markdown, table
from cachegrind_bench.render.report import Report, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO

    from cachegrind_bench.config.values import BenchmarkSpec
    from cachegrind_bench.render.report import Row

_SHRINKABLE = 1, 0  # the command gives way first, then the id


def render(
    specs: Sequence[BenchmarkSpec], total: int, origin: str, form: str, stream: TextIO, *, width: int | None = None
) -> None:
    """Write the chosen benchmarks of `total` that this configuration has, in one of the forms json, markdown and table."""
    if form == "json":
        _as_json(specs, origin, stream)
        return
    count = f"{total} benchmark{'' if total == 1 else 's'}"
    title = f"{count if len(specs) == total else f'{len(specs)} of {count}'} in {plain(origin)}"
    layout = markdown if form == "markdown" else table
    columns, *rows = _rows(specs)
    if form == "table":
        columns, *rows = table.fitted([columns, *rows], width and width - 2, _SHRINKABLE)  # 2: the indent
    section = Section(title="", columns=columns, rows=tuple(rows))
    layout.render(Report(title=title, sections=(section,) if specs else (), warnings=()), stream)


def _rows(specs: Sequence[BenchmarkSpec]) -> list[Row]:
    """Return the table with its heading, without columns that are empty: the values of parameters are in the ids."""
    rows: list[Row] = [("id", "command", "tags", "parameters")]
    rows += [
        (
            plain(spec.id),
            plain(shlex.join(spec.command)),
            plain(", ".join(spec.tags)),
            plain(", ".join(f"{name}={value}" for name, value in spec.parameters.items())),
        )
        for spec in specs
    ]
    used = [place for place in range(4) if place < 2 or any(row[place] for row in rows[1:])]
    return [tuple(row[place] for place in used) for row in rows]


def _as_json(specs: Sequence[BenchmarkSpec], origin: str, stream: TextIO) -> None:
    document = {"schema": "cg-bench.list/1", "configuration": origin, "benchmarks": [_object(spec) for spec in specs]}
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def _object(spec: BenchmarkSpec) -> dict[str, object]:
    return {
        "id": spec.id,
        "command": list(spec.command),
        "cwd": _text(spec.cwd),
        "env": [item.partition("=")[0] for item in spec.env],  # names only: a value may be a secret
        "setup": spec.setup,
        "prepare": spec.prepare,
        "cleanup": spec.cleanup,
        "stdin": _text(spec.stdin),
        "parameters": dict(spec.parameters),
        "tags": list(spec.tags),
        "repeat": spec.repeat,
        "warmup": spec.warmup,
        "layouts": spec.layouts,
        "timeout_ms": spec.timeout_ms,
        "threshold": spec.threshold,
        "limits": list(spec.limits),
        "place": spec.place,
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else os.fsencode(path).decode("utf-8", "backslashreplace")
