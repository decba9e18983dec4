"""The values of a history read as series: readings by commit, and what was found in them. Values only."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.history import CommitNote, Release

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Counts

__all__ = ["CommitNote", "Finding", "Kind", "Reading", "Release", "Series", "State"]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark at one commit. `index` counts the commits of the first-parent line from 0, the oldest.

    `value` is what is judged: the score under the series' model, or Ir. `uid` names the stored run.
    """

    index: int
    sha: str
    key: str
    value: int
    counts: Counts
    created_at: str
    uid: str


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of one benchmark, one for each commit that was measured and each key, oldest first, then by key.

    `failed` are the indices of commits at which it was run and did not succeed, on one machine at least. Readings of different keys do not
    compare: whoever judges splits the series where the key changes.
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
    """A change of one benchmark's cost that a person should know of.

    `id` is 12 hex digits that stay the same from report to report. The change came with one of `suspects`, oldest first:
    one commit if its parent was measured, else all since the last that was. `before` and `after` are levels of the
    series' value; for creep, the best level and the one now. `confirmed` is False where only one reading speaks for it: for
    the new level, or, if `lone_base`, for the old one. `index` is the place of the first reading of the new level on the line
    of commits, `recovered_sha` is where the level was back, `reason` why the change was accepted.
    """

    id: str
    kind: Kind
    state: State
    benchmark: str
    key: str
    before: int
    after: int
    suspects: tuple[str, ...]
    last_good_sha: str | None
    index: int
    confirmed: bool
    recovered_sha: str | None = None
    reason: str | None = None
    lone_base: bool = False
