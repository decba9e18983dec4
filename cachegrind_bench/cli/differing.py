"""Two opened sides as a comparison, and its exit code: what `diff` and `ci compare` have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cachegrind_bench.cli.comparing import FINE, exit_code, report, wanted_of
from cachegrind_bench.errors import NotComparableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.cli.comparing import Report
    from cachegrind_bench.cli.sides import Side
    from cachegrind_bench.compare.gates import Gates


def compared(
    base: Side, candidate: Side, gates: Gates, options: Mapping[str, Any], *, pattern: str | None = None
) -> Report:
    """Compare, of the benchmarks whose id fits the pattern, and explain as `detail_options` and --rows want it."""
    from cachegrind_bench.compare.comparison import compare
    from cachegrind_bench.model.patterns import matches

    before, after = base.file, candidate.file
    comparison = replace(
        compare(before.result, after.result, gates, wanted=lambda name: pattern is None or matches(name, pattern)),
        remarks=(*base.remarks, *candidate.remarks),
    )
    if pattern is not None and not comparison.differences:
        known = ", ".join(item.id for item in after.result.benchmarks[:10]) or "no benchmarks at all"
        raise UsageError(f"neither side has a benchmark {pattern!r}", hint=f"the candidate has {known}")
    names = base.name, candidate.name
    return report(
        comparison, before.profile, after.profile, wanted=wanted_of(options), rows=options["rows"], names=names
    )


def code_of(made: Report, base: Side, *, require_baseline: bool) -> int:
    """Return the exit code of a comparison with this base, which may have been searched in vain.

    Where there is nothing to compare with, that is no fault of the candidate; its failures and limits still count.
    """
    code = exit_code(made.comparison)
    return FINE if base.missing and not require_baseline and code == NotComparableError.exit_code else code
