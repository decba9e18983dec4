"""What a trend report says of series and findings over a window of commits: what is compared, counted, and in which order.

Knows values; must not know where they were stored, how changes were found, or what a report looks like.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from operator import attrgetter

from msgspec.structs import asdict

from cachegrind_bench.history.lifecycle import current_keys, is_retired, times_of
from cachegrind_bench.history.series import SeriesSet
from cachegrind_bench.history.values import (
    ACTIVE,
    WORSE,
    Against,
    Finding,
    Headline,
    Health,
    Kind,
    Provenance,
    Reading,
    Row,
    Series,
    State,
    Trend,
    is_suspicious,
    relative,
)
from cachegrind_bench.model.result import CommitNote, Release

_STATES = (State.NEW, State.OPEN, State.ACKNOWLEDGED, State.RECOVERED, State.OUTDATED)
_KINDS = (Kind.REGRESSION, Kind.CREEP, Kind.UNSTABLE, Kind.IMPROVEMENT)


def window(line: Sequence[CommitNote], *, since: datetime | None = None, last: int | None = None) -> int:
    """Return the index of the first commit that is neither before `since` nor before the `last` ones."""
    by_count = max(0, len(line) - last) if last is not None else 0
    by_time = bisect_left(times_of(line), since) if since is not None else 0
    return max(by_count, by_time)


def trend(
    found: SeriesSet,
    findings: Sequence[Finding],
    provenance: Provenance,
    *,
    releases: Sequence[Release] = (),
    first: int = 0,
    compared: bool = False,
) -> Trend:
    """Arrange a report on all series over the commits from `first` on; releases elsewhere than on the line are left out.

    `compared`: an earlier report decides what is new.
    """
    line, times = found.line, times_of(found.line)
    places = {note.sha: number for number, note in enumerate(line)}
    ids = {series.id for series in found.series}
    shown = tuple(sorted((finding for finding in findings if finding.benchmark in ids), key=_order))
    tagged = sorted((places[tag.sha], tag.name) for tag in releases if tag.sha in places)
    newest = max((series.readings[-1].index for series in found.series if series.readings), default=-1)
    release = next(((place, name) for place, name in reversed(tagged) if place < newest), None)
    by_benchmark: dict[str, list[Finding]] = {series.id: [] for series in found.series}
    for finding in shown:
        by_benchmark[finding.benchmark].append(finding)
    since = None if release is None else release[0]
    rows = [
        _row(series, by_benchmark[series.id], times, since, first=first, ran=found.newest) for series in found.series
    ]
    rows.sort(key=_by_impact)
    named = sorted(rows, key=lambda row: row.id)
    unstable = {finding.benchmark for finding in shown if finding.kind is Kind.UNSTABLE and finding.state in ACTIVE}
    return Trend(
        headline=_headline(shown, measured=newest >= 0, compared=compared),
        rows=tuple(rows),
        findings=shown,
        first=first,
        commits=tuple(line[first:]),
        noted={note.sha: note for note in line},
        releases=tuple((place, name) for place, name in tagged if place >= first),
        release=None if release is None else release[1],
        measured=len({item.index for series in found.series for item in series.readings if item.index >= first}),
        health=Health(
            failing=tuple(row.id for row in named if row.failing),
            failed_before=tuple(row.id for row in named if row.failed and not row.failing),
            missing=tuple(row.id for row in named if row.missing),
            retired=tuple(row.id for row in named if row.retired),
            unstable=tuple(sorted(unstable)),
            **asdict(found.left_out),
        ),
        provenance=provenance,
    )


def _row(
    series: Series, findings: list[Finding], times: list[datetime], release: int | None, *, first: int, ran: int
) -> Row:
    """Return the row of a series; `release` is the place of the release it is compared with, `ran` of the newest run."""
    readings = _one_line(series.readings)
    latest = readings[-1] if readings else None
    indices = [reading.index for reading in readings]

    def against(index: int) -> Against | None:
        if latest is None:
            return None
        place = bisect_right(indices, index)
        return Against(base=readings[place - 1] if place else None, latest=latest)

    def days(number: int) -> Against | None:
        # Counted back from the newest commit, not from now: a report of an old state says the same again.
        return against(bisect_right(times, times[-1] - timedelta(days=number)) - 1) if times else None

    def impact(finding: Finding) -> Fraction:
        # By how much the level is up: as found, or less if it has come back in part since.
        whole = relative(finding.before, finding.after)
        if latest is None or latest.key != finding.key:
            return whole
        return max(min(whole, relative(finding.before, latest.value)), Fraction(0))

    last_run = series.last_run
    retired = is_retired(series, times, ran)
    changes = (now.index for then, now in pairwise(readings) if then.key != now.key)
    standing = (finding for finding in findings if finding.state in ACTIVE and finding.kind in WORSE)
    return Row(
        id=series.id,
        model=series.model,
        readings=tuple(reading for reading in readings if reading.index >= first),
        failed=tuple(index for index in series.failed if index >= first),
        findings=tuple(findings),
        key_changes=tuple(index for index in changes if index >= first),
        latest=latest,
        day=days(1),
        week=days(7),
        month=days(30),
        release=against(release) if release is not None else None,
        impact=max(map(impact, standing), default=Fraction(0)),
        missing=last_run < ran and not retired,
        retired=retired,
        failing=bool(series.failed) and last_run == series.failed[-1],
    )


def _one_line(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Return the readings that are shown: of the main key, before its first those of the key that was the main one then.

    The main key is the one with the most readings of those that are still measured. So two machines that take turns are not
    shown as one benchmark that jumps.
    """
    found: list[Reading] = []
    end = len(readings)
    while end:
        rest = readings[:end]
        number = Counter(reading.key for reading in rest)
        last = {reading.key: reading.index for reading in rest}
        _, _, main = max((number[key], last[key], key) for key in current_keys(rest))
        own = [reading for reading in rest if reading.key == main]
        found = [*own, *found]
        end = bisect_left(rest, own[0].index, key=attrgetter("index"))
    return tuple(found)


def _by_impact(row: Row) -> tuple[object, ...]:
    moved = row.month.change if row.month is not None else None
    return -row.impact, not row.failing, -abs(moved or 0), row.id


def _order(finding: Finding) -> tuple[object, ...]:
    size = abs(relative(finding.before, finding.after))
    place = _STATES.index(finding.state), _KINDS.index(finding.kind)
    return *place, -size, finding.benchmark, finding.index, finding.id


def _headline(findings: Sequence[Finding], *, measured: bool, compared: bool) -> Headline:
    def count(*states: State, kinds: Sequence[Kind], confirmed: bool | None = None) -> int:
        return sum(
            finding.state in states and finding.kind in kinds and confirmed in (None, finding.confirmed)
            for finding in findings
        )

    suspicious = sum(finding.state is State.NEW and is_suspicious(finding) for finding in findings)
    return Headline(
        new=count(State.NEW, kinds=(Kind.REGRESSION,), confirmed=True),
        possible=count(*ACTIVE, kinds=(Kind.REGRESSION,), confirmed=False),
        open=count(State.OPEN, kinds=(Kind.REGRESSION,), confirmed=True),
        recovered=count(State.RECOVERED, kinds=WORSE),
        acknowledged=count(State.ACKNOWLEDGED, kinds=tuple(Kind)),
        creeping=count(*ACTIVE, kinds=(Kind.CREEP,)),
        new_creep=count(State.NEW, kinds=(Kind.CREEP,)),
        improved=count(State.NEW, kinds=(Kind.IMPROVEMENT,)) - suspicious,
        suspicious=suspicious,
        unstable=count(*ACTIVE, kinds=(Kind.UNSTABLE,)),
        measured=measured,
        compared=compared,
    )
