"""A comparison with its explanations, ready to be laid out, and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import Comparison, Conclusion, State
from cachegrind_bench.errors import MeasurementError, NotComparableError

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_paths import CallPaths
    from cachegrind_bench.compare.explain import Details

FINE, REGRESSION = 0, 1


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of sides with these `names`, and by ids the `details` of what moved, some of them shown `at_length`.

    A table has this many `rows` (0 for all). `paths` finds those that a page draws, by ids. `places` are FILE:LINE of the
    configuration by benchmark; files below `root` are shown relative to it.
    """

    comparison: Comparison
    details: Mapping[str, Details]
    names: tuple[str, str]
    rows: int = 0
    at_length: tuple[str, ...] = ()
    paths: Callable[[], Iterator[tuple[str, list[CallPaths]]]] = lambda: iter(())
    places: Mapping[str, str] = {}
    root: str = ""

    @property
    def changed(self) -> bool:
        """Whether anything moved, or could not be compared; a benchmark that is new has nothing to be compared with."""
        return any(item.state not in (State.UNCHANGED, State.NEW) for item in self.comparison.differences)

    def exit_code(self, *, require_baseline: bool = True) -> int:
        """Return the exit code.

        Unless a baseline is required, a missing one is not held against the candidate; its failures and limits still count.
        """
        match self.comparison.conclusion():
            case Conclusion.REGRESSION:
                return REGRESSION
            case Conclusion.FAILED:
                return MeasurementError.exit_code
            case Conclusion.INCOMPLETE if require_baseline or not self.comparison.without_base:
                return NotComparableError.exit_code
            case _:
                return FINE

    def with_remarks(self, remarks: tuple[str, ...]) -> Self:
        """Return the same with these remarks on where base and candidate come from."""
        return replace(self, comparison=replace(self.comparison, remarks=remarks))
