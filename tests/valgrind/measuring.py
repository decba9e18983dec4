"""Runs `pytest --cg-bench` in a folder, for tests of the plugin, tells what came of it, and which perf maps are left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def maps_of(place: Path) -> list[str]:
    """Return the perf maps that name this script or folder: other programs may be profiled at the same time."""
    found: list[str] = []
    for path in Path("/tmp").glob("perf-*.map"):
        with suppress(OSError):
            found += [path.name] if os.fsencode(place) in path.read_bytes() else []
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How a pytest ended, what it said, and the benchmarks of its result by their ids."""

    status: int
    said: str
    found: dict[str, Any]


def measure(
    folder: Path,
    *options: str,
    python: str | Path = sys.executable,
    flags: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> Measured:
    """Measure what is in this folder; `flags` are Python's, and `before` is a program in front."""
    output = folder.parent / "result.json"
    output.unlink(missing_ok=True)
    argv = [
        *before,
        str(python),
        *flags,
        "-m",
        "pytest",
        "--cg-bench",
        "--cg-bench-jobs=1",
        f"--cg-bench-output={output}",
        *options,
    ]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(env or {})}
    done = subprocess.run(argv, cwd=folder, env=variables, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode(errors="backslashreplace")
    items = json.loads(output.read_bytes())["benchmarks"] if output.exists() else []
    return Measured(status=done.returncode, said=said, found={item["id"].rpartition("::")[2]: item for item in items})
