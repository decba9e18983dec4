"""What a series tells a person: steps, creep and instability as findings, with who is suspected and what became of them.

Knows series, commits, releases and accepted changes; must not know where they come from. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.accepted import accepted_here
from cachegrind_bench.history.creep import Epoch, creep_findings
from cachegrind_bench.history.lifecycle import aged, current_keys, known_identity, recovery, times_of
from cachegrind_bench.history.noise import MILLION
from cachegrind_bench.history.steps import WINDOW, find_steps, unsteady
from cachegrind_bench.history.values import Finding, Kind, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from cachegrind_bench.history.accepted import Accepted
    from cachegrind_bench.history.steps import Step, Unsteady
    from cachegrind_bench.history.values import Reading, Series
    from cachegrind_bench.model.history import CommitNote, Release


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What matters, in parts per million: the smallest step, and how far a level may creep above the best."""

    minimum_step: int = 2_000
    creep_budget: int = 20_000

    def __post_init__(self) -> None:
        if self.minimum_step <= 0 or self.creep_budget <= 0:
            raise UsageError("the smallest step and the budget for creep must be above zero")


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of one benchmark that compare with each other, and all that is needed to judge them."""

    benchmark: str
    key: str
    readings: tuple[Reading, ...]
    values: tuple[int, ...]
    line: Sequence[CommitNote]
    accepted: tuple[tuple[int, Accepted], ...]
    previous: Collection[str] | None
    options: Options

    def span(self, at: int) -> tuple[int, int]:
        """Return from which to before which place on the line the change lies that this reading shows first."""
        return self.readings[at - 1].index + 1 if at else self.readings[at].index, self.readings[at].index + 1

    def reason(self, start: int, stop: int) -> str | None:
        """Return why a change within these places on the line was accepted; None if it was not."""
        return next((entry.reason for index, entry in self.accepted if start <= index < stop), None)


def find(
    series: Series,
    line: Sequence[CommitNote],
    *,
    releases: Sequence[Release] = (),
    accepted: Sequence[Accepted] = (),
    previous: Mapping[str, bool] | None = None,
    newest: int | None = None,
    options: Options | None = None,
) -> tuple[Finding, ...]:
    """Return what is to be said of a series over these commits, by the place on the line where it began.

    `line` is what the readings' indices count, oldest first, and `newest` the place on it of the newest commit that was
    measured at all, else this series' own. `previous` are the ids of the previous report's findings, and whether they were
    confirmed; None if there is none. Only readings of equal keys are compared.
    """
    limits = options or Options()
    rows: dict[str, list[Reading]] = {}
    for reading in series.readings:
        rows.setdefault(reading.key, []).append(reading)
    if all(_is_steady(readings, limits) for readings in rows.values()):
        return ()
    here = accepted_here(series.id, line, accepted)
    released = _released(line, releases, series.readings[-1].index)
    current = current_keys(series.readings)
    found: list[Finding] = []
    for key, readings in rows.items():
        row = _Row(
            benchmark=series.id,
            key=key,
            readings=tuple(readings),
            values=tuple(reading.value for reading in readings),
            line=line,
            accepted=here,
            previous=previous,
            options=limits,
        )
        # What is no longer measured in this way has no level now.
        found += _findings(row, released if key in current else None)
    last = series.readings[-1].index if newest is None else newest
    times = times_of(line) if found else []
    told = [
        aged(finding, series, times, previous=previous, newest=last)
        for finding in (_narrowest(found) if len(rows) > 1 else found)
    ]
    return tuple(sorted(told, key=lambda finding: (finding.index, finding.kind.value, finding.id)))


def _is_steady(readings: Sequence[Reading], limits: Options) -> bool:
    """Tell, quickly, that no two readings differ by what matters: so it is with most."""
    values = [reading.value for reading in readings]
    least = min(limits.minimum_step, limits.creep_budget)
    return (max(values) - min(values)) * MILLION < least * max(min(values), 1)


def _released(line: Sequence[CommitNote], releases: Sequence[Release], newest: int) -> int:
    """Return the place of the last release on the line, -1 if there is none."""
    shas = {release.sha for release in releases}
    return max((index for index, note in enumerate(line[: newest + 1]) if note.sha in shas), default=-1)


def _findings(row: _Row, released: int | None) -> list[Finding]:
    """Judge one row; `released` is None if its creep is not asked for."""
    least = row.options.minimum_step
    all_steps = find_steps(row.values, least)
    stretches = unsteady(row.values, all_steps, least)
    steps = [step for step in all_steps if not any(stretch.start <= step.at <= stretch.stop for stretch in stretches)]
    found = list(_step_findings(row, steps))
    if stretches:
        found.append(_unstable(row, stretches))
    if released is not None:
        # Readings that cannot be judged tell no level: the best is looked for after them.
        epoch = Epoch(
            readings=row.readings,
            line=row.line,
            start=stretches[-1].stop if stretches else 0,
            released=released,
            accepted=row.accepted,
            budget=row.options.creep_budget,
            least=least,
            known=row.previous or (),
        )
        found += creep_findings(row.benchmark, row.key, epoch, steps)
    return found


def _step_findings(row: _Row, steps: Sequence[Step]) -> Iterator[Finding]:
    least = row.options.minimum_step
    recoveries = {step.at: recovery(row.values, step, steps, least) for step in steps}
    for number, step in enumerate(steps):
        undone = [one for one in steps[:number] if one.after > one.before and recoveries[one.at] == step.at]
        if undone and not _is_below(row, step.after, min(one.before for one in undone)):
            continue  # the end of what it undoes, and told there
        kind = Kind.REGRESSION if step.after > step.before else Kind.IMPROVEMENT
        stop = steps[number + 1].at if number + 1 < len(steps) else len(row.readings)
        start, end = row.span(step.at)
        back, reason = recoveries[step.at], row.reason(start, end)
        state = State.OPEN
        if back is not None:
            state = State.RECOVERED
        elif reason is not None:
            state = State.ACKNOWLEDGED
        anchors = (reading.sha for reading in row.readings[step.at : stop])
        yield Finding(
            id=known_identity(kind, row.benchmark, row.key, anchors, row.previous),
            kind=kind,
            state=state,
            benchmark=row.benchmark,
            key=row.key,
            before=step.before,
            after=step.after,
            suspects=tuple(note.sha for note in row.line[start:end]),
            last_good_sha=row.readings[step.at - 1].sha,
            index=row.readings[step.at].index,
            confirmed=step.confirmed,
            recovered_sha=row.readings[back].sha if back is not None else None,
            reason=reason,
            lone_base=step.at == 1 and len(row.readings) > 2,
        )


def _is_below(row: _Row, level: int, other: int) -> bool:
    return (other - level) * MILLION >= row.options.minimum_step * max(abs(other), 1)


def _unstable(row: _Row, stretches: Sequence[Unsteady]) -> Finding:
    last = stretches[-1]
    start, end = row.span(last.start)
    within = row.reason(start, row.readings[last.stop - 1].index + 1)
    over = len(row.readings) - last.stop >= WINDOW
    state = State.ACKNOWLEDGED if within is not None else State.OPEN
    return Finding(
        id=known_identity(Kind.UNSTABLE, row.benchmark, row.key, [""], None),
        kind=Kind.UNSTABLE,
        state=State.RECOVERED if over else state,
        benchmark=row.benchmark,
        key=row.key,
        before=last.low,
        after=last.high,
        suspects=tuple(note.sha for note in row.line[start:end]) if last.start else (),
        last_good_sha=row.readings[last.start - 1].sha if last.start else None,
        index=row.readings[last.start].index,
        confirmed=True,
        recovered_sha=row.readings[last.stop].sha if over else None,
        reason=within,
    )


def _narrowest(found: Sequence[Finding]) -> list[Finding]:
    """Tell like steps of several keys that share a suspect as one: where the fewest are suspected it is seen best."""
    kept: list[Finding] = []
    for one in sorted(found, key=lambda one: (not one.confirmed, len(one.suspects), one.index, one.key, one.id)):
        step = one.kind in (Kind.REGRESSION, Kind.IMPROVEMENT)
        others = (other for other in kept if other.kind is one.kind and other.key != one.key)
        if not step or all(set(other.suspects).isdisjoint(one.suspects) for other in others):
            kept.append(one)
    return kept
