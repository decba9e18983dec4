"""Compares what was measured with an earlier result, by the thresholds of the project's configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachegrind_bench.compare.comparison import Conclusion
from cachegrind_bench.errors import UsageError
from cachegrind_bench.pytest_plugin.options import listed

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.pytest_plugin.options import Settings


# What `cg-bench diff` ends in another code than 0 for: a gate that compared nothing must not be green.
_FAILING = frozenset({Conclusion.REGRESSION, Conclusion.FAILED, Conclusion.INCOMPLETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison: what is shown, and whether it is to fail."""

    text: str
    failing: bool


def check_base(settings: Settings) -> None:
    """Find out before the work whether there is something to compare with, and that it stays. UsageError if not."""
    from cachegrind_bench.usecases.result_files import read_result

    assert settings.compare is not None  # noqa: S101 - the caller looked
    if settings.output is not None and os.path.realpath(settings.output) == os.path.realpath(settings.compare):
        raise UsageError(
            f"--cg-bench-output would overwrite {settings.compare}, which --cg-bench-compare compares with",
            hint="write the new result to another file",
        )
    read_result(str(settings.compare), hint="'pytest --cg-bench --cg-bench-output=FILE' writes such files")


def compared(settings: Settings, candidate: Result) -> Compared:
    """Compare with the result that the settings name. UsageError if it cannot be read."""
    from cachegrind_bench.usecases import comparison
    from cachegrind_bench.usecases.result_files import read_result

    assert settings.compare is not None  # noqa: S101 - the caller looked
    chosen = {item.id for item in candidate.benchmarks}
    made = comparison.compared(
        comparison.Side(name=settings.compare.name, file=read_result(str(settings.compare))),
        comparison.Side(name="this run", file=comparison.InMemory(candidate)),
        gates_of(settings.defaults),
        comparison.ReportOptions(rows=50),
        wanted=lambda name: name in chosen,
    )
    text = made.text("table")
    conclusion = made.comparison.conclusion()
    if conclusion is Conclusion.REGRESSION and not settings.python_profile:
        text += (
            "--cg-bench-python-profile in both runs names the Python function that did it (CPython 3.12 and newer)\n"
        )
    return Compared(text=text, failing=conclusion in _FAILING)


def gates_of(defaults: dict[str, Any]) -> Gates:
    """Return what the configuration holds comparisons to."""
    from cachegrind_bench.usecases.comparison import GateOptions

    given: dict[str, Any] = {
        name: listed(defaults.get(name)) for name in ("threshold", "threshold_ir", "max_drop", "limit")
    }
    given |= {name: str(defaults[name]) for name in ("threshold_cache", "metric") if defaults.get(name)}
    return GateOptions(**given).gates()
