"""Lists for people and for scripts: benchmarks of a configuration, baselines, runs of a history and what is wrong with it.

Each is returned in one of the forms json, markdown and table, the last for a terminal of some width.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from cachegrind_bench.history.adaptive import difference
from cachegrind_bench.model.text import change, counted, grouped, plain, shortened, some
from cachegrind_bench.render import table
from cachegrind_bench.render.table import Report, Row, Section

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.history.adaptive import Backfilled, Interval
    from cachegrind_bench.model.result import Commit, Result, Snapshot
    from cachegrind_bench.store.protocol import Problem

_LONGEST_ID = 30
_LONGEST_SUBJECT = 50
_SHOWN_CHANGES = 20


def benchmarks(specs: Sequence[BenchmarkSpec], total: int, origin: str, form: str, *, width: int | None = None) -> str:
    """Return the chosen benchmarks of `total` that this configuration has."""
    if form == "json":
        from cachegrind_bench.render.documents import lists

        return lists.benchmarks(specs, origin)
    rows: list[Row] = [("id", "command", "tags", "parameters")]
    rows += (
        (spec.id, _command(spec), ", ".join(spec.tags), ", ".join(map("=".join, spec.parameters.items())))
        for spec in specs
    )
    columns, *rows = table.without_empty(rows, (2, 3))  # the values of parameters are in the ids
    section = Section(columns=columns, rows=tuple(rows), shrinkable=(1, 0))
    return table.render(Report(title=_title(specs, total, "benchmark", origin), sections=(section,)), form, width=width)


def _command(spec: BenchmarkSpec) -> str:
    """Return what is run; an id at the end, as pytest's, would only repeat the first column."""
    *words, last = spec.command
    return f"{shlex.join(words)} …" if words and last == spec.id else shlex.join(spec.command)


def baselines(held: Mapping[str, Result | str], place: str, form: str) -> str:
    """Return the baselines at this place: what each holds, or why it cannot be read."""
    if form == "json":
        from cachegrind_bench.render.documents import lists

        return lists.baselines(held)
    section = Section(
        columns=("name", "benchmarks", "commit", "branch", "measured"),
        rows=tuple(_baseline(name, found) for name, found in held.items()),
    )
    broken = tuple(f"{name} cannot be read: {found}" for name, found in held.items() if isinstance(found, str))
    title = f"{counted(len(held), 'baseline')} in {place}"
    return table.render(Report(title=title, sections=(section,), warnings=broken), form)


def _baseline(name: str, held: Result | str) -> Row:
    if isinstance(held, str):
        return name, "unreadable"
    branch = held.commit.branch if held.commit else None
    return name, _ids([item.id for item in held.benchmarks], 3), _commit(held.commit), branch or "", held.created_at


def updated(name: str, before: Result | None, after: Result) -> str:
    """Return what became of a baseline: which benchmarks were added, replaced and dropped, and the commits."""
    old = {item.id for item in before.benchmarks} if before else set[str]()
    new = {item.id for item in after.benchmarks}
    lines = [f"{name}: {'updated' if before else 'new'}, {counted(len(new), 'benchmark')}"]
    for what, ids in (("added", new - old), ("replaced", new & old), ("dropped", old - new)):
        lines += [f"  {what:8}  {plain(item)}" for item in sorted(ids)[:_SHOWN_CHANGES]]
        if len(ids) > _SHOWN_CHANGES:
            lines.append(f"  {what:8}  and {len(ids) - _SHOWN_CHANGES} more")
    origin = f"{_commit(before.commit) or 'unknown'} -> " if before else ""
    lines.append(f"  commit    {origin}{_commit(after.commit) or 'unknown'}")
    return "\n".join(lines) + "\n"


def _commit(commit: Commit | None) -> str:
    return "" if commit is None else plain(commit.sha[:12]) + (" with uncommitted changes" if commit.dirty else "")


def backfilled(done: Backfilled, *, width: int | None = None) -> str:
    """Return the steps between commits that were measured, and how many commits were not."""
    rows: list[Row] = []
    for item in done.steps:
        before, after = done.costs[item.before], done.costs[item.after]
        first, last = done.shas[item.before + 1], done.shas[item.after]
        what = plain(done.subjects.get(last, "")) if first == last else _between(item, done)
        for name in sorted(before.keys() | after.keys()):
            share = difference(
                {name: before[name]} if name in before else {}, {name: after[name]} if name in after else {}
            )
            if share > done.min_step:
                rows.append((last[:12], name, *_moved(before.get(name), after.get(name)), what))
    left = len(done.shas) - len(done.costs) - len(done.failed) - done.failed_before - done.equal
    parts = (
        (done.taken_over, "taken over from others that read the same"),
        (done.known_before, "known before"),
        (len(done.failed), "failed"),
        (done.failed_before, "failed before, which --retry tries again"),
        (done.equal, "between commits that cost the same"),
        (left, "between commits that could not be measured" if done.is_all else "left, call again to go on"),
    )
    others = "".join(f", {count} {what}" for count, what in parts if count)
    title = f"{counted(len(done.shas), 'commit')}: {done.measured} measured now{others}"
    reasons: dict[str, list[str]] = {}
    for sha, why in done.failed.items():
        reasons.setdefault(why, []).append(sha[:12])
    failed = tuple(
        f"{some(shas, _SHOWN_CHANGES)} could not be measured: {'; '.join(map(str.strip, why.splitlines()))}"
        for why, shas in list(reasons.items())[:_SHOWN_CHANGES]
    )
    columns = "commit", "benchmark", "before", "after", "Δ score", "subject"
    section = Section(columns=columns, rows=tuple(rows), shrinkable=(5, 1))
    sections = (section,) if rows else ()
    return table.render(Report(title=title, sections=sections, warnings=failed), "table", width=width)


def _between(item: Interval, done: Backfilled) -> str:
    """Return why a step was not narrowed down to one commit."""
    count = item.after - item.before
    others = f"{len(item.untried)} not tried" if item.untried else "the others could not be measured"
    return f"one of {count} commits after {done.shas[item.before][:12]}: {others}"


def _moved(before: int | None, after: int | None) -> tuple[str, str, str]:
    if before is None or after is None:
        return (
            "-" if before is None else grouped(before),
            "-" if after is None else grouped(after),
            "new" if before is None else "gone",
        )
    return (
        grouped(before),
        grouped(after),
        change(Fraction(after - before, before or 1) if before or not after else None),
    )


def runs(
    found: Sequence[Snapshot],
    total: int,
    place: str,
    form: str,
    *,
    width: int | None = None,
    subjects: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return runs of `total` that there are at this place, with the `subjects` of their commits as far as they are known."""
    if form == "json":
        from cachegrind_bench.render.documents.lists import RunList

        return RunList(store=place, total=total, runs=tuple(found)).text()
    columns: Row = ("run", "commit", "subject", "benchmarks", "committed", "branch", "measured", "environment")
    columns, *rows = table.without_empty([columns, *(_run(run, subjects) for run in found)], (2,))
    last = len(columns) - 1
    section = Section(
        columns=columns,
        rows=tuple(rows),
        shrinkable=tuple(range(last - 4, 1, -1)),
        droppable=((last,), (last - 1,), (last - 2,)),
        last=(last - 3,),
    )
    return table.render(Report(title=_title(found, total, "run", place), sections=(section,)), form, width=width)


def _run(run: Snapshot, subjects: Mapping[str, str]) -> Row:
    commit = run.commit
    sha, subject, committed, branch = "none", "", "", ""
    if commit is not None:
        dirty = " with changes" if commit.dirty else ""
        sha, subject = f"{commit.sha[:12]}{dirty}", shortened(subjects.get(commit.sha, ""), _LONGEST_SUBJECT)
        committed, branch = _minute(commit.committed_at), commit.branch or ""
    failed = sum(point.counts is None for point in run.points)
    measured = (_ids([point.id for point in run.points], 1) or "none") + (f" ({failed} failed)" if failed else "")
    return run.uid[:8], sha, subject, measured, committed, branch, _minute(run.created_at), run.env_key


def _minute(time: str) -> str:
    """Return 2026-01-31T12:00:00Z as 2026-01-31 12:00."""
    return time[:16].replace("T", " ")


def problems(found: Sequence[Problem], total: int, place: str, form: str) -> str:
    """Return what is wrong with the store at this place, which has `total` records."""
    if form == "json":
        from cachegrind_bench.render.documents.lists import ProblemList

        return ProblemList(store=place, records=total, problems=tuple(found)).text()
    verdict = counted(len(found), "problem") if found else "nothing wrong"
    rows = tuple((problem.where, problem.what) for problem in found)
    section = Section(columns=("where", "what is wrong"), rows=rows)
    return table.render(
        Report(title=f"{verdict} with {counted(total, 'record')} in {place}", sections=(section,)), form
    )


def _title(found: Sequence[object], total: int, noun: str, place: str) -> str:
    part = "" if len(found) == total else f"{grouped(len(found))} of "
    return f"{part}{counted(total, noun)} in {place}"


def _ids(ids: Sequence[str], most: int) -> str:
    return some([shortened(plain(name), _LONGEST_ID) for name in ids], most)
