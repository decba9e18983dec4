"""Two sides as a comparison with explanations. Knows results and their profiles; must not know how a user names the sides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.usecases.result_files import check_outputs

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.compare.call_paths import CallPaths
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.compare.growth import Growth
    from cachegrind_bench.compare.verdict import Comparison, Gates
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.metrics import Profile
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.thresholds import Limit
    from cachegrind_bench.vcs.git import Git

# How many benchmarks are explained at length; the others only name the function that explains most.
_EXPLAINED = 10
_SAME = (
    "both commits gave exactly the same counts: if what they run is installed from elsewhere, the same was measured twice; "
    "a set-up command of the suite installs or builds what belongs to each commit"
)


class GateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison is held to, as it is typed or configured."""

    threshold: Sequence[str] = ()
    threshold_ir: Sequence[str] = ()
    threshold_allocations: Sequence[str] = ()
    threshold_cache: str = "2%"
    max_drop: Sequence[str] = ()
    limit: Sequence[str] = ()
    metric: str = "score"
    fail_on: str = "regression"
    force: bool = False
    model: str | None = None

    def gates(self, benchmarks: Sequence[BenchmarkSpec] = (), *, typed: Collection[str] = ()) -> Gates:
        """Return the gates. UsageError on anything that is not a threshold or limit.

        The benchmarks' own thresholds and limits hold unless `threshold` or `limit` is among the `typed` options.
        """
        from cachegrind_bench.compare.verdict import DEFAULT_MAX_DROP, DEFAULT_THRESHOLD, FailOn, Gates, Metric
        from cachegrind_bench.model.metrics import CostModel
        from cachegrind_bench.model.thresholds import limit, percentage, percentages

        own = () if "threshold" in typed else benchmarks
        return Gates(
            threshold=replace(
                percentages(self.threshold, DEFAULT_THRESHOLD, "--threshold"),
                own={spec.id: percentage(spec.threshold, "threshold") for spec in own if spec.threshold is not None},
            ),
            threshold_ir=percentages(self.threshold_ir, None, "--threshold-ir"),
            threshold_allocations=percentages(self.threshold_allocations, None, "--threshold-allocations"),
            threshold_cache=percentage(self.threshold_cache, "--threshold-cache"),
            max_drop=percentages(self.max_drop, DEFAULT_MAX_DROP, "--max-drop"),
            limits=(*map(limit, self.limit), *(() if "limit" in typed else own_limits(benchmarks))),
            metric=Metric.IR if self.metric.lower() == "ir" else Metric.SCORE,
            fail_on=FailOn(self.fail_on),
            force=self.force,
            model=None if self.model is None else CostModel.parse(self.model),
        )


def own_limits(benchmarks: Sequence[BenchmarkSpec]) -> list[Limit]:
    """Return the limits in the configuration's tables of these benchmarks."""
    from cachegrind_bench.model.thresholds import limit

    return [replace(limit(text), pattern=spec.id, own=True) for spec in benchmarks for text in spec.limits]


class ReportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a comparison is shown: `rows` in the table (0 for all), `explain` in each explanation (0 for none).

    Rows are `by` function or file. `form` is printed, and `files` are written as well, by their formats. `places` are FILE:LINE of
    the configuration by benchmark; files below `root` are shown relative to it, and `git` knows what changed between the commits.
    """

    rows: int = 0
    explain: int = 10
    by: str = "function"
    lines: bool = False
    root: str = ""
    git: Git | None = None
    form: str = "table"
    files: Mapping[str, Path] = {}
    places: Mapping[str, str] = {}

    def check_files(self, inputs: Collection[str] = ()) -> None:
        """Find out before the work whether the files can be written; UsageError if not, or if one is among the `inputs`."""
        check_outputs({f"--{kind}": path for kind, path in self.files.items()}, inputs)


class InMemory(msgspec.Struct, frozen=True):
    """A result with its profiles, as it was measured; it has what a `ResultFile` has."""

    result: Result

    def whole(self) -> Result:
        """Return the result with all its profiles."""
        return self.result

    def profile(self, identity: str) -> Profile | None:
        """Return the profile of the benchmark of this id."""
        return next((item.profile for item in self.result.benchmarks if item.id == identity), None)

    def python(self, identity: str) -> PythonProfile | None:
        """Return what the Python functions of the benchmark of this id cost."""
        return next((item.python for item in self.result.benchmarks if item.id == identity), None)

    def calls(self, identity: str) -> CallGraph | None:
        """Return which functions of the benchmark of this id called which."""
        return next((item.calls for item in self.result.benchmarks if item.id == identity), None)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side. `remarks` say where it was found; `missing` is set for a baseline that was searched in vain."""

    name: str
    file: ResultFile | InMemory
    remarks: tuple[str, ...] = ()
    missing: bool = False


def compared(
    base: Side,
    candidate: Side,
    gates: Gates,
    options: ReportOptions,
    *,
    wanted: Callable[[str], bool] = lambda _id: True,
) -> Explained:
    """Compare the benchmarks whose ids are `wanted`; profiles are read only for what will be shown."""
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.compare.seals import unlike_seals
    from cachegrind_bench.compare.verdict import State, compare, recognise_layout, with_allocations, with_growth

    before, after = base.file, candidate.file
    comparison = compare(before.result, after.result, gates, wanted=wanted)
    remarks = (*base.remarks, *candidate.remarks, *comparison.remarks, *unlike_seals(comparison))
    comparison = replace(comparison, remarks=remarks, without_base=base.missing)
    comparison = recognise_layout(comparison, before.profile, after.profile)
    comparison = with_allocations(comparison, before.calls, after.calls)
    comparison = with_growth(comparison, growths_in(before, wanted), growths_in(after, wanted))
    found = _explanations(comparison, before, after, options)
    # At length: what changed, or what is the only one.
    worth = [
        item.id
        for item in comparison.differences
        if item.id in found and (item.state not in {State.UNCHANGED, State.SHIFT} or len(comparison.differences) == 1)
    ]
    at_length = tuple(worth[:_EXPLAINED]) if options.explain else ()
    return Explained(
        comparison=comparison,
        details=found,
        names=(base.name, candidate.name),
        rows=options.rows,
        at_length=at_length,
        paths=partial(_paths, at_length, before, after),
        places=options.places,
        root=options.root,
    )


def growths_in(file: ResultFile | InMemory, wanted: Callable[[str], bool] = lambda _id: True) -> Mapping[str, Growth]:
    """Return how the benchmarks with sizes grow, by their groups; profiles are read only if there are any."""
    sized = [item for item in file.result.benchmarks if item.scale is not None and wanted(item.id)]
    if not sized:
        return {}
    from cachegrind_bench.compare.explain import whole_functions
    from cachegrind_bench.compare.growth import growths

    def profile(benchmark_id: str) -> Profile | None:
        found = file.profile(benchmark_id)
        return None if found is None else whole_functions(found)

    return growths(sized, profile, file.python)


def _explanations(
    comparison: Comparison, before: ResultFile | InMemory, after: ResultFile | InMemory, options: ReportOptions
) -> dict[str, Details]:
    shown = comparison.differences[: options.rows or None]
    moved = [item.id for item in shown if item.moved]
    if not moved:
        return {}
    from cachegrind_bench.compare.explain import details
    from cachegrind_bench.usecases.source_change import SourceChange

    change = None if options.git is None else SourceChange(comparison, options.git, options.root)
    found: dict[str, Details] = {}
    for name in moved:
        base, candidate = before.profile(name), after.profile(name)
        if base is not None and candidate is not None:
            one, other = before.python(name), after.python(name)
            calls = before.calls(name), after.calls(name)
            python = None if one is None or other is None else (one, other)
            explained = details(
                base,
                candidate,
                comparison,
                rows=options.explain,
                by_file=options.by == "file",
                lines=options.lines,
                python=python,
                calls=None if calls[0] is None or calls[1] is None else (calls[0], calls[1]),
                moves=(lambda _file: None) if change is None else change.moves,
            )
            found[name] = explained if change is None else change.explained(explained, (base, candidate), python)
    return found


def _paths(
    names: Sequence[str], before: ResultFile | InMemory, after: ResultFile | InMemory
) -> Iterator[tuple[str, list[CallPaths]]]:
    """Yield the paths of each benchmark that both sides have."""
    from cachegrind_bench.compare.call_paths import all_paths
    from cachegrind_bench.model.text import plain

    for name in names:
        python, calls = (before.python(name), after.python(name)), (before.calls(name), after.calls(name))
        yield plain(name), [*all_paths(python, calls)]


def same_program(comparison: Comparison) -> tuple[str, ...]:
    """Return a remark if two different commits gave exactly the same counts, as they do when neither was really measured."""
    base, candidate = comparison.base.commit, comparison.candidate.commit
    if base is None or candidate is None or base.sha == candidate.sha or not comparison.compared:
        return ()
    single = [item for item in comparison.differences if item.growth is None]
    if any(item.change is None or item.change.base != item.change.candidate for item in single):
        return ()
    return (_SAME,)
