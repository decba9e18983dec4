"""What stands at the end of the output: the counts, how well they were sealed, and the comparison."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from cachegrind_bench.model.result import SealState
from cachegrind_bench.render import report, table

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.pytest_plugin.comparing import Compared
    from cachegrind_bench.pytest_plugin.options import Settings


def summary(result: Result, settings: Settings, compared: Compared | None) -> list[str]:
    """Return the lines."""
    text = io.StringIO()
    if result.benchmarks:
        text.write(table.render(report.suite(result)))
    text.write(f"{_sealed(result)}\n")
    if settings.output is not None:
        text.write(f"result written to {settings.output}\n")
    if compared is not None:
        text.write(f"\n{compared.text}")
    return text.getvalue().splitlines()


def _sealed(result: Result) -> str:
    missing = {
        name: part.why
        for item in result.benchmarks
        for name, part in item.seal.items()
        if part.state is SealState.UNAVAILABLE
    }
    if not missing:
        return "sealed in every part: the counts are the same in each run"
    return f"not sealed: {', '.join(f'{name} ({why})' for name, why in missing.items())}; 'cg-bench doctor' explains"
