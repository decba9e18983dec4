"""Two opened sides as a comparison, and its exit code: what `diff` and `ci compare` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cachegrind_bench.cli.comparing import FINE, exit_code, report, wanted_of
from cachegrind_bench.errors import NotComparableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cachegrind_bench.cli.comparing import Report
    from cachegrind_bench.cli.sides import Side
    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.gates import Gates

_SAME = (
    "both commits gave exactly the same counts: if what they run is installed from elsewhere, the same was measured twice; "
    "a set-up command of the suite installs or builds what belongs to each commit"
)


def compared(
    base: Side,
    candidate: Side,
    gates: Gates,
    options: Mapping[str, Any],
    *,
    wanted: Callable[[str], bool] = lambda _id: True,
) -> Report:
    """Compare the benchmarks whose ids are `wanted`, and explain as `detail_options` and --rows want it."""
    from cachegrind_bench.compare.comparison import compare

    before, after = base.file, candidate.file
    comparison = replace(
        compare(before.result, after.result, gates, wanted=wanted),
        remarks=(*base.remarks, *candidate.remarks),
        without_base=base.missing,
    )
    names = base.name, candidate.name
    return report(
        comparison,
        before.profile,
        after.profile,
        wanted=wanted_of(options),
        rows=options["rows"],
        names=names,
        pythons=(before.python, after.python),
    )


def code_of(made: Report, base: Side, *, require_baseline: bool) -> int:
    """Return the exit code of a comparison with this base, which may have been searched in vain.

    Where there is nothing to compare with, that is no fault of the candidate; its failures and limits still count.
    """
    code = exit_code(made.comparison)
    return FINE if base.missing and not require_baseline and code == NotComparableError.exit_code else code


def same_program(comparison: Comparison) -> tuple[str, ...]:
    """Return a remark if two different commits gave exactly the same counts, as they do when neither was really measured."""
    base, candidate = comparison.base.commit, comparison.candidate.commit
    if base is None or candidate is None or base.sha == candidate.sha or not comparison.compared:
        return ()
    if any(item.change is None or item.change.base != item.change.candidate for item in comparison.differences):
        return ()
    return (_SAME,)
