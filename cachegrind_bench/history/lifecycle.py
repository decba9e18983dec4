"""What becomes of a change from report to report: its name, whether its level came back, is news, can still be judged.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median_low

from msgspec.structs import replace

from cachegrind_bench.history.steps import WINDOW, Step, matters
from cachegrind_bench.history.values import Finding, Kind, Reading, Series, State
from cachegrind_bench.model.result import CommitNote

_NEW_FOR = timedelta(hours=24)  # without a previous report, what the newest commits brought is new
_RETIRED_AFTER = timedelta(days=30)  # a benchmark that has not been run for so long is not expected to be
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)  # for unreadable times; subtracting days from it stays in the calendar
_TURNS = 4  # a machine is still measured if it had one of this many last commits: two that take turns leave out no more
_READINGS = 5  # the level now is the median of this many readings


def recovery(values: Sequence[int], step: Step, steps: Sequence[Step], least: int) -> int | None:
    """Return the place from which on the level is what it was before the step, or better; None if it is not back.

    It is back with the first confirmed step there, or, where it came back little by little, if it is there now.
    """
    for later in steps:
        if later.at > step.at and later.confirmed and _is_back(later.after, step, least):
            return later.at
    back = None
    for start in range(len(values) - _READINGS, step.at - 1, -1):
        if not _is_back(median_low(values[start : start + _READINGS]), step, least):
            break
        back = start + _READINGS // 2
    return back


def _is_back(level: int, step: Step, least: int) -> bool:
    away = level - step.before if step.after > step.before else step.before - level
    return away < 0 or not matters(away, step.before, least)


def aged(
    finding: Finding, series: Series, times: Sequence[datetime], *, previous: Mapping[str, bool] | None, newest: int
) -> Finding:
    """Return an open finding as new or outdated, if it is.

    `times` are those of the commits, `newest` is the place of the newest that was measured, and `previous` says of each
    finding of the previous report whether it was confirmed: what became so since is news. A finding is outdated if its key
    has not been measured for many readings, or its benchmark is no longer run: nothing measured now can compare with it.
    """
    if finding.state is not State.OPEN:
        return finding
    later = [reading for reading in series.readings if reading.index > finding.index]
    same = [number for number, reading in enumerate(later) if reading.key == finding.key]
    if len(later) - (same[-1] + 1 if same else 0) >= WINDOW or is_retired(series, times, newest):
        return replace(finding, state=State.OUTDATED)
    if previous is not None:
        new = finding.id not in previous or (finding.confirmed and not previous[finding.id])
    else:
        known = later[same[0]].index if finding.is_step and finding.confirmed and same else finding.index
        new = times[newest] - times[known] <= _NEW_FOR
    return replace(finding, state=State.NEW) if new else finding


def current_keys(readings: Sequence[Reading]) -> frozenset[str]:
    """Return the keys that are still measured: that of the newest reading, and of machines that take turns with it."""
    lately = sorted({reading.index for reading in readings})[-_TURNS:]
    return frozenset(reading.key for reading in readings if reading.index >= lately[0]) if lately else frozenset()


def is_retired(series: Series, times: Sequence[datetime], newest: int) -> bool:
    """Return whether the newest commit that was measured is so much younger than the last this benchmark was run at."""
    last = series.last_run
    return last >= 0 and times[newest] - times[last] > _RETIRED_AFTER


def times_of(line: Sequence[CommitNote]) -> list[datetime]:
    """Return when each commit was on the line: its time, but where few clocks contradict the others, that of a neighbour."""
    times = list(map(moment, line))
    # The longest row of times that never go back: `ends` has the place at which the best one of each length ends.
    ends: list[int] = []
    before: list[int | None] = []
    for place, time in enumerate(times):
        length = bisect_right(ends, time, key=times.__getitem__)
        before.append(ends[length - 1] if length else None)
        ends[length : length + 1] = [place]
    right: set[int] = set()
    at = ends[-1] if ends else None
    while at is not None:
        right.add(at)
        at = before[at]
    last = min(right, default=0)
    for place in range(len(times)):
        last = place if place in right else last
        times[place] = times[last]
    return times


def moment(note: CommitNote) -> datetime:
    """Return when a commit was made, as far as anybody can read it."""
    try:
        time = datetime.fromisoformat(note.committed_at)
    except ValueError:
        return _EARLIEST
    return max(_EARLIEST, time if time.tzinfo is not None else time.replace(tzinfo=UTC))


def identity(kind: Kind, benchmark: str, key: str, anchor: str) -> str:
    """Return 12 hex digits for a change that came with the commit `anchor`, or that has no such commit ("")."""
    text = json.dumps([kind.value, benchmark, key, anchor], separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def known_identity(
    kind: Kind, benchmark: str, key: str, anchors: Iterable[str], previous: Collection[str] | None
) -> str:
    """Return the identity after the first of these commits, or one from the previous report that belongs to a later one.

    If a commit before the first is measured afterwards, that is the first then: the old name is found by the later one.
    """
    names = (identity(kind, benchmark, key, anchor) for anchor in anchors)
    own = next(names)
    if not previous or own in previous:
        return own
    return next((name for name in names if name in previous), own)


def reported_before(
    findings: Iterable[Finding], renames: Mapping[str, str], anchors: Collection[str]
) -> dict[str, bool]:
    """Return the identities of a previous report's findings, and whether they were confirmed then.

    Those of benchmarks that have another name now are found by that as well; `anchors` are the commits creep may begin with.
    """
    known: dict[str, bool] = {}
    for finding in findings:
        if finding.kind is Kind.UNSTABLE and finding.state is State.RECOVERED:
            continue  # it has one name for ever, and its return is news
        names = [finding.id]
        if finding.benchmark in renames:
            begins = finding.suspects[-1:] if finding.is_step else ("", *anchors)
            names += [identity(finding.kind, renames[finding.benchmark], finding.key, begin) for begin in begins]
        for name in names:
            known[name] = known.get(name, False) or finding.confirmed
    return known
