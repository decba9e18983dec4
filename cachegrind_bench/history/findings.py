"""What is to be reported of a series: steps, creep and instability as findings, with suspects and what became of them.

Knows series, commits, releases and accepted changes; must not know where they come from. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.accepted import Accepted, accepted_here
from cachegrind_bench.history.creep import creep_findings
from cachegrind_bench.history.lifecycle import aged, current_keys, identity, known_identity, recovery, times_of
from cachegrind_bench.history.steps import WINDOW, Step, find_steps, matters, unsteady
from cachegrind_bench.history.values import Finding, KeyReadings, Kind, Reading, Series
from cachegrind_bench.model.result import CommitNote, Release


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What matters, in parts per million: the smallest step, and how far a level may creep above the best."""

    minimum_step: int = 2_000
    creep_budget: int = 20_000

    def __post_init__(self) -> None:
        if self.minimum_step <= 0 or self.creep_budget <= 0:
            raise UsageError("the smallest step and the budget for creep must be above zero")


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
    least = min(limits.minimum_step, limits.creep_budget)
    values = ([reading.value for reading in readings] for readings in rows.values())
    if not any(matters(max(row) - min(row), min(row), least) for row in values):
        return ()  # quickly, as so it is with most
    here = accepted_here(series.id, line, accepted)
    tagged = {release.sha for release in releases}
    seen = line[: series.readings[-1].index + 1]
    released = max((index for index, note in enumerate(seen) if note.sha in tagged), default=-1)
    current = current_keys(series.readings)
    found: list[Finding] = []
    for key, readings in rows.items():
        row = KeyReadings(
            benchmark=series.id,
            key=key,
            readings=tuple(readings),
            values=tuple(reading.value for reading in readings),
            line=line,
            accepted=here,
            previous=previous,
            least=limits.minimum_step,
            budget=limits.creep_budget,
        )
        # What is no longer measured in this way has no level now.
        found += _findings(row, released if key in current else None)
    last = series.readings[-1].index if newest is None else newest
    times = times_of(line) if found else []
    kept = _narrowest(found) if len(rows) > 1 else found
    dated = [aged(finding, series, times, previous=previous, newest=last) for finding in kept]
    return tuple(sorted(dated, key=lambda finding: (finding.index, finding.kind.value, finding.id)))


def _findings(row: KeyReadings, released: int | None) -> Iterator[Finding]:
    """Judge one row; `released` is None if its creep is not asked for."""
    all_steps = find_steps(row.values, row.least)
    stretches = unsteady(row.values, all_steps, row.least)
    steps = [step for step in all_steps if not any(stretch.start <= step.at <= stretch.stop for stretch in stretches)]
    yield from _step_findings(row, steps)
    if stretches:
        last = stretches[-1]
        yield row.finding(
            last.start,
            Kind.UNSTABLE,
            (last.low, last.high),
            reason=row.reason(row.span(last.start)[0], row.readings[last.stop - 1].index + 1),
            back=last.stop if len(row.readings) - last.stop >= WINDOW else None,
            id=identity(Kind.UNSTABLE, row.benchmark, row.key, ""),
        )
    if released is not None:
        # Readings that cannot be judged say nothing of a level: the best is looked for after them.
        yield from creep_findings(row, steps, start=stretches[-1].stop if stretches else 0, released=released)


def _step_findings(row: KeyReadings, steps: Sequence[Step]) -> Iterator[Finding]:
    recoveries = {step.at: recovery(row.values, step, steps, row.least) for step in steps}
    for number, step in enumerate(steps):
        undone = [one.before for one in steps[:number] if one.after > one.before and recoveries[one.at] == step.at]
        if undone and not (step.after < min(undone) and matters(min(undone) - step.after, min(undone), row.least)):
            continue  # the end of what it undoes, and reported there
        kind = Kind.REGRESSION if step.after > step.before else Kind.IMPROVEMENT
        stop = steps[number + 1].at if number + 1 < len(steps) else len(row.readings)
        anchors = (reading.sha for reading in row.readings[step.at : stop])
        yield row.finding(
            step.at,
            kind,
            (step.before, step.after),
            reason=row.reason(*row.span(step.at)),
            back=recoveries[step.at],
            id=known_identity(kind, row.benchmark, row.key, anchors, row.previous),
            confirmed=step.confirmed,
            lone_base=step.at == 1 and len(row.readings) > 2,
        )


def _narrowest(found: Sequence[Finding]) -> list[Finding]:
    """Report like steps of several keys that share a suspect as one: where the fewest are suspected it is seen best."""
    kept: list[Finding] = []
    for one in sorted(found, key=lambda one: (not one.confirmed, len(one.suspects), one.index, one.key, one.id)):
        others = (other for other in kept if other.kind is one.kind and other.key != one.key)
        if not one.is_step or all(set(other.suspects).isdisjoint(one.suspects) for other in others):
            kept.append(one)
    return kept
