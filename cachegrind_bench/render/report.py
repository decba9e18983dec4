"""What the reports of one benchmark and of a suite say, as titled rows of text; `table` lays them out."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict, replace

from cachegrind_bench.model.metrics import CostModel, estimate
from cachegrind_bench.model.result import (
    PER_ITERATIONS,
    Benchmark,
    Environment,
    Result,
    SealPart,
    SealState,
    Since,
    Status,
)
from cachegrind_bench.model.text import change, counted, duration, grouped, share, some, spread
from cachegrind_bench.render.functions import called, hottest, lines, python
from cachegrind_bench.render.table import Report, Row, Section, without_empty

if TYPE_CHECKING:
    from cachegrind_bench.model.time_model import TimeModel

_FIRST = 10  # Python functions in a short report
_NAMED = 5  # benchmarks of a kind
_OF_THE_PROGRAM = "the command"  # reasons that begin so
_CUT = (
    "some Python calls were nested too deeply to be followed to their outermost callers: costs with callees are too low "
    "there; calls, and what functions cost by themselves, are exact"
)

Span = tuple[int, int]


class Spans(msgspec.Struct, frozen=True, kw_only=True):
    """Smallest and largest numbers.

    `noise` is that of the score in the layout where it is furthest apart; the others are those between layouts, each
    and counts by its lower median.
    """

    noise: Span
    identical: bool  # all nine counts, within each layout
    layouts: int
    score: Span
    ir: Span


def spans(benchmark: Benchmark) -> Spans | None:
    """Return how far the runs are apart; None without runs."""
    if benchmark.score is None or not benchmark.runs:
        return None
    model = CostModel.parse(benchmark.score.model)
    layouts = benchmark.by_layout()
    scores = [sorted(map(model.score, counts)) for counts in layouts.values()]
    return Spans(
        noise=max(
            ((values[0], values[-1]) for values in scores), key=lambda span: (span[1] - span[0]) / max(span[0], 1)
        ),
        identical=all(len(set(counts)) == 1 for counts in layouts.values()),
        layouts=len(layouts),
        score=_between(scores),
        ir=_between([sorted(item.Ir for item in counts) for counts in layouts.values()]),
    )


def _between(layouts: Sequence[Sequence[int]]) -> Span:
    middles = [values[(len(values) - 1) // 2] for values in layouts]
    return min(middles), max(middles)


def measured(benchmark: Benchmark, env: Environment, since: Since | None = None) -> Report:
    """Return the short report that follows a run; `since` is how it differs from the last one."""
    rows = () if since is None else (("change", change(since.change), f"since the last run, of {_minute(since.at)}"),)
    return _report(benchmark, python(benchmark, top=_FIRST), _conditions([benchmark], env), news=rows)


def _minute(time: str) -> str:
    """Return 2026-01-31T12:00:00Z as 2026-01-31 12:00 UTC."""
    return f"{time[:16].replace('T', ' ')} UTC"


def shown(
    result: Result, benchmark: Benchmark, *, top: int, sort: str, root: str = "", model: TimeModel | None = None
) -> Report:
    """Return the long report: totals, the time by a model, every event, what functions and lines cost, the seal; files below `root` relative to it."""
    counts = benchmark.counts.counted() if benchmark.counts is not None else {}
    counts |= asdict(benchmark.branches) if benchmark.branches is not None else {}
    events = tuple((name, grouped(value)) for name, value in counts.items())
    seal = tuple((name, part.state.value, part.why or "") for name, part in sorted(benchmark.seal.items()))
    return _report(
        benchmark,
        *_times(result, [benchmark], model),
        python(benchmark, top=top, root=root),
        called(benchmark.calls, top=top, root=root),
        hottest(benchmark, top=top, sort=sort, root=root),
        lines(benchmark, top=top, sort=sort, root=root),
        Section(title="events", rows=events),
        Section(title="seal", rows=seal),
        _conditions([benchmark], result.env),
        _origin(result, benchmark),
    )


def _times(result: Result, benchmarks: Sequence[Benchmark], model: TimeModel | None) -> tuple[Section, ...]:
    if model is None:
        return ()
    from cachegrind_bench.render.time_models import time_section

    return (time_section(result, benchmarks, model),)


def _report(benchmark: Benchmark, *sections: Section, news: tuple[Row, ...] = ()) -> Report:
    numbers = _numbers(benchmark)
    return Report(
        title=benchmark.id,
        sections=(replace(numbers, rows=(*numbers.rows, *news)), _processes(benchmark), *sections),
        warnings=(*benchmark.warnings, *([_CUT] if benchmark.python is not None and benchmark.python.cut else [])),
    )


def _numbers(benchmark: Benchmark) -> Section:
    counts, score = benchmark.counts, benchmark.score
    if counts is None or score is None:
        return Section(rows=(("status", benchmark.status.value), ("error", benchmark.error or "")))
    hits = {"L1 hits": counts.l1_hits, "LL hits": counts.ll_hits, "RAM hits": counts.ram_hits}
    hits = hits if counts.with_caches else {}
    rows: list[Row] = [
        ("score", grouped(score.value), score.model),
        ("Ir", grouped(counts.Ir), "instructions executed"),
        *((name, grouped(number), share(number, sum(hits.values()))) for name, number in hits.items()),
    ]
    if benchmark.branches is not None:
        rows.insert(1, ("estimate", grouped(estimate(counts, benchmark.branches)), "of the time, in no unit"))
    if benchmark.iterations is not None:
        rows[0] = (*rows[0][:2], f"{score.model}, for {grouped(PER_ITERATIONS)} iterations")
        rows.insert(
            len(rows) - len(hits),
            ("", per_iteration(counts.Ir), f"in each iteration; {grouped(benchmark.iterations)} measured"),
        )
    found, runs = spans(benchmark), len(benchmark.runs)
    if found is not None and runs > found.layouts:
        within = " within each layout" if found.layouts > 1 else ""
        same = f"all {'nine ' if hits else ''}counts of {runs} runs are identical{within}"
        differing = f"of the score, over {runs} runs{within}"
        rows.append(("noise", spread(*found.noise), same if found.identical else differing))
    if found is not None and found.layouts > 1:
        spreads = f"score spread {spread(*found.score)}, Ir spread {spread(*found.ir)}"
        rows.append(("layouts", grouped(found.layouts), spreads))
    return Section(rows=(*rows, *_allocations(benchmark)))


def _allocations(benchmark: Benchmark) -> list[Row]:
    """Return how often memory is allocated, where all calls are recorded."""
    if benchmark.calls is None or not benchmark.calls.is_whole:
        return []
    from cachegrind_bench.compare.allocations import counted as counted_allocations
    from cachegrind_bench.valgrind.demangling import demangled

    found = counted_allocations(None, benchmark.calls)
    if not found.made.callers:
        return []
    chief = found.made.callers[0]
    who = demangled(chief.label.name)
    most = f"{grouped(chief.candidate.number)} by {who}, " if len(found.made.callers) > 1 else f"by {who}, "
    return [("allocations", grouped(found.made.candidate), f"{most}{counted(found.freed.candidate, 'call')} of free")]


def per_iteration(count: int) -> str:
    """Return what one iteration costs, with as many digits as a result has."""
    whole, rest = divmod(count, PER_ITERATIONS)
    return f"{grouped(whole)}.{rest:03}".rstrip("0").rstrip(".")


def _processes(benchmark: Benchmark) -> Section:
    rows: list[Row] = []
    if benchmark.counts is not None and len(benchmark.processes) > 1:
        total = benchmark.counts.Ir
        rows += (
            (item.executable, grouped(item.counts.Ir), share(item.counts.Ir, total)) for item in benchmark.processes
        )
    return Section(title="processes", columns=("executable", "Ir", "share"), rows=tuple(rows))


def _conditions(benchmarks: Sequence[Benchmark], env: Environment) -> Section:
    """Return how these were measured: what was sealed once if all have it in common, else with the ids of each kind."""
    seals = dict[str, list[str]]()
    for item in benchmarks:
        seals.setdefault(_sealed(item), []).append(item.id)
    parts = (part for item in benchmarks for part in sorted(item.seal.items()))
    lacking = dict.fromkeys((name, part.why) for name, part in parts if part.state is SealState.UNAVAILABLE)
    tools = " and ".join(dict.fromkeys(item.tool.capitalize() for item in benchmarks))
    runs = sum(len(item.runs) for item in benchmarks)
    took = duration(sum(item.wall_ms for item in benchmarks))
    rows: list[Row] = [
        ("sealed", text if len(seals) == 1 else f"{text}: {some(ids, _NAMED)}") for text, ids in seals.items()
    ]
    rows += (("", f"not pinned: {name}: {why}") for name, why in lacking)
    if runs:
        # Layouts and repetitions, or a second look at one that may be noisy, are runs of their own.
        several = 1 < len(benchmarks) != runs
        of = f" of {counted(len(benchmarks), 'benchmark')}" if several else ""
        rows.append(
            ("measured", f"{counted(runs, 'run')}{of} under {tools} {env.fields.get('valgrind', '?')} in {took}")
        )
    if not all(item.processes_exact for item in benchmarks):
        rows.append(("processes", "not all counted exactly, see the warnings"))
    return Section(rows=tuple(rows))


def _sealed(benchmark: Benchmark) -> str:
    kept = ", ".join(_kept(name, part) for name, part in sorted(benchmark.seal.items()) if part.state is SealState.KEPT)
    wanted = [part for part in benchmark.seal.values() if part.state is not SealState.KEPT]
    pinned = sum(part.state is SealState.PINNED for part in wanted)
    state = "fully" if pinned == len(wanted) else f"{pinned} of {len(wanted)} parts"
    return f"{state}{f' ({kept})' if kept else ''}"


def _kept(name: str, part: SealPart) -> str:
    why = part.why or ""
    return f"{name} kept: {why}" if why.startswith(_OF_THE_PROGRAM) else f"{name} kept"


def _origin(result: Result, benchmark: Benchmark) -> Section:
    fields = sorted({**result.env.fields, **benchmark.key_fields}.items())
    rows: list[Row] = [
        ("command", shlex.join(benchmark.command)),
        ("created", result.created_at),
        *([("commit", result.commit.described)] if result.commit is not None else []),
        ("key", f"{benchmark.key}, comparable with results of the same key"),
        *((f"  {name}", value) for name, value in fields),
    ]
    return Section(title="origin", rows=tuple(rows))


def suite(
    result: Result,
    *,
    unfinished: Collection[str] = (),
    skipped: Mapping[str, str] = MappingProxyType({}),
    reused: Collection[str] = (),
    remarks: Iterable[str] = (),
    since: Mapping[str, Since] = MappingProxyType({}),
) -> Report:
    """Return a row for each benchmark, with its change `since` the last run; and once for all of them how they were measured.

    `unfinished` ones were not measured to their end, `reused` ones not measured again; `skipped` says why.
    """
    failed = [item for item in result.benchmarks if item.status is not Status.OK]
    title = [counted(len(result.benchmarks), "benchmark")]
    title += [
        f"{len(items)} {what}"
        for items, what in (
            (failed, "failed"),
            (skipped, "skipped"),
            (reused, "re-used"),
            (unfinished, "not measured"),
        )
        if items
    ]
    columns: Row = (
        *("benchmark", "score", "since last run", "Ir", "in each iteration"),
        *("RAM hits", "noise", "over layouts", "measured in"),
    )
    rows = [_suite_row(item, since.get(item.id), reused=item.id in reused) for item in result.benchmarks]
    columns, *rows = without_empty([columns, *rows], (2, 4, 5, 6, 7))
    # Why benchmarks have no score: below the table, whose columns are for numbers.
    failures = _by_reason((item.id, (item.error or "").partition("\n")[0]) for item in failed)
    warned = dict[str, list[str]]()
    for item in result.benchmarks:
        for text in item.warnings:
            warned.setdefault(text, []).append(item.id)
    warnings = [f"{some(ids, _NAMED)}: {text}" for text, ids in warned.items()]
    optional = tuple((columns.index(name),) for name in ("RAM hits", "measured in", "Ir") if name in columns)
    table = Section(columns=columns, rows=tuple(rows), shrinkable=(0,), droppable=optional, ids=0)
    return Report(
        title=", ".join(title),
        sections=(
            table,
            Section(title="not measured", rows=failures),
            Section(title="skipped", rows=_by_reason(skipped.items())),
            *([_conditions(result.benchmarks, result.env)] if result.benchmarks else []),
        ),
        warnings=(*warnings, *remarks, *(f"{name} was not measured" for name in unfinished)),
    )


def _by_reason(items: Iterable[tuple[str, str]]) -> tuple[Row, ...]:
    """Return a row for each reason, with the first benchmark that has it and how many more."""
    reasons = dict[str, list[str]]()
    for name, reason in items:
        reasons.setdefault(reason, []).append(name)
    return tuple((some(ids, 1), reason) for reason, ids in reasons.items())


def overview(result: Result, model: TimeModel | None = None) -> Report:
    """Return the benchmarks of a result in one table, their times by a model, and once for all of them how and from what they were measured."""
    found = suite(result)
    keys = dict.fromkeys(item.key for item in result.benchmarks)
    rows: list[Row] = [
        ("created", result.created_at),
        *([("commit", result.commit.described)] if result.commit is not None else []),
        ("keys" if len(keys) > 1 else "key", some([*keys], _NAMED)),
        ("details", "with --benchmark PATTERN"),
    ]
    times = _times(result, result.benchmarks, model)
    return replace(found, sections=(*found.sections, *times, Section(rows=tuple(rows))))


def _suite_row(item: Benchmark, since: Since | None, *, reused: bool) -> Row:
    found = spans(item)
    if item.counts is None or item.score is None or found is None:
        return item.id, item.status.value
    return (
        item.id,
        grouped(item.score.value),
        "" if since is None else change(since.change),
        grouped(item.counts.Ir),
        "" if item.iterations is None else per_iteration(item.counts.Ir),
        grouped(item.counts.ram_hits) if item.counts.with_caches else "",
        "" if len(item.runs) == found.layouts else spread(*found.noise),  # nothing was measured twice in one layout
        "" if found.layouts == 1 else spread(*found.score),
        "re-used" if reused else duration(item.wall_ms),
    )
