"""A comparison as JSON: `diff`, `ab` and `check`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from cachegrind_bench.compare.allocations import Allocations, Number
from cachegrind_bench.compare.call_split import CallDelta, Caller, CallSplit, Kind, Label
from cachegrind_bench.compare.estimates import EstimateChange, estimated
from cachegrind_bench.compare.explain import Details, FunctionDelta, MovedFunction
from cachegrind_bench.compare.verdict import (
    BLAMING,
    Cause,
    Comparison,
    Conclusion,
    Difference,
    ExceededLimit,
    FieldDifference,
    Metric,
    State,
)
from cachegrind_bench.model.call_graph import Calls
from cachegrind_bench.model.described import (
    DIFFERENCE,
    Instructions,
    InstructionsMore,
    Points,
    PointsMore,
    Ppm,
    PpmMore,
    doc,
)
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.render.comparison.allocations import allocations_text
from cachegrind_bench.render.comparison.blame import interpreted
from cachegrind_bench.render.comparison.builds import lonely_remarks, other_build, other_builds
from cachegrind_bench.render.comparison.calls import cause_text
from cachegrind_bench.render.comparison.remarks import remarks
from cachegrind_bench.render.comparison.verdict_line import verdict_line
from cachegrind_bench.render.documents.document import Document, fields, optional
from cachegrind_bench.render.documents.growth import ComparedGrowth, compared
from cachegrind_bench.valgrind.demangling import demangled

if TYPE_CHECKING:
    from cachegrind_bench.compare.change import Shift
    from cachegrind_bench.compare.hunks import HunkSplit, Touched
    from cachegrind_bench.compare.python_blame import PythonBlame, PythonDelta
    from cachegrind_bench.model.python_profile import PythonCost
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.vcs.diff import Hunk

_CountsMore = Annotated[Counts, msgspec.Meta(extra_json_schema={DIFFERENCE: True})]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where one side comes from."""

    commit: Annotated[str | None, doc("id of the commit")]
    created_at: Annotated[str, doc("when it was measured, UTC")]
    env_key: Annotated[str, doc("key of the machine")]


class SideCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark on one side."""

    counts: Annotated[Counts, doc("the nine event counts")]
    score: Annotated[Points, doc("the score under the model of the comparison")]
    key: Annotated[str, doc("comparability key")]


class OtherBuild(msgspec.Struct, frozen=True, kw_only=True):
    """An executable or library with what made it on one side only."""

    path: Annotated[str, doc("the file")]
    base: Annotated[tuple[str, ...], doc("compilers, with their options, of the base alone")]
    candidate: Annotated[tuple[str, ...], doc("compilers, with their options, of the candidate alone")]


class ChangePpm(msgspec.Struct, frozen=True, kw_only=True):
    """Relative changes."""

    score: Annotated[PpmMore | None, doc("change of the score, relative to the base; null from 0")]
    Ir: Annotated[PpmMore | None, doc("change of Ir, relative to the base; null from 0")]


class NoisePpm(msgspec.Struct, frozen=True, kw_only=True):
    """What repeated runs differ by."""

    score: Annotated[Ppm, doc("range of the score in repeated runs, relative to the lowest; rounded up")]
    Ir: Annotated[Ppm, doc("range of Ir in repeated runs, relative to the lowest; rounded up")]


class BlamedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """The function that explains most of a change."""

    function: Annotated[str, doc("name, demangled")]
    file: Annotated[str, doc("its source file, or program")]
    share_ppm: Annotated[
        Ppm, doc("part of the change that it explains; above 1,000,000 where others went the other way")
    ]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the difference of a benchmark."""

    delta: Annotated[_CountsMore, doc("difference of the nine event counts")]
    score: Annotated[PointsMore, doc("difference of the score")]


class FunctionPart(Part, frozen=True, kw_only=True):
    """A function's part of the difference."""

    function: Annotated[str, doc("name, demangled; empty for whole files (`--by file`)")]
    file: Annotated[str, doc("its source file, or program")]


class RestPart(Part, frozen=True, kw_only=True):
    """What all functions that have no row differ by."""

    functions: Annotated[int, doc("how many they are")]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the source."""

    file: Annotated[str | None, doc("source file; null where the side lacks the line")]
    line: Annotated[int | None, doc("number of the line, from 1; null where the side lacks it")]


class LinePart(Part, frozen=True, kw_only=True):
    """A source line's part of the difference."""

    function: Annotated[str, doc("the function it is in, demangled")]
    base: Annotated[Line, doc("where it is in the base")]
    candidate: Annotated[Line, doc("where it is in the candidate")]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Which functions differ; rows and rest add up to the total."""

    functions: Annotated[tuple[FunctionPart, ...], doc("those that matter most (`--explain` says how many)")]
    rest: Annotated[RestPart, doc("all others together")]
    total: Annotated[Part, doc("the whole difference")]
    lines: Annotated[tuple[LinePart, ...] | None, doc("source lines that moved most (`--lines`)")]
    moved: Annotated[tuple[MovedFunction, ...], doc("functions that cost the same, in another file")]


class CallsExplained(msgspec.Struct, frozen=True, kw_only=True):
    """What became of calls. The blames of the functions, rest and top add up to the total."""

    functions: Annotated[tuple[CallDelta, ...], doc("functions that matter, the most important first")]
    rest: Annotated[InstructionsMore, doc("blame of all others")]
    top: Annotated[InstructionsMore, doc("what was running from the start on, and is new")]
    total: Annotated[InstructionsMore, doc("the whole difference")]


class CallReason(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, in one sentence."""

    kind: Annotated[Kind, doc("more or fewer calls, or another cost of each: its own, or with all that it calls")]
    text: Annotated[str, doc("the sentence")]
    function: Annotated[Label, doc("the function that it is about")]
    blamed: Annotated[Label, doc("the function whose code did it")]
    base: Annotated[Calls, doc("the function's calls in the base")]
    candidate: Annotated[Calls, doc("the function's calls in the candidate")]
    caller: Annotated[Caller | None, doc("who calls it more or less often, or called the function of a system library")]
    members: Annotated[int, doc("number of functions that call each other with it, 1 for one alone")]
    ir: Annotated[InstructionsMore, doc("part of the difference that this explains")]


class ChangedLines(msgspec.Struct, frozen=True, kw_only=True):
    """A hunk, by its lines in the candidate."""

    file: Annotated[str, doc("path in the repository")]
    first: Annotated[int, doc("its first line")]
    last: Annotated[int, doc("its last line")]


class ChangedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that the change touches and that is to blame for a part of the difference."""

    function: Annotated[str, doc("name of the function")]
    ir: Annotated[InstructionsMore, doc("part of the difference that it is to blame for")]
    hunks: Annotated[tuple[ChangedLines, ...], doc("hunks in it")]


class AllocationsExplained(msgspec.Struct, frozen=True, kw_only=True):
    """How often memory is allocated and freed, by calls of `malloc`, `operator new`, `free` and their like."""

    text: Annotated[str | None, doc("the difference in one sentence; null without a difference")]
    made: Annotated[Number, doc("allocations; a `realloc` is one")]
    freed: Annotated[Number, doc("calls that free memory")]
    kept: Annotated[
        int,
        doc(
            "by how many more blocks are allocated, and not freed, than in the base; 0 if realloc is called more or less often"
        ),
    ]


class HunksExplained(msgspec.Struct, frozen=True, kw_only=True):
    """What the hunks between the two commits explain."""

    functions: Annotated[tuple[ChangedFunction, ...], doc("functions with hunks, the most to blame first")]
    through: Annotated[
        ChangedFunction | None,
        doc(
            "where these explain less than half: the innermost with hunks from which most of the difference is called, `ir` being that"
        ),
    ]
    others: Annotated[tuple[ChangedLines, ...], doc("hunks in none of these")]
    idle: Annotated[bool, doc("whether nothing that changed was executed, as far as that is certain")]
    total: Annotated[InstructionsMore, doc("the whole difference")]


class PythonSide(msgspec.Struct, frozen=True, kw_only=True):
    """What a Python function costs on one side."""

    calls: Annotated[int, doc("number of calls")]
    self: Annotated[Instructions, doc("Ir of the function itself, with the native code that it calls")]
    inclusive: Annotated[Instructions, doc("Ir with all that it calls")]


class PythonPart(msgspec.Struct, frozen=True, kw_only=True):
    """A Python function that differs."""

    function: Annotated[str, doc("name of the function")]
    file: Annotated[str, doc("its source file")]
    line: Annotated[int, doc("number of its first line")]
    blame: Annotated[InstructionsMore, doc("part of the difference that it is to blame for")]
    own: Annotated[InstructionsMore, doc("what its own code costs more than the base predicts")]
    base: Annotated[PythonSide, doc("what it costs in the base")]
    candidate: Annotated[PythonSide, doc("what it costs in the candidate")]


class PythonRest(msgspec.Struct, frozen=True, kw_only=True):
    """What all Python functions that have no row differ by."""

    functions: Annotated[int, doc("how many they are")]
    blame: Annotated[InstructionsMore, doc("sum of their blame")]
    own: Annotated[InstructionsMore, doc("sum of what their own code costs more")]
    delta: Annotated[InstructionsMore, doc("sum of the differences of their self costs")]


class PythonNative(msgspec.Struct, frozen=True, kw_only=True):
    """Native code that runs under no Python function."""

    base: Annotated[Instructions, doc("its Ir in the base")]
    candidate: Annotated[Instructions, doc("its Ir in the candidate")]
    blame: Annotated[InstructionsMore, doc("part of the difference that it is to blame for")]


class PythonTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Ir of the whole profile."""

    base: Annotated[Instructions, doc("Ir of the base's profile")]
    candidate: Annotated[Instructions, doc("Ir of the candidate's profile")]


class PythonExplained(msgspec.Struct, frozen=True, kw_only=True):
    """What became of Python's functions. The blames of rows, rest and native code add up to the total difference."""

    blamed: Annotated[PythonPart | None, doc("the one to name first")]
    functions: Annotated[tuple[PythonPart, ...], doc("those that differ, the most to blame first")]
    rest: Annotated[PythonRest, doc("all others together")]
    native: Annotated[PythonNative, doc("native code under no Python function")]
    total: Annotated[PythonTotal, doc("the whole profiles")]
    cut: Annotated[bool, doc("whether a profile lacks the outer callers of some calls")]


class ComparedBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of the comparison."""

    id: Annotated[str, doc("name of the benchmark")]
    state: Annotated[State, doc("what became of it")]
    forced: Annotated[bool, doc("whether it was compared in spite of different keys (`--force`)")]
    causes: Annotated[tuple[Cause, ...], doc("which thresholds or limits made the state")]
    fields: Annotated[tuple[FieldDifference, ...], doc("what differs between the environments")]
    remarks: Annotated[tuple[str, ...], doc("remarks, in words")]
    base: Annotated[SideCounts | None, doc("the base; null if the benchmark is new, or failed")]
    candidate: Annotated[SideCounts | None, doc("the candidate; null if the benchmark is missing, or failed")]
    threshold_ppm: Annotated[Ppm, doc("what the metric was held to; noise may have raised it")]
    change_ppm: Annotated[ChangePpm | None, doc("relative changes; null unless both sides compare")]
    noise_ppm: Annotated[NoisePpm | None, doc("what repeated runs differ by")]
    estimate: Annotated[EstimateChange | None, doc("estimates of the time, if both sides have them")]
    layouts: Annotated[int | None, doc("number of memory layouts that both sides have")]
    limits: Annotated[tuple[ExceededLimit, ...], doc("limits that were exceeded")]
    interpreter: Annotated[
        str | None, doc("interpreter whose functions the explanation has; null for a native program")
    ]
    builds: Annotated[
        tuple[OtherBuild, ...], doc("executables and libraries that other compilers, or other options, made")
    ]
    build_files: Annotated[
        tuple[str, ...], doc("files of the build that changed between the commits, if both are known")
    ]
    blamed: Annotated[BlamedFunction | None, doc("function that explains most of it")]
    cause: Annotated[CallReason | None, doc("what happened, if calls were recorded")]
    calls: Annotated[CallsExplained | None, doc("what became of calls, if both sides recorded them")]
    hunks: Annotated[HunksExplained | None, doc("hunks of the change, if both commits and calls are known")]
    allocations: Annotated[AllocationsExplained | None, doc("allocations of memory, if both sides recorded calls")]
    python: Annotated[PythonExplained | None, doc("Python's functions, if both sides have such a profile")]
    explanation: Annotated[Explained | None, doc("native functions, if both sides have a profile")]
    growth: Annotated[ComparedGrowth | None, doc("instead of all this, how benchmarks with `sizes` grow")]


class DiffReport(Document, frozen=True, kw_only=True):
    """`diff --json`, and the same of `ab` and `check`: every benchmark is in it."""

    schema: Literal["cg-bench.diff/1"] = "cg-bench.diff/1"
    verdict: Annotated[State, doc("state of the worst benchmark")]
    conclusion: Annotated[Conclusion, doc("what it comes to; the exit code follows from it")]
    headline: Annotated[str, doc("all of it in one sentence")]
    metric: Annotated[Metric, doc("the number that decides")]
    model: Annotated[str, doc("weights of the score")]
    notices: Annotated[tuple[str, ...], doc("what holds for the comparison as a whole, in words")]
    rescored: Annotated[tuple[str, ...], doc("other models that results had been measured with")]
    compared: Annotated[int, doc("number of benchmarks that were compared")]
    states: Annotated[dict[str, int], doc("number of benchmarks in each state")]
    forced: Annotated[bool, doc("whether any was compared in spite of different keys")]
    base: Annotated[Origin, doc("where the base comes from")]
    candidate: Annotated[Origin, doc("where the candidate comes from")]
    benchmarks: Annotated[tuple[ComparedBenchmark, ...], doc("all benchmarks, the worst state first")]


def comparison(found: Comparison, details: Mapping[str, Details]) -> str:
    """Return a comparison; every benchmark is in it."""
    from cachegrind_bench.render.comparison.view import notices

    return DiffReport(
        **fields(found, "verdict", "rescored", "compared"),
        conclusion=found.conclusion(),
        headline=verdict_line(found, details),
        metric=found.gates.metric,
        model=found.model.name,
        notices=tuple(notices(found, details)),
        states={state.value: number for state, number in found.count().items()},
        forced=any(item.forced for item in found.differences),
        base=_origin(found.base),
        candidate=_origin(found.candidate),
        benchmarks=tuple(_benchmark(item, found, details.get(item.id)) for item in found.differences),
    ).text()


def _origin(result: Result) -> Origin:
    commit = None if result.commit is None else result.commit.sha
    return Origin(commit=commit, created_at=result.created_at, env_key=result.env.key)


def _benchmark(item: Difference, found: Comparison, details: Details | None) -> ComparedBenchmark:
    def side(of: Benchmark | None) -> SideCounts | None:
        if of is None or of.counts is None:
            return None
        return SideCounts(counts=of.counts, score=found.model.score(of.counts), key=of.key)

    moved = item.change
    to_blame = details if item.state in BLAMING and other_build(item, details) is None else None
    blamed = None if to_blame is None else to_blame.blamed
    return ComparedBenchmark(
        **fields(item, "id", "state", "forced", "causes", "fields"),
        remarks=(*lonely_remarks(details), *remarks(item, found.gates)),
        base=side(item.base),
        candidate=side(item.candidate),
        threshold_ppm=item.threshold,
        change_ppm=optional(moved, lambda it: ChangePpm(score=it.score.relative, Ir=it.ir.relative)),
        noise_ppm=optional(moved, lambda it: NoisePpm(score=_noise(it.score), Ir=_noise(it.ir))),
        estimate=None if moved is None else estimated(item.base, item.candidate),
        layouts=optional(moved, lambda it: it.layouts),
        limits=item.broken,
        interpreter=interpreted(item, details),
        builds=tuple(
            OtherBuild(path=one.path, base=one.compilers[0], candidate=one.compilers[1]) for one in other_builds(item)
        ),
        build_files=() if details is None else details.build_files,
        blamed=None
        if blamed is None or details is None
        else BlamedFunction(function=demangled(blamed.name), file=blamed.file, share_ppm=details.blamed_share),
        cause=optional(to_blame, _cause),
        calls=optional(details, lambda it: optional(it.calls, _calls)),
        hunks=optional(details, lambda it: optional(it.hunks, _hunks)),
        allocations=optional(item.allocations or (None if details is None else details.allocations), _allocations),
        python=optional(details, lambda it: optional(it.python, _python)),
        explanation=optional(details, lambda it: _explanation(it, found)),
        growth=optional(item.growth, compared),
    )


def _noise(shift: Shift) -> Fraction:
    """Return whole parts per million, rounded up: only equal runs have none."""
    return Fraction(ceil(shift.noise * 1_000_000), 1_000_000)


def _explanation(details: Details, found: Comparison) -> Explained:
    score = found.model.score

    def function(row: FunctionDelta) -> FunctionPart:
        return FunctionPart(function=demangled(row.name), file=row.file, delta=row.delta, score=score(row.delta))

    return Explained(
        functions=tuple(map(function, details.rows)),
        rest=RestPart(functions=len(details.rest), delta=details.rest_delta, score=score(details.rest_delta)),
        total=Part(delta=details.total, score=score(details.total)),
        lines=None
        if details.lines is None
        else tuple(
            LinePart(
                function=demangled(name),
                base=Line(file=line.base_file, line=line.base_line),
                candidate=Line(file=line.candidate_file, line=line.candidate_line),
                delta=line.delta,
                score=score(line.delta),
            )
            for name, line in details.lines
        ),
        moved=details.moved,
    )


def _cause(details: Details) -> CallReason | None:
    found = details.cause
    if found is None:
        return None
    return CallReason(
        **fields(found, "kind", "ir", "members", "function", "base", "candidate", "caller"),
        text=cause_text(details) or "",
        blamed=found.culprit,
    )


def _calls(found: CallSplit) -> CallsExplained:
    return CallsExplained(functions=found.rows, **fields(found, "rest", "top", "total"))


def _allocations(found: Allocations) -> AllocationsExplained:
    return AllocationsExplained(text=allocations_text(found), **fields(found, "made", "freed", "kept"))


def _hunks(found: HunkSplit) -> HunksExplained:
    def lines(hunks: tuple[Hunk, ...]) -> tuple[ChangedLines, ...]:
        return tuple(ChangedLines(**fields(hunk, "file", "first", "last")) for hunk in hunks)

    def changed(row: Touched) -> ChangedFunction:
        return ChangedFunction(function=demangled(row.function.name), ir=row.function.ir, hunks=lines(row.hunks))

    return HunksExplained(
        functions=tuple(map(changed, found.touched)),
        through=optional(found.through, changed),
        others=lines(found.others),
        **fields(found, "idle", "total"),
    )


def _python(found: PythonBlame) -> PythonExplained:
    """Return what became of Python's functions."""
    sums = {name: sum(getattr(row, name) for row in found.rest) for name in ("blame", "own", "delta")}
    return PythonExplained(
        blamed=optional(found.chief, _python_part),
        functions=tuple(map(_python_part, found.rows)),
        rest=PythonRest(functions=len(found.rest), **sums),
        native=PythonNative(base=found.base_native, candidate=found.candidate_native, blame=found.native_blame),
        total=PythonTotal(base=found.base_total, candidate=found.candidate_total),
        cut=found.cut,
    )


def _python_part(row: PythonDelta) -> PythonPart:
    def side(cost: PythonCost) -> PythonSide:
        return PythonSide(calls=cost.calls, self=cost.ir, inclusive=cost.inclusive)

    return PythonPart(
        function=row.function.name,
        **fields(row.function, "file", "line"),
        **fields(row, "blame", "own"),
        base=side(row.base),
        candidate=side(row.candidate),
    )
