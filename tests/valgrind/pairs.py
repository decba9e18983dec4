"""How the two sides of a real pair are measured and compared; knows nothing of what they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.valgrind.conftest import CgBench, Finished
    from tests.valgrind.programs import Built

THRESHOLD = "0.05%"
ROWS = 5  # of the explanation: fewer than there are, so that some are left for the rest


def measured(
    cg_bench: CgBench,
    built: Built,
    output: Path,
    *,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Path:
    """Measure into a result file, under an id that does not name a folder, with these variables of our own."""
    options = ["--id", "pair", "-q", "-o", str(output)]
    env = {**(variables or {}), **built.variables}
    finished = cg_bench("run", *options, "--", *built.command, cwd=cwd, env=env)
    assert finished.code == 0, finished.stderr
    return output


def compared(cg_bench: CgBench, base: Path, candidate: Path) -> tuple[Finished, dict[str, Any]]:
    """Compare two result files; return how that ended, and the document."""
    document = base.with_name(f"{base.stem}-{candidate.stem}.json")
    words = ["--threshold", THRESHOLD, "--explain", str(ROWS), "--json", str(document)]
    finished = cg_bench("diff", str(base), str(candidate), *words)
    assert document.exists(), finished.stderr
    return finished, json.loads(document.read_bytes())
