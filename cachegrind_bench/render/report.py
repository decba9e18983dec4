"""What a report of one benchmark says, as titled rows of text; `table` and `markdown` only lay it out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import EVENTS, Counts
from cachegrind_bench.model.result import SealState
from cachegrind_bench.model.score import CostModel
from cachegrind_bench.model.text import counted, duration, grouped, plain, share, spread
from cachegrind_bench.render.demangling import demangle, demangled
from cachegrind_bench.render.layouts import spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.metrics import FunctionCost
    from cachegrind_bench.model.python_profile import PythonFunction
    from cachegrind_bench.model.result import Benchmark, Environment, Result

Row = tuple[str, ...]

_FIRST = 10  # Python functions in a short report


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a heading. `columns` names them; empty for pairs of label and value."""

    title: str
    columns: Row
    rows: tuple[Row, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: its name, its sections and its warnings."""

    title: str
    sections: tuple[Section, ...]
    warnings: tuple[str, ...]


def measured(benchmark: Benchmark, env: Environment) -> Report:
    """Return the short report that follows a run."""
    sections = [
        _numbers(benchmark),
        *_processes(benchmark),
        *_python(benchmark, top=_FIRST),
        _conditions(benchmark, env),
    ]
    return _report(benchmark, sections)


def shown(result: Result, benchmark: Benchmark, *, top: int, sort: str) -> Report:
    """Return the long report: totals, every event, the hottest functions, the seal."""
    sections = [_numbers(benchmark), *_processes(benchmark), *_python(benchmark, top=top)]
    if benchmark.profile is not None:
        sections.append(_hottest(benchmark, top=top, sort=sort))
    sections += [_events(benchmark), _seal(benchmark), _conditions(benchmark, result.env), _origin(result, benchmark)]
    return _report(benchmark, [section for section in sections if section.rows])


def _report(benchmark: Benchmark, sections: Sequence[Section]) -> Report:
    """Make every text harmless, in one place: a result file may come from a stranger's pull request."""

    def cleaned(section: Section) -> Section:
        return replace(section, rows=tuple(tuple(plain(cell) for cell in row) for row in section.rows))

    return Report(
        title=plain(benchmark.id),
        sections=tuple(cleaned(section) for section in sections),
        warnings=tuple(plain(warning) for warning in (*benchmark.warnings, *_python_warnings(benchmark))),
    )


def _numbers(benchmark: Benchmark) -> Section:
    counts, score = benchmark.counts, benchmark.score
    if counts is None or score is None:
        return Section(
            title="", columns=(), rows=(("status", benchmark.status.value), ("error", benchmark.error or ""))
        )
    accesses = counts.l1_hits + counts.ll_hits + counts.ram_hits
    rows: list[Row] = [
        ("score", grouped(score.value), score.model),
        ("Ir", grouped(counts.Ir), "instructions executed"),
        ("L1 hits", grouped(counts.l1_hits), share(counts.l1_hits, accesses)),
        ("LL hits", grouped(counts.ll_hits), share(counts.ll_hits, accesses)),
        ("RAM hits", grouped(counts.ram_hits), share(counts.ram_hits, accesses)),
    ]
    return Section(title="", columns=(), rows=(*rows, *_spreads(benchmark)))


def _spreads(benchmark: Benchmark) -> list[Row]:
    found = spans(benchmark)
    if found is None:
        return []
    rows: list[Row] = []
    runs = len(benchmark.runs)
    if runs > found.layouts:
        within = " within each layout" if found.layouts > 1 else ""
        same = f"all nine counts of {runs} runs are identical{within}"
        rows.append(
            ("noise", spread(*found.noise), same if found.identical else f"of the score, over {runs} runs{within}")
        )
    if found.layouts > 1:
        rows.append(
            ("layouts", grouped(found.layouts), f"score spread {spread(*found.score)}, Ir spread {spread(*found.ir)}")
        )
    return rows


def _processes(benchmark: Benchmark) -> list[Section]:
    if len(benchmark.processes) < 2 or benchmark.counts is None:
        return []
    total = benchmark.counts.Ir
    rows = tuple(
        (process.executable, grouped(process.counts.Ir), share(process.counts.Ir, total))
        for process in benchmark.processes
    )
    return [Section(title="processes", columns=("executable", "Ir", "share"), rows=rows)]


def _conditions(benchmark: Benchmark, env: Environment) -> Section:
    parts = benchmark.seal.values()
    wanted = [part for part in parts if part.state is not SealState.KEPT]
    pinned = sum(part.state is SealState.PINNED for part in wanted)
    loose = [
        f"{name}: {part.why}" for name, part in sorted(benchmark.seal.items()) if part.state is SealState.UNAVAILABLE
    ]
    kept = ", ".join(f"{name} kept" for name, part in sorted(benchmark.seal.items()) if part.state is SealState.KEPT)
    state = "fully" if pinned == len(wanted) else f"{pinned} of {len(wanted)} parts"
    runs = len(benchmark.runs)
    tool = f"{benchmark.tool.capitalize()} {env.fields.get('valgrind', '?')}"
    rows: list[Row] = [
        ("sealed", f"{state}{f' ({kept})' if kept else ''}"),
        *(("", f"not pinned: {text}") for text in loose),
        ("measured", f"{runs} run{'s' if runs != 1 else ''} under {tool} in {duration(benchmark.wall_ms)}"),
    ]
    if not benchmark.processes_exact:
        rows.append(("processes", "not all counted exactly, see the warnings"))
    return Section(title="", columns=(), rows=tuple(rows))


def _events(benchmark: Benchmark) -> Section:
    counts = benchmark.counts
    rows = () if counts is None else tuple((name, grouped(value)) for name, value in counts.as_dict().items())
    return Section(title="events", columns=(), rows=rows)


def _seal(benchmark: Benchmark) -> Section:
    rows = tuple((name, part.state.value, part.why or "") for name, part in sorted(benchmark.seal.items()))
    return Section(title="seal", columns=(), rows=rows)


def _origin(result: Result, benchmark: Benchmark) -> Section:
    rows: list[Row] = [("command", shlex.join(benchmark.command)), ("created", result.created_at)]
    commit = result.commit
    if commit is not None:
        dirty = " with uncommitted changes" if commit.dirty else ""
        branch = f" on {commit.branch}" if commit.branch else ""
        rows.append(("commit", f"{commit.sha[:12]}{branch}{dirty}"))
    rows.append(("key", f"{benchmark.key}, comparable with results of the same key"))
    rows += [(f"  {name}", value) for name, value in sorted({**result.env.fields, **benchmark.key_fields}.items())]
    return Section(title="origin", columns=(), rows=tuple(rows))


def _hottest(benchmark: Benchmark, *, top: int, sort: str) -> Section:
    profile, score = benchmark.profile, benchmark.score
    if profile is None or score is None or top <= 0:
        return Section(title="", columns=(), rows=())
    model = CostModel.parse(score.model)

    def weight(row: FunctionCost) -> int:
        counts = Counts.from_mapping(dict(zip(profile.events, row.counts, strict=True)))
        return model.score(counts) if name == "score" else counts.as_dict()[name]

    name = sort_name(sort)
    weighed = sorted(
        ((weight(row), row) for row in profile.functions), key=lambda item: (-item[0], item[1].name, item[1].file)
    )
    total = sum(value for value, _row in weighed)
    demangle(row.name for _value, row in weighed[:top])
    rows = [(grouped(value), share(value, total), demangled(row.name), row.file) for value, row in weighed[:top]]
    rest = weighed[top:]
    if rest:
        value = sum(value for value, _row in rest)
        rows.append(
            (grouped(value), share(value, total), f"{len(rest)} other function{'s' if len(rest) != 1 else ''}", "")
        )
    return Section(title="hottest functions", columns=(name, "share", "function", "file"), rows=tuple(rows))


def _python(benchmark: Benchmark, *, top: int) -> list[Section]:
    """List the Python functions that cost most by themselves; the rows add up to what the execution cost."""
    profile = benchmark.python
    if profile is None or top <= 0:
        return []
    costs = profile.costs()

    def row(ir: int, inclusive: str, calls: str, name: str, place: str) -> Row:
        return grouped(ir), share(ir, profile.total), inclusive, calls, name, place

    rows = [
        row(item.ir, grouped(item.inclusive), grouped(item.calls), item.function.name, _place(item.function))
        for item in costs[:top]
    ]
    rest = costs[top:]
    if rest:
        calls = grouped(sum(item.calls for item in rest))
        rows.append(row(sum(item.ir for item in rest), "", calls, f"{counted(len(rest), 'other function')}", ""))
    rows.append(row(profile.native, "", "", "native code not under any Python function", ""))
    title = f"hottest Python functions, of {grouped(profile.total)} Ir in an execution of its own with -X perf"
    columns = ("Ir", "share", "with callees", "calls", "function", "file")
    return [Section(title=title, columns=columns, rows=tuple(rows))]


def _python_warnings(benchmark: Benchmark) -> list[str]:
    if benchmark.python is None or not benchmark.python.cut:
        return []
    text = (
        "some Python calls were nested too deeply to be followed to their outermost callers: costs with callees are too low "
        "there; calls, and what functions cost by themselves, are exact"
    )
    return [text]


def _place(function: PythonFunction) -> str:
    return f"{function.file}:{function.line}" if function.line else function.file


def sort_name(text: str) -> str:
    """Return the canonical spelling of a column to sort by; UsageError for what is none."""
    names = {name.lower(): name for name in ("score", *EVENTS)}
    if text.lower() not in names:
        raise UsageError(f"cannot sort by {text!r}", hint=f"one of: {', '.join(names.values())}")
    return names[text.lower()]
