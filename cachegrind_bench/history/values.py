"""The values of a history read as series: readings by commit, what was found in them, and a report of it. Values only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from cachegrind_bench.model.described import doc

if TYPE_CHECKING:
    from cachegrind_bench.history.accepted import Accepted
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import CommitNote


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark at one commit. `index` counts the commits of the first-parent line from 0, the oldest.

    `value` is what is judged: the score under the series' model, or Ir. `uid` names the stored run. `taken_over`: another commit
    read the same, and this one was not measured. Of how a cost grows with a size, `curve` has sizes with Ir.
    """

    index: int
    sha: str
    key: str
    value: int
    counts: Counts
    created_at: str
    uid: str
    taken_over: bool = False
    curve: tuple[tuple[int, int], ...] = ()


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of one benchmark, one for each commit that was measured and each key, oldest first, then by key.

    `failed` are the indices of commits at which it was run and did not succeed, on one machine at least. Readings of
    different keys do not compare: a series is split by key before it is judged.
    """

    id: str
    model: str
    readings: tuple[Reading, ...]
    failed: tuple[int, ...] = ()

    @property
    def last_run(self) -> int:
        """The place on the line of the newest commit at which it was run, well or not; -1 if it never was."""
        return max([*(reading.index for reading in self.readings[-1:]), *self.failed[-1:]], default=-1)


class Kind(StrEnum):
    """What a finding is about."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CREEP = "creep"
    UNSTABLE = "unstable"


class State(StrEnum):
    """Where a finding is in its life."""

    NEW = "new"
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RECOVERED = "recovered"
    OUTDATED = "outdated"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one benchmark's cost that a person should know of."""

    id: Annotated[str, doc("12 hex digits that stay the same from report to report")]
    kind: Annotated[Kind, doc("what it is about")]
    state: Annotated[State, doc("where it is in its life")]
    benchmark: Annotated[str, doc("name of the benchmark")]
    key: Annotated[str, doc("comparability key of its readings")]
    before: Annotated[int, doc("level before, score or Ir; for creep the best one")]
    after: Annotated[int, doc("level after, score or Ir; for creep the one now")]
    suspects: Annotated[
        tuple[str, ...],
        doc(
            "commits that it may have come with, oldest first: one if its parent was measured, else all since the last that was"
        ),
    ]
    last_good_sha: Annotated[str | None, doc("the last commit that was measured before it")]
    index: Annotated[int, doc("place of the first reading of the new level on the line of commits, from 0")]
    confirmed: Annotated[bool, doc("whether two readings speak for both levels")]
    recovered_sha: Annotated[str | None, doc("commit where the level was back")] = None
    reason: Annotated[str | None, doc("why the change was accepted")] = None
    lone_base: Annotated[bool, doc("whether the old level has one reading only")] = False

    @property
    def is_step(self) -> bool:
        """Whether the level changed at once."""
        return self.kind in (Kind.REGRESSION, Kind.IMPROVEMENT)


class KeyReadings(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of one benchmark that compare with each other, and all that is needed to judge them.

    `least` is the smallest step that matters, `budget` how far a level may creep, both in ppm. `accepted` are the accepted
    changes with their places on the line of commits, in order, and `previous` the findings of the previous report.
    """

    benchmark: str
    key: str
    readings: tuple[Reading, ...]
    values: tuple[int, ...]
    line: Sequence[CommitNote]
    accepted: tuple[tuple[int, Accepted], ...]
    previous: Collection[str] | None
    least: int
    budget: int

    def span(self, at: int) -> tuple[int, int]:
        """Return from which to before which place on the line the change lies that this reading shows first."""
        return self.readings[at - 1].index + 1 if at else self.readings[at].index, self.readings[at].index + 1

    def suspects(self, at: int) -> tuple[str, ...]:
        """Return the commits that the change may have come with that this reading shows first."""
        start, end = self.span(at)
        return tuple(note.sha for note in self.line[start:end])

    def reason(self, start: int, stop: int) -> str | None:
        """Return why a change within these places on the line was accepted; None if it was not."""
        return next((entry.reason for index, entry in self.accepted if start <= index < stop), None)

    def finding(
        self,
        at: int,
        kind: Kind,
        levels: tuple[int, int],
        *,
        reason: str | None,
        back: int | None = None,
        **others: Any,
    ) -> Finding:
        """Return the finding that the level changed with this reading, accepted for a `reason`, or `back` at another."""
        values: dict[str, Any] = {
            "suspects": self.suspects(at) if at else (),
            "last_good_sha": self.readings[at - 1].sha if at else None,
            "confirmed": True,
            **others,
        }
        state = State.OPEN if reason is None else State.ACKNOWLEDGED
        return Finding(
            kind=kind,
            state=state if back is None else State.RECOVERED,
            benchmark=self.benchmark,
            key=self.key,
            before=levels[0],
            after=levels[1],
            index=self.readings[at].index,
            recovered_sha=None if back is None else self.readings[back].sha,
            reason=reason,
            **values,
        )


# Those that still ask for a decision; of improvements only those that are news.
ACTIVE = (State.NEW, State.OPEN)
WORSE = (Kind.REGRESSION, Kind.CREEP)


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a report comes from, as text: each of `notes` is a name and a value that a renderer lists as they are.

    `commit_url` is the address of a commit with `{sha}` in it, or None.
    """

    title: str
    created_at: str
    tool_version: str
    store: str
    branch: str | None = None
    commit_url: str | None = None
    notes: tuple[tuple[str, str], ...] = ()


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """The latest reading next to an earlier one; `base` is None if there was none, `comparable` False if keys differ."""

    base: Reading | None
    latest: Reading

    @property
    def comparable(self) -> bool:
        """Whether both were measured alike."""
        return self.base is not None and self.base.key == self.latest.key

    @property
    def change(self) -> Fraction | None:
        """The relative change since; None if both do not compare, or it was 0."""
        if self.base is None or not self.comparable or (self.latest.value and not self.base.value):
            return None
        return relative(self.base.value, self.latest.value)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: its readings within the window, what was found in it, and its latest reading next to earlier ones.

    `impact` is the largest relative increase that is active, or 0. `key_changes` are the indices of readings that were
    measured otherwise than the one before. `missing`: the newest measured commit has no reading; `retired`: none is
    expected, as the benchmark has not been run for so long.
    """

    id: str
    model: str
    readings: tuple[Reading, ...]
    failed: tuple[int, ...]
    findings: tuple[Finding, ...]
    key_changes: tuple[int, ...]
    latest: Reading | None
    day: Against | None
    week: Against | None
    month: Against | None
    release: Against | None
    impact: Fraction
    missing: bool
    retired: bool
    failing: bool


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """How many findings of each sort there are; none is counted twice, but `new_creep` is a part of `creeping`."""

    new: Annotated[int, doc("confirmed regressions that are new")]
    possible: Annotated[int, doc("regressions with one reading so far")]
    open: Annotated[int, doc("confirmed regressions of earlier reports")]
    recovered: Annotated[int, doc("findings whose level is back")]
    acknowledged: Annotated[int, doc("findings that were accepted")]
    creeping: Annotated[int, doc("benchmarks that creep up")]
    new_creep: Annotated[int, doc("those of them that are new")]
    improved: Annotated[int, doc("new improvements")]
    suspicious: Annotated[int, doc("new improvements of more than half")]
    unstable: Annotated[int, doc("benchmarks that go up and down")]
    measured: Annotated[bool, doc("whether there is a reading to judge")]
    compared: Annotated[bool, doc("whether there was a previous report: new is what it lacks")]


class Differing(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Repeated runs of one commit that do not agree."""

    benchmark: Annotated[str, doc("name of the benchmark")]
    sha: Annotated[str, doc("id of the commit")]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs are in no series, and why."""

    dirty: int = 0
    elsewhere: int = 0
    without_commit: int = 0
    differing: tuple[Differing, ...] = ()


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What weakens the report."""

    failing: Annotated[tuple[str, ...], doc("benchmarks that fail now")]
    failed_before: Annotated[tuple[str, ...], doc("benchmarks that failed at earlier commits")]
    missing: Annotated[tuple[str, ...], doc("benchmarks that the newest measured commit lacks")]
    retired: Annotated[tuple[str, ...], doc("benchmarks that have not been run for long")]
    unstable: Annotated[tuple[str, ...], doc("benchmarks whose readings go up and down")]
    dirty: Annotated[int, doc("runs left out, as tracked files differed from the commit")]
    elsewhere: Annotated[int, doc("runs left out, as their commit is not on this branch")]
    without_commit: Annotated[int, doc("runs left out, as they have no commit")]
    differing: Annotated[tuple[Differing, ...], doc("repeated runs that do not agree")]


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """A trend report. `commits` are those of the window; the first has the index `first` on the line.

    `releases` are pairs of an index and a name within the window, `release` is what rows are compared with: the last one
    before the newest measured commit. Rows are sorted by impact, findings by state.
    """

    headline: Headline
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    first: int
    commits: tuple[CommitNote, ...]
    noted: Mapping[str, CommitNote]
    releases: tuple[tuple[int, str], ...]
    release: str | None
    measured: int
    health: Health
    provenance: Provenance


def is_active(found: Finding) -> bool:
    """Return whether somebody should look at a finding."""
    return found.state in ACTIVE and (found.kind is not Kind.IMPROVEMENT or found.state is State.NEW)


def is_suspicious(found: Finding) -> bool:
    """Return whether so much was saved that the program may not do its work any more."""
    return found.kind is Kind.IMPROVEMENT and 2 * found.after < found.before


def relative(before: int, after: int) -> Fraction:
    """Return the relative change between two values; from nothing to something is 1, as far as it goes."""
    return Fraction(after - before, before) if before else Fraction(int(after > 0))
