"""The end of the output: the counts, how well they were sealed, and the comparison with an earlier result."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.result import Result

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.pytest_plugin.outer.options import Base


def summary(result: Result, output: Path | None, comparison: str, root: Path, *, width: int) -> list[str]:
    """Return the lines, for a terminal of this width; `output` is the file with the result.

    Files below `root` are shown relative to it.
    """
    from cachegrind_bench.render import growth, report, table
    from cachegrind_bench.usecases.comparison import InMemory, growths_in

    text = io.StringIO()
    if result.benchmarks:
        reports = [
            report.suite(result),
            *(growth.report(found, str(root)) for found in growths_in(InMemory(result)).values()),
        ]
        text.write("\n".join(table.render(one, width=width) for one in reports))
    if output is not None:
        text.write(f"result written to {output}\n")
    if comparison:
        text.write(f"\n{comparison}")
    return text.getvalue().splitlines()


def check_base(base: Path, output: Path | None) -> None:
    """Find out before the work whether there is a result to compare with, and that `output` is another. UsageError if not."""
    from cachegrind_bench.usecases.result_files import read_regular_result

    if output is not None and os.path.realpath(output) == os.path.realpath(base):
        raise UsageError(
            f"--cg-bench-output would overwrite {base}, which --cg-bench-compare compares with",
            hint="write the new result to another file",
        )
    read_regular_result(base, "'pytest --cg-bench --cg-bench-output=FILE' writes such files")


def compared(
    base: Base, candidate: Result, root: Path, *, profiled: bool, width: int, colour: bool
) -> tuple[str, bool]:
    """Compare with an earlier result: return the text, for such a terminal, and whether it is to fail.

    Files below `root` are shown relative to it. UsageError if it cannot be read.
    """
    from cachegrind_bench.compare.explained import FINE, REGRESSION
    from cachegrind_bench.render.comparison import table
    from cachegrind_bench.render.comparison.view import view
    from cachegrind_bench.usecases import comparison
    from cachegrind_bench.usecases.result_files import read_regular_result

    chosen = {item.id for item in candidate.benchmarks}
    made = comparison.compared(
        comparison.Side(name=base.path.name, file=read_regular_result(base.path)),
        comparison.Side(name="this run", file=comparison.InMemory(candidate)),
        base.gates,
        comparison.ReportOptions(rows=50, root=str(root)),
        wanted=lambda name: name in chosen,
    )
    text, code = table.render(view(made), width=width, colour=colour), made.exit_code()
    if code == REGRESSION and not profiled:
        text += (
            "--cg-bench-python-profile in both runs names the Python function that caused it (CPython 3.12 and newer)\n"
        )
    return text, code != FINE  # a gate that compared nothing must not be green
